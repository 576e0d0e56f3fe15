"""The websocket: frames in, frames out. One connection is one client with its own game."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import http
import itertools
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

from s2rm_data.errors import ConflictError, UsageError, missing_component
from s2rm_data.generators.sc2.backends.packages import require_protocol

PATH = "/sc2api"
LOOPBACK = "127.0.0.1"
MOST_CLIENTS = 64
_MOST_BYTES = 64 << 20  # of one frame: create_game carries a whole map file, of which the largest have about 10 MB
_PARENT_SECONDS = 2.0


@dataclass(kw_only=True)
class Server:
    """`single` is how the game itself behaves: one client at a time, and its `quit` ends the process."""

    host: str = LOOPBACK
    port: int = 0
    single: bool = False
    _connected: int = 0
    _stop: asyncio.Event = field(default_factory=asyncio.Event)

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[int]:
        """The port it listens on, until the block is left."""
        require_protocol()
        try:
            from websockets.asyncio.server import serve
        except ModuleNotFoundError:
            raise missing_component("websockets", "sc2", "serving the StarCraft II API") from None
        try:
            server = await serve(
                self._play,
                self.host,
                self.port,
                process_request=self._admit,
                compression=None,
                max_size=_MOST_BYTES,
                ping_interval=None,  # clients answer pings only while they wait for a response
                close_timeout=1,  # nor do they answer a goodbye
            )
        except OSError as error:
            raise _listening_error(self.host, self.port, error) from None
        async with server:
            yield next(iter(server.sockets)).getsockname()[1]

    def stop(self) -> None:
        self._stop.set()

    async def stopped(self) -> None:
        await self._stop.wait()

    def _admit(self, connection: Any, request: Any) -> Any:
        """None lets a client in; else the HTTP response that turns it away."""
        if request.path.partition("?")[0] != PATH:
            return connection.respond(http.HTTPStatus.NOT_FOUND, f"the StarCraft II API is at {PATH}\n")
        if self._connected >= (1 if self.single else MOST_CLIENTS):
            return connection.respond(http.HTTPStatus.SERVICE_UNAVAILABLE, "another client is connected\n")
        return None

    async def _play(self, connection: Any) -> None:
        from websockets.exceptions import ConnectionClosed

        from s2rm_data.server.requests import IN_GAME, QUIT, Client

        if self._connected >= (1 if self.single else MOST_CLIENTS):  # two shook hands at the same time
            await connection.close(1013, "another client is connected")
            return
        self._connected += 1
        _notice_dead_peers(connection)
        try:
            client = Client()
            while client.status != QUIT:
                frame = await connection.recv(decode=False)  # pysc2 sends its bytes as text
                slow = client.status != IN_GAME  # outside of a game it may load compiled code
                reply = await asyncio.to_thread(client.answer, frame) if slow else client.answer(frame)
                await connection.send(reply)
            if self.single:
                self.stop()
        except ConnectionClosed:
            pass  # the client has gone, and its game with it
        finally:
            self._connected -= 1


def _notice_dead_peers(connection: Any) -> None:
    """A peer that vanished without a word is noticed after about two minutes."""
    peer = connection.transport.get_extra_info("socket")
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4)):
        if hasattr(socket, option):
            peer.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


def _listening_error(host: str, port: int, error: OSError) -> Exception:
    if error.errno == errno.EADDRINUSE or "address already in use" in str(error):
        return ConflictError(f"port {port} of {host} is taken by another program; choose another --port")
    if error.errno == errno.EACCES:
        return UsageError(f"port {port} of {host} may not be used; choose a --port from 1024 to 65535")
    return UsageError(f"cannot listen on {host} port {port}: {error.strerror or error}; check --listen and --port")


def run(*, host: str, port: int, single: bool, ready: Callable[[int], None] = lambda port: None) -> None:
    """Serve until stopped: by `quit` or the end of the parent process if `single`, else by an interrupt."""

    async def main() -> None:
        server = Server(host=host, port=port, single=single)
        async with server.listening() as bound:
            ready(bound)
            watch = asyncio.create_task(_stop_with_parent(server)) if single else None
            await server.stopped()
            if watch:
                watch.cancel()

    asyncio.run(main())


async def _stop_with_parent(server: Server) -> None:
    """A game whose client was killed must not stay behind."""
    parent = os.getppid()
    while os.getppid() == parent:
        await asyncio.sleep(_PARENT_SECONDS)
    server.stop()


def main(arguments: list[str] | None = None) -> None:
    """The launcher's entry: the game's own command line, of which unknown options are ignored."""
    given = sys.argv[1:] if arguments is None else arguments
    values = dict(itertools.pairwise(given))
    port = values.get("-port", "")
    if not port.isdecimal():
        raise UsageError(f"-port {port or 'is missing'}; clients start the game with -listen ADDRESS -port NUMBER")
    run(host=values.get("-listen", LOOPBACK), port=int(port), single=True)
