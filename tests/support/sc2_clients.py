"""What the tests of the served API share: a client that talks to it frame by frame, and a server in a thread."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

from s2clientprotocol import sc2api_pb2 as api

from s2rm_data.starcraft.api.server.requests import Client
from s2rm_data.starcraft.api.server.serve import Server


class Talker:
    """Sends requests by name and returns whole responses; `send` carries bytes there and back."""

    def __init__(self, send: Callable[[bytes], bytes] | None = None) -> None:
        self.send = send or Client().answer

    def ask(self, **request: Any) -> Any:
        return api.Response.FromString(self.send(api.Request(**request).SerializeToString()))

    def create(self, name: str = "3m", seed: int | None = 1, **setup: Any) -> Any:
        request = api.RequestCreateGame(local_map=api.LocalMap(map_path=f"SMAC_Maps/{name}.SC2Map"))
        if seed is not None:
            request.random_seed = seed
        request.player_setup.add(type=api.Participant, **setup)
        request.player_setup.add(type=api.Computer)
        return self.ask(create_game=request)

    def play(self, name: str = "3m", seed: int | None = 1, **setup: Any) -> Talker:
        """Create and join a game."""
        created = self.create(name, seed, **setup)
        assert not created.error and not created.create_game.HasField("error"), created
        joined = self.ask(join_game=api.RequestJoinGame(race=1, options=api.InterfaceOptions(raw=True)))
        assert joined.join_game.player_id == 1, joined
        return self

    def units(self, owner: int | None = None, *, whole: bool = False) -> list[Any]:
        response = self.ask(observation=api.RequestObservation(disable_fog=whole))
        units = response.observation.observation.raw_data.units
        return [unit for unit in units if owner in (None, unit.owner)]

    def step(self, count: int = 8) -> Any:
        return self.ask(step=api.RequestStep(count=count))

    def order(
        self,
        units: list[Any],
        ability: int,
        *,
        at: tuple[float, float] | None = None,
        tag: int = 0,
        queue: bool = False,
    ) -> int:
        """The action's result."""
        request = api.RequestAction()
        command = request.actions.add().action_raw.unit_command
        command.ability_id, command.queue_command = ability, queue
        command.unit_tags.extend(unit.tag for unit in units)
        if at:
            command.target_world_space_pos.x, command.target_world_space_pos.y = at
        if tag:
            command.target_unit_tag = tag
        return self.ask(action=request).action.result[0]

    def debug(self, **command: Any) -> Any:
        request = api.RequestDebug()
        request.debug.add(**command)
        return self.ask(debug=request)


@contextlib.contextmanager
def serving(**options: Any) -> Iterator[int]:
    """A server of this process; the port it listens on."""
    started, port, loops = threading.Event(), [0], []

    async def main() -> None:
        server = Server(**options)
        loops.append((asyncio.get_running_loop(), server))
        async with server.listening() as bound:
            port[0] = bound
            started.set()
            await server.stopped.wait()

    thread = threading.Thread(target=lambda: asyncio.run(main()))
    thread.start()
    assert started.wait(30)
    try:
        yield port[0]
    finally:
        loop, server = loops[0]
        with contextlib.suppress(RuntimeError):  # it has stopped by itself
            loop.call_soon_threadsafe(server.stopped.set)
        thread.join(30)
        assert not thread.is_alive()
