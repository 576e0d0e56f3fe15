"""The API's requests, answered from a game: one `Client` is one connection, with at most one game.

Every response carries the status and repeats the request's id. What cannot be done is an API error that names it; a
client's mistake never ends the server."""

from __future__ import annotations

import itertools
import secrets
import threading
import time
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any

import s2rm_data
from s2rm_data.core.errors import S2RMError, UsageError
from s2rm_data.starcraft import scenarios
from s2rm_data.starcraft.api.protocol import COMPUTER, CONTROL_ENEMY, PARTICIPANT, SEED_NAME, require_protocol
from s2rm_data.starcraft.api.server.answers import Observer, write_data, write_game_info, write_query
from s2rm_data.starcraft.api.server.game import DEFEAT, FLAT_MAP, VICTORY, Game, scenario_of_map
from s2rm_data.starcraft.api.server.install import BUILD, placeholder_name
from s2rm_data.starcraft.api.server.orders import ERROR, NOT_SUPPORTED, SUCCESS, give

LAUNCHED, INIT_GAME, IN_GAME, IN_REPLAY, ENDED, QUIT = range(1, 7)  # sc2api.proto, Status
# The most that one request may ask for
MOST_LOOPS = 100_000  # of a step: an hour and a quarter of the game
MOST_SECONDS = 60.0  # for a step
MOST_QUERIES = 10_000
MOST_ACTIONS = 10_000
MOST_ORDERED = 50_000  # units addressed by all actions together
MOST_COMMANDS = 1_000  # of debug
MOST_CREATED = 200  # units
_FIRST_TAG = 1 << 32
_MISSING_MAP, _INVALID_PATH, _MISSING_PLAYERS, _INVALID_PLAYERS, _MULTIPLAYER = 1, 2, 6, 7, 8  # ResponseCreateGame
_NO_OPTIONS, _UNSUPPORTED_FEATURE = 3, 7  # ResponseJoinGame.Error
_MAP_PATHS = [f"SMAC_Maps/{name}.SC2Map" for name in [*scenarios.names(), FLAT_MAP]]
_SHOW_MAP = 1  # debug.proto, DebugGameState


class RefusedError(Exception):
    """Becomes the response's `error`."""


