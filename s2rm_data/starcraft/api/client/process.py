"""Finding, starting and watching StarCraft II through pysc2; whatever goes wrong with it is one error, `GameFault`.

Nothing here knows whether the game is Blizzard's or the served engine: both are a program below SC2PATH.

Which back end `--backend auto` takes, and why."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from s2rm_data.core.errors import MissingComponentError, S2RMError
from s2rm_data.starcraft.api.protocol import require_protocol, require_pysc2

DEFAULT_FOLDER = "~/StarCraftII"  # where pysc2 looks on Linux without SC2PATH
RESPONSE_SECONDS = 120  # the game starts and loads a map within a minute; a longer silence is a hang
EPISODES_PER_PROCESS = 500  # the game grows with every one it plays; a new process starts small


class GameFault(Exception):  # noqa: N818 - said of the game
    """The game died, hangs, talks nonsense or refuses; the episode under way is lost, and another process may play
    it."""


def game_folder() -> Path:
    given = os.environ.get("SC2PATH")
    folder = Path(given or DEFAULT_FOLDER).expanduser()
    said = f"SC2PATH is {given!r}" if given else f"SC2PATH is not set, and {DEFAULT_FOLDER} is the usual place"
    advice = (
        "point SC2PATH at a StarCraft II, lay out the engine in its place with "
        "`s2rm-data sc2-server install DIR`, or use --backend engine"
    )
    if not folder.is_dir():
        raise MissingComponentError(f"no StarCraft II: {said}, but there is no such folder; {advice}")
    versions = folder / "Versions"
    if not versions.is_dir() or not any(entry.name.startswith("Base") for entry in versions.iterdir()):
        raise MissingComponentError(f"no StarCraft II: {said}, but that folder holds no Versions/Base*; {advice}")
    return folder


@contextlib.contextmanager
def faults() -> Iterator[None]:
    """Turns every way in which a game fails into `GameFault`; an error of the user passes through."""
    import websocket
    from google.protobuf.message import DecodeError
    from pysc2.lib import protocol, remote_controller, sc_process

    try:
        yield
    except (
        protocol.ConnectionError,
        protocol.ProtocolError,
        remote_controller.ConnectError,
        remote_controller.RequestError,
        sc_process.SC2LaunchError,
        websocket.WebSocketException,
        DecodeError,
        OSError,
        AttributeError,  # pysc2's on a connection that it has closed itself
    ) as error:
        raise GameFault(str(error) or type(error).__name__) from error


class GameProcess:
    def __init__(self, response_seconds: int = RESPONSE_SECONDS) -> None:
        require_pysc2()
        folder = game_folder()
        from absl import flags, logging
        from pysc2 import run_configs

        if not flags.FLAGS.is_parsed():
            flags.FLAGS.mark_as_parsed()
        logging.set_verbosity(logging.FATAL)  # faults are reported once, by us
        self.episodes = 0
        self._process: Any = None
        self.controller: Any = None
        try:
            with faults():
                self.config = run_configs.get()
                try:
                    self._process = self.config.start(want_rgb=False, connect=False)
                except (RuntimeError, ValueError) as error:
                    raise MissingComponentError(f"the game in {folder} cannot be started: {error}") from error
                self.controller = _connect(self._process, response_seconds)
                ping = self.controller.ping()
        except BaseException:
            self.close()
            raise
        self.version = f"{ping.game_version} (build {ping.base_build})"

    def map_data(self, path: str) -> bytes:
        try:
            return self.config.map_data(path)
        except ValueError:
            raise MissingComponentError(
                f"the map {path} is not in {self.config.data_dir}/Maps; put SMAC's maps there "
                "(https://github.com/oxwhirl/smac, smac/env/starcraft2/maps)"
            ) from None

    def create_game(self, request: Any) -> None:
        """Create and join; a map that the game will not have is the user's error, all else a fault."""
        api = require_protocol()
        from pysc2.lib import remote_controller

        with faults():
            try:
                self.controller.create_game(request)
            except remote_controller.RequestError as error:
                raise S2RMError(f"the game refuses the map {request.local_map.map_path}: {error}") from None
            race = next(setup.race for setup in request.player_setup)
            self.controller.join_game(api.RequestJoinGame(race=race, options=api.InterfaceOptions(raw=True)))

    def close(self) -> None:
        for part, end in ((self.controller, "quit"), (self._process, "close")):
            if part is not None:
                with contextlib.suppress(GameFault), faults():
                    getattr(part, end)()
        self.controller = self._process = None


def _connect(process: Any, response_seconds: int) -> Any:
    """pysc2's controller; it leaves its connection open if the game's first answer is nonsense, we do not."""
    from pysc2.lib import remote_controller

    controller = remote_controller.RemoteController.__new__(remote_controller.RemoteController)
    try:
        controller.__init__(process.host, process.port, process, timeout_seconds=response_seconds)
    except BaseException:
        if hasattr(controller, "_client"):
            controller._client.close()
        raise
    return controller


@dataclass(kw_only=True)
class Games:
    """The processes of a run: taken by threads for an episode each, kept for the next, closed together."""

    response_seconds: int = RESPONSE_SECONDS
    _idle: list[GameProcess] = field(default_factory=list)
    _all: list[GameProcess] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _closed: bool = False

    def __enter__(self) -> Games:
        return self

    def __exit__(self, *reason: object) -> None:
        with self._lock:
            self._closed = True
            games, self._all, self._idle = self._all, [], []
        for game in games:
            game.close()

    @contextlib.contextmanager
    def game(self) -> Iterator[GameProcess]:
        """A game for one caller. After a fault its process is ended and not used again."""
        game = self._take()
        try:
            yield game
        except BaseException:
            self._end(game)
            raise
        if game.episodes >= EPISODES_PER_PROCESS:
            self._end(game)
        else:
            with self._lock:
                self._idle.append(game)

    def _take(self) -> GameProcess:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        game = GameProcess(self.response_seconds)
        with self._lock:
            self._all.append(game)
            closed = self._closed
        if closed:
            self._end(game)
            raise GameFault("the run is over")
        return game

    def _end(self, game: GameProcess) -> None:
        with self._lock:
            if game in self._all:
                self._all.remove(game)
        game.close()


ENGINE, STARCRAFT2, AUTO = "engine", "starcraft2", "auto"


class Choice(NamedTuple):
    backend: str
    why: str


def choose(asked: str) -> Choice:
    """The back end to use. `starcraft2` without a game or its packages is an error; `auto` then takes the engine."""
    if asked == ENGINE:
        return Choice(ENGINE, "as asked")
    folder = None
    try:
        folder = game_folder()
        require_pysc2()
    except MissingComponentError as missing:
        if asked == STARCRAFT2:
            raise
        why = "since there is no StarCraft II (SC2PATH)"
        if folder or "SC2PATH" in os.environ:  # who sets it wants the game: say what is wrong with it
            why = f"although {f'there is a game in {folder}' if folder else 'SC2PATH is set'}: {missing}"
        return Choice(ENGINE, f"the embedded engine, {why}")
    return Choice(STARCRAFT2, "as asked" if asked == STARCRAFT2 else f"the game in {folder}")
