"""`Engine`: a batch of battles of one scenario, stepped together in compiled code without the interpreter lock."""

# B battles, U units of both sides (agents first), N agents, E enemies, A = 6 + E actions (6 + max(N, E) with healers)

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike, NDArray

from s2rm_data.core.check import checked, one_of
from s2rm_data.core.errors import UsageError
from s2rm_data.starcraft.codes import Action, Order, Outcome, Snapshot
from s2rm_data.starcraft.engine import layout as at
from s2rm_data.starcraft.engine.chance import JITTERS, NEXT_DRAW, SEED, WORDS, setup_draws
from s2rm_data.starcraft.engine.loop import LOOK_LOOPS
from s2rm_data.starcraft.engine.step import act_batch, attack_nearest, look_batch, order_unit, run_loops, step_batch
from s2rm_data.starcraft.formation import CENTRE, formation, formations
from s2rm_data.starcraft.rules import MOVE_AMOUNT, Rewards, action_count, table, write_masks
from s2rm_data.starcraft.scenarios import Scenario
from s2rm_data.starcraft.terrain_maps import CELLS, SIZE, Terrain, terrain
from s2rm_data.starcraft.units import GROUND

# How enemies are numbered: at random in every battle, as in the game, or in the order in which they are created.
ENEMY_ORDERS = ("random", "created")
_NUMBERING = 1 << 20  # draws from this number on, of those that set a battle up, number the enemies
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
    `head_start` off leaves out the loop that enemies have walked when SMAC first observes. `enemy_order` is one of
    ENEMY_ORDERS. `position` (U, 2), map coordinates, replaces formation, numbering and head start, for tests and
    clients that place units themselves."""

    def __init__(
        self,
        scenario: Scenario,
        seeds: ArrayLike,
        *,
        mirror: bool = False,
        jitter: bool = True,
        mirrored_formation: bool = False,
        head_start: bool = True,
        enemy_order: str = "random",
        position: ArrayLike | None = None,
    ) -> None:
        self.scenario = scenario
        self.enemy_order: str = checked("enemy_order", enemy_order, Annotated[str, one_of(*ENEMY_ORDERS)])
        self.seeds = np.atleast_1d(np.asarray(seeds, dtype=np.uint64))
        if scenario.generated is not None:
            self.unit_type, drawn = scenario.generated.draw(self.seeds)  # (B, U), (B, U, 2)
        else:
            self.unit_type = formation(scenario).unit_type  # (U,)
        self.agents = scenario.agent_count
        self.units = self.unit_type.shape[-1]
        self._table, self._ground = at.table(), terrain(scenario.terrain)
        generated = scenario.generated is not None
        self._kinds = table(own_ranges=generated)
        self._rules = scenario.limit_steps, scenario.has_healers, Rewards(clipped=generated), self._kinds
        self._looking = np.ones((0, self.agents, 2))  # no cone of sight
        self.actions = action_count(self.agents, scenario.enemy_count, heals=scenario.heals)
        if position is None and scenario.generated is not None:
            centred = drawn - CENTRE
        elif position is None:
            centred = self._draw_formations(mirrored_formation)
        else:
            centred = np.broadcast_to(self._checked(position), (len(self.seeds), self.units, 2))
        if position is None and enemy_order == "random":
            centred = self._number_enemies(centred)
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

    def _number_enemies(self, centred: NDArray[np.float64]) -> NDArray[np.float64]:
        """Give each battle's enemies slots at random; (B, U, 2) start positions in the new slots."""
        enemies = self.scenario.enemy_count
        drawn = np.stack([self._draw(_NUMBERING + enemy) for enemy in range(enemies)], axis=1)
        ours = np.broadcast_to(np.arange(self.agents), (len(self.seeds), self.agents))
        slots = np.concatenate([ours, self.agents + np.argsort(drawn, axis=1, kind="stable")], axis=1)  # (B, U)
        if self.unit_type.ndim == 2 or len(set(self.unit_type[self.agents :].tolist())) > 1:
            every = np.broadcast_to(self.unit_type, slots.shape)
            self.unit_type = np.take_along_axis(every, slots, axis=1)
        return np.take_along_axis(centred, slots[..., None], axis=1)

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
        ground = self._ground
        return self.floats, self.ints, self._table, self.agents, ground.passable, _ways(ground)

    def _fill(self, centred: NDArray[np.float64], mirror: bool) -> None:
        stats = self._table[self.unit_type]  # (U, TYPE_COLUMNS), or one for each battle
        self.floats[:, at.X], self.floats[:, at.Y] = centred[..., 0], centred[..., 1]
        for row, column in ((at.SHIELD, at.SHIELD_MAX), (at.ENERGY, at.ENERGY_START)):
            self.floats[:, row] = stats[..., column]
        self.floats[:, at.FACE_X] = np.where(np.arange(self.units) < self.agents, 1.0, -1.0)
        for row in (at.TARGET, at.FOCUS, at.PENDING_TARGET, at.TURRET_TARGET):
            self.ints[:, row] = -1
        self.ints[:, at.MOVED_LOOP] = -(10**6)
        self.ints[:, at.QUEUE] = np.arange(self.units)
        self.ints[:, at.KIND] = self.unit_type
        self.ints[:, at.PASSIVE, : self.agents] = not mirror
        self.floats[:, at.HEALTH] = self.floats[:, at.HEALTH_MAX] = self._most_health()
        self.counters[:, at.QUEUED] = self.units
        self.words[:, SEED] = self.seeds
        self.words[:, NEXT_DRAW] = 1
        self.floats[:, at.GOAL_X], self.floats[:, at.GOAL_Y] = self.floats[:, at.X], self.floats[:, at.Y]
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

    def _most_health(self) -> NDArray[np.float64]:
        """(B, U) passive units are the maps' own copies of the game's."""
        stats = self._table[self.kinds]
        return np.where(self.ints[:, at.PASSIVE] == 1, stats[..., at.AGENT_HEALTH], stats[..., at.ENEMY_HEALTH])

    def _enemy_goal(self) -> NDArray[np.float64]:
        """(B, 2) the point the enemies are sent to, relative to the map's centre."""
        near, far = (np.array(point) - CENTRE for point in self.scenario.order_segment)
        return near + (far - near) * self._draw(1)[:, None]

    def _send(self, army: slice, goal: NDArray[np.float64]) -> None:
        own = self._own_goals(army, goal)
        self.floats[:, at.GOAL_X, army], self.floats[:, at.GOAL_Y, army] = own[..., 0], own[..., 1]

    def _own_goals(self, army: slice | list[int], goal: NDArray[np.float64]) -> NDArray[np.float64]:
        """(B, n, 2) goals of an army under one order: units keep their places around the army's centre, so that all
        walk parallel ways; who would end in a wall goes to the point itself."""
        place = np.stack([self.floats[:, at.X, army], self.floats[:, at.Y, army]], axis=-1)  # (B, n, 2)
        own = goal[:, None] + place - place.mean(axis=1, keepdims=True)
        cells = np.clip(np.floor(own + CENTRE).astype(np.int64), 0, SIZE - 1)
        planes = self._table[self.unit_type[..., army], at.PLANE].astype(np.int64)
        inside = (np.abs(own) < CENTRE).all(axis=-1) & self._ground.passable[planes, cells[..., 0], cells[..., 1]]
        return np.where(inside[..., None], own, goal[:, None])

    def step(self, actions: ArrayLike) -> None:
        """One SMAC step (8 loops) of every running battle; of actions (B, N), senseless ones are ignored."""
        given = np.ascontiguousarray(actions, dtype=np.int64)
        if given.shape != (len(self.seeds), self.agents):
            raise UsageError(f"actions have shape {given.shape}; this batch takes {(len(self.seeds), self.agents)}")
        step_batch(*self._shared, *self._rules, self.counters, self.words, given, self.reward, self._near)

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
        for row in (at.HEALTH, at.SHIELD, at.ENERGY, at.COOLDOWN, at.WINDUP, at.PENDING, at.TURRET_WINDUP):
            self.floats[battle, row, unit] = 0.0
        self.ints[battle, at.ORDER, unit] = Order.IDLE
        self.ints[battle, [at.TARGET, at.FOCUS], unit] = -1

    def place(self, battle: int, unit: int, point: tuple[float, float]) -> None:
        """Put a unit, dead or alive, fresh and idle onto a map point."""
        self.kill(battle, unit)
        stats = self._table[self.ints[battle, at.KIND, unit]]
        self.floats[battle, [at.X, at.Y], unit] = np.array(point) - CENTRE
        most = stats[at.AGENT_HEALTH if self.ints[battle, at.PASSIVE, unit] else at.ENEMY_HEALTH]
        fresh = most, most, stats[at.SHIELD_MAX], stats[at.ENERGY_START]
        self.floats[battle, [at.HEALTH_MAX, at.HEALTH, at.SHIELD, at.ENERGY], unit] = fresh
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
            unit_type=self.unit_type if self.unit_type.ndim == 1 else self.kinds.astype(np.uint8),
            position=position,
            health=health,
            shield=shield,
            energy=energy,
            cooldown_loops=cooldown,
        )

    def available(self) -> NDArray[np.bool_]:
        """(B, N, A) SMAC's availability masks."""
        masks = np.zeros((len(self.seeds), self.agents, self.actions), dtype=np.bool_)
        place, health = self.floats[:, at.X : at.Y + 1].transpose(0, 2, 1), self.floats[:, at.HEALTH]
        write_masks(
            place, health, self.kinds, self._kinds, self._ground.passable[GROUND], CENTRE, MOVE_AMOUNT, Action.ATTACK,
            self._looking, 0.0, masks,
        )  # fmt: skip
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


@cache
def _ways(ground: Terrain) -> NDArray[np.int16]:
    """The terrain's waypoints, or none at all if every way on it is straight."""
    straight = (ground.waypoint == np.arange(CELLS)) | (ground.waypoint < 0)
    none = np.empty((2, 0, 0), dtype=np.int16)
    none.setflags(write=False)  # as the waypoints are: Numba would compile the engine for either kind
    return none if straight.all() else ground.waypoint