class Client:
    """`answer` takes the bytes of a Request and gives those of its Response; after `status` is QUIT nothing follows."""

    def __init__(self) -> None:
        self._api = require_protocol()
        self.status = LAUNCHED
        self._game: Game | None = None
        self._waiting: Game | None = None  # created, not joined yet
        self._observer: Observer | None = None
        self._created: tuple[str, int] | None = None
        self._options: Any = None
        self._opponent: Any = None
        self._tags = itertools.count(_FIRST_TAG)
        self._cancelled = threading.Event()
        self._failures: list[tuple[int, int, int]] = []  # (unit tag, ability, result) since the last observation
        self._handlers: dict[str, Callable[[Any, Any], None]] = {
            "create_game": self._create_game,
            "join_game": self._join_game,
            "restart_game": self._restart_game,
            "leave_game": self._leave_game,
            "quit": lambda request, response: self._forget_game(QUIT),
            "ping": self._ping,
            "available_maps": lambda request, response: response.local_map_paths.extend(_MAP_PATHS),
            "game_info": lambda request, response: write_game_info(
                response, self._running(), self._options, self._opponent
            ),
            "observation": self._observation,
            "action": self._action,
            "step": self._step,
            "data": lambda request, response: write_data(response, self._running(), request),
            "query": self._query,
            "debug": self._debug,
            "save_replay": lambda request, response: setattr(response, "data", self._running().replay()),
        }

    def cancel(self) -> None:
        """Give up the request that is being answered, from another thread: nobody waits for it any more."""
        self._cancelled.set()

    def answer(self, frame: bytes) -> bytes:
        response = self._api.Response()
        try:
            request = self._parse(frame)
            if request.HasField("id"):
                response.id = request.id
            name = request.WhichOneof("request")
            if name not in self._handlers:
                raise RefusedError(f"{name} is not supported by this server" if name else "an empty or unknown request")
            part = getattr(response, name)
            part.SetInParent()
            self._handlers[name](getattr(request, name), part)
        except (RefusedError, S2RMError) as refusal:
            response.ClearField(response.WhichOneof("response") or "id")
            response.error.append(str(refusal))
        response.status = self.status
        return response.SerializeToString()

    def _parse(self, frame: bytes) -> Any:
        from google.protobuf.message import DecodeError

        try:
            return self._api.Request.FromString(frame)
        except DecodeError:
            raise RefusedError(f"a frame of {len(frame)} bytes is not a request of the StarCraft II API") from None

    def _running(self) -> Game:
        if self._game is None:
            raise RefusedError("Not in a game")
        return self._game

    def _in_game(self) -> Game:
        game = self._running()
        if self.status == ENDED:
            raise RefusedError("Game has already ended")
        return game

    # games

    def _create_game(self, request: Any, response: Any) -> None:
        self._forget_game(LAUNCHED)
        refusal = self._refuse_game(request)
        if refusal is None:
            try:
                name = _map_name(request)
                scenario_of_map(name)
                self._created = (name, _seed(request))
                self._opponent = next((setup for setup in request.player_setup if setup.type == COMPUTER), None)
                self._waiting = self._new_game()  # compiled code is loaded now, while clients expect a wait
                self.status = INIT_GAME
                return
            except UsageError as error:
                refusal = (_INVALID_PATH, str(error))
        self._created = None
        response.error, response.error_details = refusal

    def _refuse_game(self, request: Any) -> tuple[int, str] | None:
        players = [setup.type for setup in request.player_setup]
        if request.realtime:
            return _INVALID_PLAYERS, "realtime is not supported: the client steps the game"
        if not players:
            return _MISSING_PLAYERS, "player_setup is empty; give one Participant and one Computer"
        if players.count(PARTICIPANT) > 1:
            return _MULTIPLAYER, "this server has games of one Participant against the map's own opponent only"
        if not request.HasField("local_map"):
            return _MISSING_MAP, "give local_map; maps of Battle.net are not here"
        return None

    def _new_game(self) -> Game:
        assert self._created is not None
        name, seed = self._created
        return Game(map_name=name, seed=seed, tags=self._tags)

    def _start(self, game: Game) -> None:
        self._game, self._observer, self._waiting = game, Observer(game), None
        self._failures.clear()
        self.status = IN_GAME

    def _join_game(self, request: Any, response: Any) -> None:
        if self._waiting is None:
            raise RefusedError("join_game: there is no game to join; send create_game first")
        if request.HasField("server_ports") or request.client_ports:
            response.error, response.error_details = _UNSUPPORTED_FEATURE, "games over several ports are not supported"
            return
        if not request.options.raw:
            response.error, response.error_details = _NO_OPTIONS, "set options.raw: there are raw observations only"
            return
        self._options = type(request.options)(raw=True, score=request.options.score)
        self._start(self._waiting)
        response.player_id = 1

    def _restart_game(self, request: Any, response: Any) -> None:
        self._running()
        self._start(self._new_game())

    def _leave_game(self, request: Any, response: Any) -> None:
        self._running()
        self._forget_game(LAUNCHED)

    def _forget_game(self, status: int) -> None:
        self._game = self._waiting = self._observer = self._created = None
        self.status = status

    def _ping(self, request: Any, response: Any) -> None:
        response.game_version = f"s2rm-data {s2rm_data.__version__}"
        response.data_version = "Liberty 4.10.0"
        response.data_build = response.base_build = BUILD

    # play

    def _observation(self, request: Any, response: Any) -> None:
        game = self._running()
        assert self._observer is not None
        self._observer.write(response, whole=request.disable_fog)
        for tag, ability, result in self._failures:
            response.action_errors.add(unit_tag=tag, ability_id=ability, result=result)
        self._failures.clear()
        if game.result:
            self.status = ENDED

    def _query(self, request: Any, response: Any) -> None:
        asked = len(request.pathing) + len(request.abilities) + len(request.placements)
        _at_most("query", "questions", asked, MOST_QUERIES)
        write_query(response, self._running(), request)

    def _action(self, request: Any, response: Any) -> None:
        game = self._in_game()
        _at_most("action", "actions", len(request.actions), MOST_ACTIONS)
        ordered = sum(len(action.action_raw.unit_command.unit_tags) for action in request.actions)
        _at_most("action", "units", ordered, MOST_ORDERED)
        for action in request.actions:
            response.result.append(self._act(game, action))

    def _act(self, game: Game, action: Any) -> int:
        if action.HasField("action_raw") and action.action_raw.HasField("unit_command"):
            command = action.action_raw.unit_command
            result = give(game, command)
            if result != SUCCESS and len(self._failures) < 1000:
                self._failures.append((command.unit_tags[0] if command.unit_tags else 0, command.ability_id, result))
            return result
        silent = action.HasField("action_chat") or action.action_raw.HasField("camera_move")
        return SUCCESS if silent else NOT_SUPPORTED if action.ListFields() else ERROR

    def _step(self, request: Any, response: Any) -> None:
        game = self._in_game()
        count = request.count if request.HasField("count") else 1
        if not 0 < count <= MOST_LOOPS:
            raise RefusedError(f"step: count is {count}; allowed are 1 to {MOST_LOOPS} loops")
        until = time.monotonic() + MOST_SECONDS
        begun = game.loop

        def check() -> None:
            if self._cancelled.is_set() or time.monotonic() > until:
                done = f"after {game.loop - begun} of {count} loops"
                raise RefusedError(
                    f"step: stopped {done}: it took more than {MOST_SECONDS:.0f} s, or the client has gone"
                )

        game.run(count, check)
        response.simulation_loop = game.loop
        if game.result:
            self.status = ENDED

    def _debug(self, request: Any, response: Any) -> None:
        game = self._in_game()
        _at_most("debug", "commands", len(request.debug), MOST_COMMANDS)
        made = [command.create_unit for command in request.debug if command.WhichOneof("command") == "create_unit"]
        created = sum(unit.quantity if unit.HasField("quantity") else 1 for unit in made)
        _at_most("debug", "units to create", created, MOST_CREATED)
        for command in request.debug:
            self._debug_one(game, command)

    @staticmethod
    def _debug_one(game: Game, command: Any) -> None:
        name = command.WhichOneof("command")
        if name == "create_unit":
            unit = command.create_unit
            for _ in range(unit.quantity if unit.HasField("quantity") else 1):
                game.create(unit.unit_type, unit.owner, (unit.pos.x, unit.pos.y))
        elif name == "kill_unit":
            game.kill(list(command.kill_unit.tag))
        elif name == "game_state" and command.game_state in (CONTROL_ENEMY, _SHOW_MAP):
            if command.game_state == CONTROL_ENEMY:
                game.control_enemy = not game.control_enemy  # the game switches it on and off
        elif name == "end_game":
            game.result = DEFEAT if command.end_game.end_result == 1 else VICTORY
        elif name != "draw":  # there is no screen to draw upon
            what = f"{name} {command.game_state}" if name == "game_state" else name or "an empty command"
            raise RefusedError(
                f"debug: {what} is not supported; there are create_unit, kill_unit, control_enemy, end_game"
            )


def _at_most(request: str, what: str, count: int, most: int) -> None:
    if count > most:
        raise RefusedError(f"{request}: {count:,} {what} in one request; at most {most:,} are allowed")


def _map_name(request: Any) -> str:
    """The scenario a client asks for: by the name of the map file, else by what `install` wrote into the file."""
    path = request.local_map.map_path.replace("\\", "/")
    name = PurePosixPath(path).name.removesuffix(".SC2Map") if path else placeholder_name(request.local_map.map_data)
    if not name:
        raise UsageError("local_map has neither a map_path nor the map_data of a map laid out by s2rm-data")
    return name


def _seed(request: Any) -> int:
    for setup in request.player_setup:
        digits = setup.player_name.removeprefix(SEED_NAME)
        if setup.player_name.startswith(SEED_NAME) and digits.isdecimal() and int(digits) < 2**64:
            return int(digits)
    return request.random_seed if request.HasField("random_seed") else secrets.randbits(64)
