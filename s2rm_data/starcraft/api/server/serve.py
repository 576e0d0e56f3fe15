"""The websocket: frames in, frames out. One connection is one client with its own game and its own thread.

Anybody who can connect is a stranger: frames, queues, connections and times are bounded, and a page in a browser
(which sends the header Origin) is let in only if it comes from this very server, which serves none."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import http
import ipaddress
import itertools
import os
import signal
import socket
import sys
import weakref
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from s2rm_data.core.errors import ConflictError, InterruptedRunError, S2RMError, UsageError
from s2rm_data.core.optional import needed
from s2rm_data.starcraft.api.protocol import require_protocol

PATH = "/sc2api"
LOOPBACK = "127.0.0.1"
MOST_CLIENTS = 64
MOST_FRAME_BYTES = 2 << 20  # create_game may carry a map file, of which SMAC's have less than 0.2 MB
MOST_FRAMES = 2  # received and not yet answered; clients wait for each answer
IDLE_SECONDS = 3600.0  # until a client that asks nothing is sent away
SEND_SECONDS = 60.0  # until a client that does not read its answers is sent away
_PARENT_SECONDS = 2.0


@dataclass(kw_only=True)
class Server:
    """`single` is how the game itself behaves: one client at a time, and its `quit` ends the process."""

    host: str = LOOPBACK
    port: int = 0
    single: bool = False
    clients: int = 0  # connected
    stopped: asyncio.Event = field(default_factory=asyncio.Event)

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[int]:
        """The port it listens on, until the block is left."""
        require_protocol()
        needed("websockets", "sc2", "serving the StarCraft II API")
        from websockets.asyncio.server import ServerConnection, serve

        opened: weakref.WeakSet[Any] = weakref.WeakSet()

        class Connection(ServerConnection):
            def connection_made(self, transport: Any) -> None:
                opened.add(transport)
                super().connection_made(transport)

        try:
            server = await serve(
                self._play,
                self.host,
                self.port,
                create_connection=Connection,
                process_request=self._admit,
                compression=None,
                max_size=MOST_FRAME_BYTES,
                max_queue=MOST_FRAMES,
                ping_interval=None,  # clients answer pings only while they wait for a response
                close_timeout=1,  # nor do they answer a goodbye
            )
        except OSError as error:
            raise _listening_error(self.host, self.port, error) from None
        try:
            async with server:
                yield next(iter(server.sockets)).getsockname()[1]
        finally:
            await _close_latecomers(opened)

    def _admit(self, connection: Any, request: Any) -> Any:
        """None lets a client in; else the HTTP response that turns it away."""
        if request.path.partition("?")[0] != PATH:
            return connection.respond(http.HTTPStatus.NOT_FOUND, f"the StarCraft II API is at {PATH}\n")
        if not is_welcome(request.headers.get_all("Origin"), request.headers.get_all("Host")):
            return connection.respond(http.HTTPStatus.FORBIDDEN, "pages of other places are not let in\n")
        if self.clients >= (1 if self.single else MOST_CLIENTS):
            return connection.respond(http.HTTPStatus.SERVICE_UNAVAILABLE, "another client is connected\n")
        return None

    async def _play(self, connection: Any) -> None:
        from websockets.exceptions import ConnectionClosed

        if self.clients >= (1 if self.single else MOST_CLIENTS):  # two shook hands at the same time
            await connection.close(1013, "another client is connected")
            return
        self.clients += 1
        _notice_dead_peers(connection)
        thread = ThreadPoolExecutor(1, thread_name_prefix="client")
        try:
            await self._answer_all(connection, thread)
            if self.single:
                self.stopped.set()
        except ConnectionClosed:
            pass  # the client has gone, and its game with it
        except TimeoutError:
            await connection.close(1001, "too slow")
        finally:
            thread.shutdown(wait=False)  # others are not to wait for what it may still be doing
            self.clients -= 1

    async def _answer_all(self, connection: Any, thread: ThreadPoolExecutor) -> None:
        from s2rm_data.starcraft.api.server.requests import IN_GAME, QUIT, Client

        client = Client()
        loop = asyncio.get_running_loop()
        gone = asyncio.create_task(connection.wait_closed())
        gone.add_done_callback(lambda task: client.cancel())
        try:
            while client.status != QUIT:
                async with asyncio.timeout(IDLE_SECONDS):
                    frame = await connection.recv(decode=False)  # pysc2 sends its bytes as text
                # The only client there may be is answered here: nobody else waits, and a change of threads costs time.
                # Outside of a game compiled code may have to be loaded.
                at_once = self.single and client.status == IN_GAME
                reply = client.answer(frame) if at_once else await loop.run_in_executor(thread, client.answer, frame)
                async with asyncio.timeout(SEND_SECONDS):
                    await connection.send(reply)
        finally:
            client.cancel()
            gone.cancel()


def is_welcome(origins: list[str], hosts: list[str]) -> bool:
    """Whether the headers are those of a program, or of a page from the same address.

    Programs send no Origin, or that of the server itself. A page of another place sends its own; one whose name was
    made to point here (DNS rebinding) sends a name where an address, or localhost, belongs."""
    if not origins:
        return True
    try:
        origin = urlsplit(origins[0])
        same = len(origins) == len(hosts) == 1 and origin.netloc.lower() == hosts[0].lower()
        name = origin.hostname or ""
    except ValueError:
        return False
    return same and (name == "localhost" or is_address(name))


def is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def is_open_to_others(host: str) -> bool:
    """Whether clients on other machines may reach a server that listens on this address."""
    return not (host == "localhost" or (is_address(host) and ipaddress.ip_address(host).is_loopback))


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
    """Serve until stopped: by `quit` or the end of the parent process if `single`, else by SIGINT or SIGTERM."""

    async def main() -> None:
        server = Server(host=host, port=port, single=single)
        async with server.listening() as bound:
            if not single:
                for number in (signal.SIGINT, signal.SIGTERM):
                    asyncio.get_running_loop().add_signal_handler(number, server.stopped.set)
            ready(bound)
            watch = asyncio.create_task(_stop_with_parent(server)) if single else None
            await server.stopped.wait()
            if watch:
                watch.cancel()
            clients = server.clients
        if not single:
            ended = f"; {clients} client{'s' * (clients != 1)} sent away" if clients else ""
            raise InterruptedRunError(f"the server was stopped by a signal{ended}")

    asyncio.run(main())


async def _close_latecomers(opened: weakref.WeakSet[Any]) -> None:
    """Close connections that were accepted while the server closed: it knows nothing of them."""
    for _ in range(4):  # accepting takes a few turns of the loop, and so does closing
        await asyncio.sleep(0)
        for transport in opened:
            transport.abort()


async def _stop_with_parent(server: Server) -> None:
    """A game whose client was killed must not stay behind."""
    parent = os.getppid()
    while os.getppid() == parent:
        await asyncio.sleep(_PARENT_SECONDS)
    server.stopped.set()


def main(arguments: list[str] | None = None) -> None:
    """The launcher's entry: the game's own command line, of which unknown options are ignored."""
    given = sys.argv[1:] if arguments is None else arguments
    values = dict(itertools.pairwise(given))
    port = values.get("-port", "")
    if not port.isdecimal():
        raise UsageError(f"-port {port or 'is missing'}; clients start the game with -listen ADDRESS -port NUMBER")
    run(host=values.get("-listen", LOOPBACK), port=int(port), single=True)


if __name__ == "__main__":  # as an installed folder starts it: -listen 127.0.0.1 -port N
    try:
        main()
    except S2RMError as error:
        sys.exit(f"s2rm-data: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
