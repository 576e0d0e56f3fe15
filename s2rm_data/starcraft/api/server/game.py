"""One game: a map with two armies that fight, seen as the API sees it: tags, owners, loops, battles that follow each
other.

The rules of SMAC's maps are those of the maps' own scripts: armies stand there from the start, the enemies under
their order; when nobody of either side is left, both armies are created anew. On a map whose name ends in `_battle`
the game ends instead when one army is dead, and the agents are the game's own units, which attack by themselves.
SMACv2's map 32x32_flat is empty: clients create the armies, and its script sends idle enemies to the nearest agent."""

# U units of both sides, agents first

from __future__ import annotations

import dataclasses
import json
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from s2rm_data.core.errors import UsageError
from s2rm_data.core.philox import philox
from s2rm_data.starcraft import rules, scenarios
from s2rm_data.starcraft.api.protocol import OPPONENT, PLAYER, STANDARD_ID, TYPE_OF_STANDARD, custom_ids
from s2rm_data.starcraft.codes import ORDERS, Order, Outcome
from s2rm_data.starcraft.engine.arena import Arena
from s2rm_data.starcraft.engine.step import SCRIPT_LOOPS
from s2rm_data.starcraft.formation import CENTRE, NOWHERE, contacts, nearest_free, planes, spiral
from s2rm_data.starcraft.scenarios import Scenario
from s2rm_data.starcraft.terrain_maps import SIZE, terrain
from s2rm_data.starcraft.units import UNIT_TYPES

BATTLE_SUFFIX = "_battle"
_DOMAIN = np.uint64(0x5343322D53455256)  # "SC2-SERV": seeds of the battles after a game's first
LOOPS_BETWEEN_CHECKS = 500  # about 40 ms of the largest battles
MOST_UNITS = 400  # living at once; no SMAC map has more than 66
MOST_LOGGED = 100_000  # events of one battle kept for its replay
REPLAY_FORMAT = "s2rm-data battle 3"
CREATE, KILL = "create", "kill"
_EDGE = SIZE - 2.0**-12  # the easternmost and northernmost point; a client's float32 may round to the edge itself

VICTORY, DEFEAT, TIE = 1, 2, 3  # sc2api.proto, Result
_RESULT: dict[int, int] = {Outcome.RUNNING: 0, Outcome.WIN: VICTORY, Outcome.LOSS: DEFEAT, Outcome.DRAW: TIE}

FLAT_MAP = "32x32_flat"
_FLAT = Scenario(name=FLAT_MAP, agents=(), enemies=(), limit_steps=200, terrain="open", order=Order.IDLE)
# The types of agents on SMACv2's map; ids follow their names, as on all maps.
_AGENT_TYPES = tuple(number for number, unit in UNIT_TYPES.items() if unit.speed_per_second > 0)
_SOMEBODY = scenarios.parse("1m")


def scenario_of_map(map_name: str) -> Scenario:
    return _FLAT if map_name == FLAT_MAP else scenarios.parse(map_name.removesuffix(BATTLE_SUFFIX))


class Event(NamedTuple):
    """What came from outside: an order, `create` (target is the unit type's id, goal the spot) or `kill`."""

    loop: int
    what: str
    tag: int
    target: int = 0  # tag
    goal: tuple[float, float] | None = None  # relative to the map's centre, unrounded; of `create` a map point
    owner: int = 0


def replay_of(
    map_name: str, enemy_order: str, seed: int, loops: tuple[int, int], first_tag: int, log: Sequence[Event]
) -> bytes:
    """The file of a battle, from its first to its last loop; whose log is full does not begin with its beginning."""
    content = {
        "format": REPLAY_FORMAT,
        "map": map_name,
        "enemy_order": enemy_order,
        "seed": seed,
        "begin_loop": loops[0],
        "loop": loops[1],
        "first_tag": first_tag,
        "whole": len(log) < MOST_LOGGED,
        "events": [event._asdict() for event in log],
    }
    return json.dumps(content).encode()


def battle_seed(seed: int, battle: int) -> int:
    """The seed of a game's n-th battle: the game's own, then draws from it."""
    return int(philox(np.uint64(seed), _DOMAIN, np.uint64(battle), np.uint64(0))[0]) if battle else seed


