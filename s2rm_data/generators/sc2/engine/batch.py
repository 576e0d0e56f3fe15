"""`Engine`: a batch of battles of one scenario, stepped together in compiled code without the interpreter lock."""

# B battles, U units of both sides (agents first), N agents, E enemies, A = 6 + E actions (6 + max(N, E) with healers)

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from s2rm_data.errors import UsageError
from s2rm_data.generators.sc2.codes import Action, Order, Outcome
from s2rm_data.generators.sc2.engine import layout as at
from s2rm_data.generators.sc2.engine.acting import act_batch, look_batch
from s2rm_data.generators.sc2.engine.chance import JITTERS, NEXT_DRAW, SEED, WORDS, setup_draws
from s2rm_data.generators.sc2.engine.generated import (
    attack_nearest,
    enemy_points,
    mask_ranges,
    mask_targets,
    rescale_reward,
)
from s2rm_data.generators.sc2.engine.loop import LOOK_LOOPS
from s2rm_data.generators.sc2.engine.step import (
    KILL_REWARD,
    WIN_REWARD,
    available_batch,
    order_unit,
    run_loops,
    step_batch,
)
from s2rm_data.generators.sc2.formation import CENTRE, formation, formations
from s2rm_data.generators.sc2.maps import CELLS, SIZE, Terrain, terrain
from s2rm_data.generators.sc2.scenarios import Scenario
from s2rm_data.generators.sc2.snapshot import Snapshot
from s2rm_data.generators.sc2.units import UNIT_TYPES

# Measured: in every episode but a game's first, enemies have walked one loop when SMAC first observes (8m 93 of 93).
HEAD_START_LOOPS = 1


@dataclass(frozen=True, kw_only=True)
class Orders:
    """What every unit is doing: `kind` is an order of the engine, `target` the slot it names or has acquired, or -1."""

    kind: NDArray[np.int8]  # (B, U) codes.Order
    target: NDArray[np.int16]  # (B, U)
    point: NDArray[np.float32]  # (B, U, 2) map coordinates; where MOVE and ATTACK_MOVE go