@dataclass(frozen=True, kw_only=True)
class Command:
    """An order that the engine knows, ready to be given when a unit has done what comes before."""

    kind: int
    target: int = 0  # tag
    goal: tuple[float, float] | None = None  # relative to the map's centre, unrounded
    again: bool = False  # one of a patrol's two ends: it goes to the end of the queue


@dataclass(kw_only=True)
class Game:
    """`seed` is that of the first battle; `tags` counts the units of all games of a client: no tag comes twice."""

    map_name: str
    seed: int
    tags: Iterator[int]
    loop: int = 0
    battle: int = 0
    result: int = 0
    enemy_order: str = "random"
    control_enemy: bool = False
    died: list[int] = field(default_factory=list)  # tags, since the last observation
    queues: dict[int, deque[Command]] = field(default_factory=dict)
    log: deque[Event] = field(default_factory=lambda: deque(maxlen=MOST_LOGGED))

    def __post_init__(self) -> None:
        self.ends = self.map_name.endswith(BATTLE_SUFFIX)
        self.flat = self.map_name == FLAT_MAP
        self.scenario = scenario_of_map(self.map_name)
        self.scripted = self.flat or self.scenario.generated is not None
        self.terrain = terrain(self.scenario.terrain)
        kinds = _AGENT_TYPES if self.scripted else self.scenario.agent_types
        self.custom = {} if self.ends else custom_ids(kinds)
        self._begin(self.seed)

    def _begin(self, seed: int) -> None:
        # No head start: a game's first battle has none, and in later ones SMAC waits a loop longer than armies need.
        if self.flat:
            self.arena = Arena(
                dataclasses.replace(_FLAT, agents=_SOMEBODY.agents, enemies=_SOMEBODY.enemies), seed, head_start=False
            )
            self.arena.empty()
        else:
            self.arena = Arena(self.scenario, seed, head_start=False, enemy_order=self.enemy_order)
        if self.ends:
            self.arena.wake()
        self.begin_loop = self.loop
        self._reslot([-1] * self.arena.units)
        self.first_tag = self.tag_of[0] if self.tag_of else 0  # 0: the first unit to be created has it
        self.battle_seed = seed
        self.queues.clear()
        self.log.clear()

    def _count(self) -> None:
        """See who lives; called whenever that may have changed, because every request asks for it."""
        self.alive: list[int] = np.nonzero(self.arena.alive)[0].tolist()  # slots
        self._living = {self.tag_of[slot] for slot in self.alive}

    def owner(self, slot: int) -> int:
        return PLAYER if slot < self.arena.agents else OPPONENT

    def api_type(self, slot: int) -> int:
        number = int(self.arena.unit_type[slot])
        passive = slot < self.arena.agents and self.arena.passive[slot]
        return self.custom[number] if passive and number in self.custom else STANDARD_ID[number]

    def slot(self, tag: int) -> int | None:
        return self.slot_of[tag] if tag in self._living else None

    def run(self, loops: int, check: Callable[[], None] = lambda: None) -> None:
        """Game loops. On a map that goes on, armies that are both dead are created anew in the first of them.

        `check` is called now and then; what it raises ends the run after the loops done so far."""
        if not self.alive and not self.ends and not self.flat and loops > 0:
            self.loop += 1
            loops -= 1
            self.battle += 1
            self._begin(battle_seed(self.seed, self.battle))
        before = self.alive
        try:
            self._run_loops(loops, check)
        finally:
            self._count()
            if len(self.alive) < len(before):
                self.died += [self.tag_of[slot] for slot in before if self.tag_of[slot] not in self._living]
            if self.ends:
                self.result = _RESULT[self.standing()]

    def _run_loops(self, loops: int, check: Callable[[], None]) -> None:
        while loops > 0:
            some = 1 if self.queues else min(loops, LOOPS_BETWEEN_CHECKS)
            if self.scripted:
                some = min(some, SCRIPT_LOOPS - self.loop % SCRIPT_LOOPS)
                if self.loop % SCRIPT_LOOPS == 0:
                    self.arena.attack_nearest()
            self.arena.run_loops(some)
            self.loop += some
            loops -= some
            if self.queues:
                self._count()
                self._advance_queues()
            if self.loop % LOOPS_BETWEEN_CHECKS < some:
                check()

    def _advance_queues(self) -> None:
        orders = self.arena.orders()
        for tag in list(self.queues):
            slot = self.slot(tag)
            if slot is None or not self.queues[tag]:
                del self.queues[tag]
            elif orders.kind[0, slot] == Order.IDLE:
                command = self.queues[tag].popleft()
                self.queues[tag].extend([command] * command.again)
                self.obey(slot, command)

    def obey(self, slot: int, command: Command) -> None:
        """Give an order now; a target that has died meanwhile is no order."""
        target = self.slot(command.target) if command.target else None
        if command.target and target is None:
            return
        self.log.append(Event(self.loop, ORDERS[command.kind], self.tag_of[slot], command.target, command.goal))
        if command.goal is not None:
            self.arena.order_to(slot, command.kind, command.goal)
        else:
            self.arena.order(0, slot, command.kind, target=-1 if target is None else target)

    def standing(self) -> Outcome:
        """Who has won by SMAC's rules; RUNNING while both sides can fight."""
        heals = bool(rules.table()[self.arena.unit_type, rules.HEALS].any())
        return rules.standing(self.arena.snapshot(), heals=heals)

    def create(self, api_type: int, owner: int, point: tuple[float, float]) -> None:
        """A new unit at a point; the map's own kinds only for the player."""
        numbers = {api_id: number for number, api_id in self.custom.items()}
        custom = owner == PLAYER and api_type in numbers
        number = numbers[api_type] if custom else TYPE_OF_STANDARD.get(api_type)
        if number is None:
            known = ", ".join(str(api_id) for api_id in sorted({*TYPE_OF_STANDARD, *numbers}))
            raise UsageError(f"no unit type {api_type} on map {self.map_name!r}; there are {known}")
        if owner not in (PLAYER, OPPONENT):
            raise UsageError(f"no player {owner} to own a unit; there are 1 and 2")
        if not all(0 <= coordinate <= SIZE for coordinate in point):
            raise UsageError(f"the point {point} lies outside of the map, which reaches from 0 to {SIZE}")
        if self.flat and not self.alive and self.arena.units:
            self.battle += 1
            self._begin(battle_seed(self.seed, self.battle))
        if len(self.alive) >= MOST_UNITS:
            raise UsageError(f"there are {MOST_UNITS} units already, and no room for more")
        if self.arena.units > MOST_UNITS:
            self._reslot(self.arena.forget_dead())
        spot = self._free_spot(number, (min(point[0], _EDGE), min(point[1], _EDGE)))
        order = self.arena.add(number, spot, agent=owner == PLAYER, passive=custom)
        self._reslot(order)
        self.log.append(Event(self.loop, CREATE, self.tag_of[order.index(-1)], api_type, spot, owner))

    def _free_spot(self, number: int, point: tuple[float, float]) -> tuple[float, float]:
        """The point itself if the unit can stand there, else the nearest spot where it can."""
        x, y = float(point[0]), float(point[1])
        kinds, places = self.arena.unit_type[self.alive], self.arena.centred[self.alive] + CENTRE
        tables = (contacts(), planes(), self.terrain.passable, spiral())
        spot = nearest_free(x, y, np.uint8(number), kinds, places, len(kinds), *tables)
        if spot == NOWHERE:
            raise UsageError(f"there is no room for a {UNIT_TYPES[number].name} near {point}")
        dx, dy = spiral()[spot]
        return x + float(dx), y + float(dy)

    def kill(self, tags: list[int]) -> None:
        """Take units out; tags of nobody are ignored, as in the game."""
        for tag in tags:
            slot = self.slot(tag)
            if slot is not None:
                self.arena.kill(0, slot)
                self.log.append(Event(self.loop, KILL, tag))
                self.died.append(tag)
                self._living.discard(tag)
        self._count()
        if self.ends:
            self.result = _RESULT[self.standing()]

    def _reslot(self, order: list[int]) -> None:
        """`order`: of each slot the one that its unit had before, -1 for a new unit."""
        self.tag_of: list[int] = [self.tag_of[old] if old >= 0 else next(self.tags) for old in order]
        self.slot_of = {tag: slot for slot, tag in enumerate(self.tag_of)}
        self._count()

    def replay(self) -> bytes:
        """What happened in this battle from outside, as JSON: enough to play it again on the engine (`saved.py`),
        nothing the game could read."""
        loops = self.begin_loop, self.loop
        return replay_of(self.map_name, self.enemy_order, self.battle_seed, loops, self.first_tag, self.log)