class Engine:
    """Battles of one scenario, one for each seed. A battle that is over stays as it ended.

    `mirror` puts the agents under the enemies' rules as well: they pick targets themselves and attack-move to the
    enemies' spawn point, until ordered otherwise; who arrives hunts what is left. `mirrored_formation` makes armies
    that are alike start as mirror images, which the game does not. `jitter` off makes every weapon period exact.
    `head_start` off leaves out the loop that enemies have walked when SMAC first observes. `position` (U, 2), map
    coordinates, replaces formation and head start, for tests and clients that place units themselves.
    """

    def __init__(
        self,
        scenario: Scenario,
        seeds: ArrayLike,
        *,
        mirror: bool = False,
        jitter: bool = True,
        mirrored_formation: bool = False,
        head_start: bool = True,
        position: ArrayLike | None = None,
    ) -> None:
        self.scenario = scenario
        self.seeds = np.atleast_1d(np.asarray(seeds, dtype=np.uint64))
        if scenario.generated is not None:
            self.unit_type, drawn = scenario.generated.draw(self.seeds)  # (B, U), (B, U, 2)
        else:
            self.unit_type = formation(scenario).unit_type  # (U,)
        self.agents = scenario.agent_count
        self.units = self.unit_type.shape[-1]
        ground = terrain(scenario.terrain)
        self._table, self._land, self._ways = at.table(), ground.passable, _ways(ground)
        self._limits = np.array([scenario.limit_steps, _max_reward(scenario)])
        self.actions = Action.ATTACK + max(scenario.enemy_count, self.agents if scenario.heals else 0)
        if position is None and scenario.generated is not None:
            centred = drawn - CENTRE
        elif position is None:
            centred = self._draw_formations(mirrored_formation)
        else:
            centred = np.broadcast_to(self._checked(position), (len(self.seeds), self.units, 2))
        battles = len(self.seeds)
        self.floats = np.zeros((battles, at.FLOAT_ROWS, self.units))
        self.ints = np.zeros((battles, at.INT_ROWS, self.units), dtype=np.int64)
        self.counters = np.zeros((battles, at.COUNTERS), dtype=np.int64)
        self.words = np.zeros((battles, WORDS), dtype=np.uint64)
        self.reward = np.zeros(battles)  # (B,) of the last step
        self._near = at.scratch(self.units)
        self._fill(centred, mirror)
        self.words[:, JITTERS] = jitter
        if position is None:
            self._scatter_looks()
        if position is None and head_start:
            self.run_loops(HEAD_START_LOOPS)

    def _scatter_looks(self) -> None:
        """Give every unit its own phase of looking for targets; units that were placed by hand look at once."""
        self.ints[:, at.SCAN_WAIT] = np.stack([self._look_phase(slot) for slot in range(self.units)], axis=1)
        self.ints[:, at.SCAN_WAIT][self.ints[:, at.ORDER] == Order.HUNT] = 0  # they are sent at whom they attack

    def _look_phase(self, number: int) -> NDArray[np.int64]:
        """(B,) loops until the unit of that number, counted over both sides, looks for the first time."""
        return np.floor(self._draw(2 + number) * LOOK_LOOPS).astype(np.int64) + 1

    def _checked(self, position: ArrayLike) -> NDArray[np.float64]:
        centred = np.asarray(position, dtype=np.float64) - CENTRE
        if centred.shape != (self.units, 2):
            raise UsageError(f"positions have shape {centred.shape}; {self.scenario.name!r} takes {(self.units, 2)}")
        return centred

    def _draw(self, number: int) -> NDArray[np.float64]:
        """(B,) numbers in [0, 1), one for each seed; what is drawn before the first loop has numbers of its own."""
        drawn = np.empty(len(self.seeds))
        setup_draws(self.seeds, number, drawn)
        return drawn

    def _draw_formations(self, mirrored: bool) -> NDArray[np.float64]:
        """(B, U, 2) start positions relative to the map's centre."""
        ways = formations(self.scenario, mirrored=mirrored)
        bounds = np.cumsum([chance for chance, _ in ways])
        chosen = np.minimum(np.searchsorted(bounds, self._draw(0), side="right"), len(ways) - 1)
        return np.array([start.position for _, start in ways])[chosen]

    @property
    def _shared(self) -> tuple[object, ...]:
        return self.floats, self.ints, self._table, self.agents, self._land, self._ways

    def _fill(self, centred: NDArray[np.float64], mirror: bool) -> None:
        stats = self._table[self.unit_type]  # (U, TYPE_COLUMNS), or one for each battle
        self.floats[:, at.X], self.floats[:, at.Y] = centred[..., 0], centred[..., 1]
        for row, column in ((at.HEALTH, at.HEALTH_MAX), (at.SHIELD, at.SHIELD_MAX), (at.ENERGY, at.ENERGY_START)):
            self.floats[:, row] = stats[..., column]
        self.floats[:, at.FACE_X] = np.where(np.arange(self.units) < self.agents, 1.0, -1.0)
        for row in (at.TARGET, at.FOCUS, at.PENDING_TARGET):
            self.ints[:, row] = -1
        self.ints[:, at.MOVED_LOOP] = -(10**6)
        self.ints[:, at.QUEUE] = np.arange(self.units)
        self.ints[:, at.KIND] = self.unit_type
        self.ints[:, at.PASSIVE, : self.agents] = not mirror
        self.counters[:, at.QUEUED] = self.units
        self.words[:, SEED] = self.seeds
        self.words[:, NEXT_DRAW] = 1
        self.floats[:, at.GOAL_X], self.floats[:, at.GOAL_Y] = self.floats[:, at.X], self.floats[:, at.Y]
        self.ints[:, at.DONE_LOOP] = self.ints[:, at.WAIT_LOOP] = -1
        self.ints[:, at.AFTER] = Order.HUNT if mirror else Order.IDLE
        enemies = slice(self.agents, None)
        self.ints[:, at.ORDER, enemies] = self.scenario.order
        self._send(enemies, self._enemy_goal())
        if mirror and self.scenario.generated is not None:
            self.ints[:, at.ORDER] = Order.HUNT
        elif mirror:
            squads = self.scenario.enemies
            there = np.average([squad.spawn for squad in squads], axis=0, weights=[squad.count for squad in squads])
            self.ints[:, at.ORDER, : self.agents] = Order.ATTACK_MOVE
            self._send(slice(0, self.agents), np.tile(there - CENTRE, (len(self.seeds), 1)))

    def _enemy_goal(self) -> NDArray[np.float64]:
        """(B, 2) the point the enemies are sent to, relative to the map's centre."""
        near, far = (np.array(point) - CENTRE for point in self.scenario.order_segment)
        return near + (far - near) * self._draw(1)[:, None]

    def _send(self, army: slice, goal: NDArray[np.float64]) -> None:
        own = self._own_goals(army, goal)
        self.floats[:, at.GOAL_X, army], self.floats[:, at.GOAL_Y, army] = own[..., 0], own[..., 1]

    def _own_goals(self, army: slice | list[int], goal: NDArray[np.float64]) -> NDArray[np.float64]:
        """(B, n, 2) goals of an army under one order: units keep their places around the army's centre, so that all
        walk parallel ways; who would end in a wall goes to the point itself.
        """
        place = np.stack([self.floats[:, at.X, army], self.floats[:, at.Y, army]], axis=-1)  # (B, n, 2)
        own = goal[:, None] + place - place.mean(axis=1, keepdims=True)
        cells = np.clip(np.floor(own + CENTRE).astype(np.int64), 0, SIZE - 1)
        planes = self._table[self.unit_type[..., army], at.PLANE].astype(np.int64)
        inside = (np.abs(own) < CENTRE).all(axis=-1) & self._land[planes, cells[..., 0], cells[..., 1]]
        return np.where(inside[..., None], own, goal[:, None])

    def step(self, actions: ArrayLike) -> None:
        """One SMAC step (8 loops) of every running battle; actions (B, N) are SMAC's numbers, senseless ones are
        ignored.
        """
        given = np.ascontiguousarray(actions, dtype=np.int64)
        if given.shape != (len(self.seeds), self.agents):
            raise UsageError(f"actions have shape {given.shape}; this batch takes {(len(self.seeds), self.agents)}")
        if self.scenario.generated is None:
            step_batch(*self._shared, self._limits, self.counters, self.words, given, self.reward, self._near)
            return
        units, before = (self.floats, self.ints, self._table, self.agents, self.counters), np.empty(len(self.seeds))
        enemy_points(self.floats, self.agents, self.counters, before)
        attack_nearest(*units)
        step_batch(*self._shared, self._limits, self.counters, self.words, given, self.reward, self._near)
        rescale_reward(*units, before, self.reward)

    def act(self, actions: NDArray[np.int64], move_amount: float) -> None:
        """Give the agents' actions (B, N) as orders, moves by `move_amount`, and run no loop; `run_loops` follows."""
        if self.scenario.generated is not None:
            attack_nearest(self.floats, self.ints, self._table, self.agents, self.counters)
        act_batch(self.floats, self.ints, self._table, self.agents, actions, move_amount)

    def run_loops(self, loops: int) -> None:
        """Game loops without actions; steps, reward and outcome do not change."""
        run_loops(*self._shared, self.counters, self.words, loops, self._near)

    def adopt(self, rows: NDArray[np.int64], other: Engine, other_rows: NDArray[np.int64]) -> None:
        """Replace the battles `rows` by copies of battles of another batch of the same scenario."""
        for name in ("seeds", "floats", "ints", "counters", "words", "reward"):
            getattr(self, name)[rows] = getattr(other, name)[other_rows]

    def order(
        self, battle: int, unit: int, kind: int, *, target: int = -1, point: tuple[float, float] | None = None
    ) -> None:
        """Any order to any unit of either side, with the slot or map point it needs; impossible ones are ignored."""
        units = self.units
        if not 0 <= unit < units or (kind in (Order.ATTACK, Order.HEAL) and not 0 <= target < units):
            raise UsageError(f"order {kind} to unit {unit} at target {target}; units and targets are 0 to {units - 1}")
        x, y = (point[0] - CENTRE, point[1] - CENTRE) if point else self.floats[battle, [at.X, at.Y], unit]
        order_unit(self.floats, self.ints, self._table, battle, unit, kind, target, x, y)

    def kill(self, battle: int, unit: int) -> None:
        """Take a unit out without a blow (no blast, no reward of its own)."""
        for row in (at.HEALTH, at.SHIELD, at.ENERGY, at.COOLDOWN, at.WINDUP, at.PENDING):
            self.floats[battle, row, unit] = 0.0
        self.ints[battle, at.ORDER, unit] = Order.IDLE
        self.ints[battle, [at.TARGET, at.FOCUS], unit] = -1

    def place(self, battle: int, unit: int, point: tuple[float, float]) -> None:
        """Put a unit, dead or alive, fresh and idle onto a map point."""
        self.kill(battle, unit)
        stats = self._table[self.ints[battle, at.KIND, unit]]
        self.floats[battle, [at.X, at.Y], unit] = np.array(point) - CENTRE
        fresh = stats[[at.HEALTH_MAX, at.SHIELD_MAX, at.ENERGY_START]]
        self.floats[battle, [at.HEALTH, at.SHIELD, at.ENERGY], unit] = fresh
        self.floats[battle, [at.BACKSWING, at.SHIELD_WAIT, at.PACE], unit] = 0.0
        self.ints[battle, [at.FUSE, at.BEND, at.SCAN_WAIT], unit] = 0
        queued = self.counters[battle, at.QUEUED]
        if unit not in self.ints[battle, at.QUEUE, :queued]:
            self.ints[battle, at.QUEUE, queued] = unit
            self.counters[battle, at.QUEUED] = queued + 1

    def adjust(
        self,
        battle: int,
        unit: int,
        *,
        health: float | None = None,
        shield: float | None = None,
        energy: float | None = None,
        cooldown_loops: float | None = None,
    ) -> None:
        """Set what is given of a living unit, as a debug command would; for tests and clients that set up a moment."""
        values = {at.HEALTH: health, at.SHIELD: shield, at.ENERGY: energy, at.COOLDOWN: cooldown_loops}
        for row, value in values.items():
            if value is not None:
                self.floats[battle, row, unit] = value

    def state_bytes(self, battle: int | None = None) -> bytes:
        """All numbers of one battle or of all, little-endian: equal bytes are equal battles, to the bit."""
        which = slice(None) if battle is None else battle
        return self.floats[which].astype("<f8").tobytes() + self.ints[which].astype("<i8").tobytes()

    @property
    def position(self) -> NDArray[np.float64]:
        """(B, U, 2) map coordinates, the dead where they fell; not rounded to the API's float32."""
        return np.stack([self.floats[:, at.X], self.floats[:, at.Y]], axis=-1) + CENTRE

    def snapshot(self) -> Snapshot:
        """What policies and the renderer see; fresh arrays."""
        shape = (len(self.seeds), self.units)
        position = np.empty((*shape, 2), dtype=np.float32)
        health, shield, energy, cooldown = np.empty((4, *shape), dtype=np.float32)
        look_batch(self.floats, position, health, shield, energy, cooldown)
        return Snapshot(
            agents=self.agents,
            unit_type=self.unit_type if self.scenario.generated is None else self.kinds.astype(np.uint8),
            position=position,
            health=health,
            shield=shield,
            energy=energy,
            cooldown_loops=cooldown,
        )

    def available(self) -> NDArray[np.bool_]:
        """(B, N, A) SMAC's availability masks."""
        masks = np.empty((len(self.seeds), self.agents, self.actions), dtype=np.bool_)
        available_batch(self.floats, self.ints, self._table, self.agents, self._land, masks)
        if self.scenario.generated is not None:
            mask_targets(self.floats, self.ints, self._table, self.agents, mask_ranges(), masks)
        return masks

    def orders(self) -> Orders:
        kind = self.ints[:, at.ORDER].astype(np.int8)
        named = np.where((kind == Order.ATTACK) | (kind == Order.HEAL), self.ints[:, at.TARGET], self.ints[:, at.FOCUS])
        point = np.stack([self.floats[:, at.GOAL_X], self.floats[:, at.GOAL_Y]], axis=-1) + CENTRE
        return Orders(kind=kind, target=named.astype(np.int16), point=point.astype(np.float32))

    @property
    def kinds(self) -> NDArray[np.int64]:
        """(B, U) unit types, battle by battle."""
        return self.ints[:, at.KIND]

    @property
    def outcome(self) -> NDArray[np.int64]:
        """(B,) RUNNING, WIN, LOSS, DRAW or LIMIT."""
        return self.counters[:, at.OUTCOME]

    @property
    def done(self) -> NDArray[np.bool_]:
        return self.counters[:, at.OUTCOME] != Outcome.RUNNING

    @property
    def step_count(self) -> NDArray[np.int64]:
        return self.counters[:, at.STEPS]

    @property
    def facing(self) -> NDArray[np.float32]:
        """(B, U, 2) unit vectors."""
        return np.stack([self.floats[:, at.FACE_X], self.floats[:, at.FACE_Y]], axis=-1).astype(np.float32)

    @property
    def damage_dealt(self) -> NDArray[np.float64]:
        """(B, U) health and shields each unit took off others in the last step."""
        return self.floats[:, at.DEALT]

    @property
    def damage_taken(self) -> NDArray[np.float64]:
        """(B, U) health and shields each unit lost to others in the last step."""
        return self.floats[:, at.TAKEN]

    @property
    def restored(self) -> NDArray[np.float64]:
        """(B, U) health and shields each unit regained in the last step."""
        return self.floats[:, at.RESTORED]

    @property
    def spent(self) -> NDArray[np.float64]:
        """(B, U) own health each unit gave up in the last step: a baneling that blew itself up."""
        return self.floats[:, at.SPENT]


def _max_reward(scenario: Scenario) -> float:
    """What a win without regeneration adds up to before scaling, SMAC's `max_reward`."""
    enemies = [(UNIT_TYPES[squad.unit_type], squad.count) for squad in scenario.enemies]
    points = sum(count * (unit.health + unit.shield + KILL_REWARD) for unit, count in enemies)
    return points + WIN_REWARD


@cache
def _ways(ground: Terrain) -> NDArray[np.int16]:
    """The terrain's waypoints, or none at all if every way on it is straight."""
    straight = (ground.waypoint == np.arange(CELLS)) | (ground.waypoint < 0)
    return np.empty((2, 0, 0), dtype=np.int16) if straight.all() else ground.waypoint
