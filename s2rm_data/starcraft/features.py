"""SMAC's feature vectors: what a SMAC agent observes, the global state and the masks, computed for whole batches.

    features = Features(engine.unit_type, engine.agents)
    observation = features.observe(engine.snapshot(), engine.available())      # (B, N, O)
    state = features.state(engine.snapshot(), last_actions)                    # (B, S)

The layout is that of smac/env/starcraft2/starcraft2.py with the options of its constructor. An observation is: the
four moves available (pathing grid, terrain height); for each enemy, then for each other agent, in slot order: attack
available (visible), distance, relative x and y, health, shield, unit type (an agent's last action); own health, shield,
unit type (the time). What is dead or out of sight is all zeros, and so is all that a dead agent observes, but
the time. Everything is computed from the float32 values of a snapshot, as SMAC computes it from the API's.

SMACv2's options add to this: own place; ranges of the unit types; a conic field of view, with actions that turn it
between the moves and the attacks, and its direction after the shield in own features and the agents' state; before it,
what a battle has drawn for each agent (`Traits`)."""

# B battles, U units of both sides (agents first), N agents, A actions, O and S sizes of observation and state

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from s2rm_data.core.check import between, check_fields
from s2rm_data.starcraft import feature_vectors as vectors
from s2rm_data.starcraft import rules
from s2rm_data.starcraft.codes import Action, Snapshot
from s2rm_data.starcraft.generated import Generated
from s2rm_data.starcraft.terrain_maps import SIZE, Terrain
from s2rm_data.starcraft.units import NUMBER_OF, SMAC_RANK, UNIT_TYPES

SIGHT = 9.0  # SMAC's sight range, centre to centre
# SMAC's table of maximal cooldowns in loops; a medivac shows its energy instead. Its own, not those of the unit table.
MAX_COOLDOWN = {
    "marine": 15.0,
    "marauder": 25.0,
    "medivac": 200.0,
    "stalker": 35.0,
    "zealot": 22.0,
    "colossus": 24.0,
    "hydralisk": 10.0,
    "zergling": 11.0,
    "baneling": 1.0,
}
_STALKER, _ZEALOT = NUMBER_OF["stalker"], NUMBER_OF["zealot"]
_KINDS = len(UNIT_TYPES) + 1
# SMAC looks at the terrain around an agent in this order, in moves; last, for the height alone, where it stands.
AROUND = np.array([(0, 2), (0, -2), (2, 0), (-2, 0), (1, 1), (-1, -1), (1, -1), (-1, 1), (0, 0)], dtype=np.int64)
NO_ACTION = -1  # as a last action: before the first step


@dataclass(frozen=True, kw_only=True)
class FeatureOptions:
    """The options of SMAC's constructor that decide what an observation and the state contain."""

    obs_all_health: bool = True
    obs_own_health: bool = True  # without obs_all_health; with it, always
    obs_last_action: bool = False
    obs_pathing_grid: bool = False
    obs_terrain_height: bool = False
    obs_timestep_number: bool = False
    state_last_action: bool = True
    state_timestep_number: bool = False
    # SMACv2's
    obs_own_pos: bool = False
    conic_fov: bool = False
    num_fov_actions: Annotated[int, between(1, 360)] = 12  # directions to look in; the cone is as wide as one
    use_unit_ranges: bool | None = None  # None: SMACv2's scenarios have the unit types' own ranges, SMAC's maps not
    min_attack_range: Annotated[float, between(0, 32)] = rules.MIN_ATTACK_RANGE  # with the unit types' own ranges
    fully_observable: bool = False
    obs_starcraft: bool = True  # off: nothing but the time
    # Whether agents know of each other what a battle has drawn for them; None if it draws nothing.
    attack_told: bool | None = None
    health_told: bool | None = None
    types_told: bool = True

    def __post_init__(self) -> None:
        check_fields(self)


_NOT_DRAWN = np.zeros((0, 0))
_ANYWHERE = np.ones((SIZE, SIZE), dtype=np.bool_)  # to walk


class Traits(NamedTuple):
    """What battles have drawn for their agents; an array of no battles is not used."""

    attack: NDArray[np.float64] = _NOT_DRAWN  # (B, N) the chance of an attack to succeed
    health: NDArray[np.float64] = _NOT_DRAWN  # (B, N) the share of health at which an agent dies
    masked: NDArray[np.bool_] = np.zeros((0, 0, 0), dtype=np.bool_)  # (B, N, E) whose health and type are not seen
    first: NDArray[np.int64] = np.zeros((0, 0), dtype=np.int64)  # (B, N) the enemy from which on an agent observes

    def of(self, rows: NDArray[np.int64]) -> Traits:
        parts: list[NDArray[Any]] = [part.take(rows, axis=0) if len(part) else part for part in self]
        return Traits(*parts)


class Features:
    """The layout for one pair of armies: `unit_type` (U,), of which the first `agents` are agents.

    `terrain` is needed for masks and the terrain options alone. Moves are of `move_amount` map units. A generated
    scenario's armies change: `unit_type` is then any of them, and types, their order and ranges are SMACv2's."""

    def __init__(
        self,
        unit_type: NDArray[np.uint8],
        agents: int,
        options: FeatureOptions | None = None,
        *,
        terrain: Terrain | None = None,
        move_amount: float = rules.MOVE_AMOUNT,
        generated: Generated | None = None,
    ) -> None:
        self.options = options or FeatureOptions()
        self.agents, self.enemies = agents, len(unit_type) - agents
        numbers = (generated.type_order,) * 2 if generated else (unit_type[:agents], unit_type[agents:])
        ours, theirs = ([UNIT_TYPES[int(number)] for number in side] for side in numbers)
        heals = any(kind.is_healer for kind in ours)
        looks = self.options.num_fov_actions if self.options.conic_fov else 0
        self.attack_at = Action.ATTACK + looks  # the first action that names a target
        self.actions = rules.action_count(self.agents, self.enemies, heals=heals, attack_at=self.attack_at)
        angles = [2 * math.pi * (look / looks) for look in range(looks)]
        self.directions = np.array([(math.cos(angle), math.sin(angle)) for angle in angles]).reshape(-1, 2)  # (F, 2)
        self.half_angle = (2 * math.pi) / looks / 2 if looks else 0.0  # of the cone of sight
        self._nowhere = np.ones((0, agents, 2))
        self._generated = generated is not None
        # SMAC gives shields to a side by its race.
        self.ally_shield = any(kind.shield > 0 for kind in ours)
        self.enemy_shield = any(kind.shield > 0 for kind in theirs)
        if generated is not None:
            self._type_index, self.bits = np.zeros((2, _KINDS), dtype=np.int64), len(generated.type_order)
            self._type_index[:, list(generated.type_order)] = np.arange(self.bits)  # in SMACv2's order
        else:
            self._type_index, self.bits = _type_index(unit_type, agents)
        self._unit_type = unit_type
        self._rows = np.zeros((0, len(unit_type)), dtype=np.uint8)
        o = self.options
        own_ranges = self._generated if o.use_unit_ranges is None else o.use_unit_ranges
        self._stats = _stats(own_ranges=own_ranges)
        self.rules = rules.table(own_ranges=own_ranges, least=o.min_attack_range)
        self._everywhere = self.rules.copy()
        self._everywhere[:, rules.REACH] = np.inf
        self._pathing = terrain.pathing if terrain else _ANYWHERE
        self._move_amount = float(move_amount)
        height = terrain.height if terrain else np.ones((SIZE, SIZE))
        self._ground = np.stack([self._pathing.astype(np.float64), height])  # (2, 32, 32)
        self._around = (AROUND * move_amount).astype(np.int64)
        health, own_health = o.obs_all_health, o.obs_all_health or o.obs_own_health
        self.enemy_width = 4 + health * (1 + self.enemy_shield) + self.bits
        traits = (o.attack_told is not None) + (o.health_told is not None)
        self.cap_size = traits + self.bits  # what a battle draws for an agent
        self.ally_width = 4 + health * (1 + self.ally_shield) + self.cap_size + self.actions * o.obs_last_action
        self.move_width = 4 + vectors.PATHING_POINTS * o.obs_pathing_grid + vectors.HEIGHT_POINTS * o.obs_terrain_height
        self.own_width = own_health * (1 + self.ally_shield) + 2 * o.obs_own_pos + 2 * o.conic_fov + self.cap_size
        widths = self.move_width, self.enemy_width, self.ally_width, self.attack_at
        self._widths = np.array(widths, dtype=np.int64)
        self._shields = np.array([self.ally_shield, self.enemy_shield], dtype=np.int64)
        flags = (
            health, own_health, o.obs_last_action, o.obs_pathing_grid, o.obs_terrain_height, o.obs_timestep_number,
            o.obs_own_pos, o.conic_fov, not o.obs_starcraft, o.fully_observable, o.types_told, bool(o.attack_told),
            bool(o.health_told),
        )  # fmt: skip
        self._flags = np.array(flags, dtype=np.bool_)
        self._body = np.empty((vectors.SCRATCH_ROWS, len(unit_type)))
        self.observation_size, self.state_size = self._observation_size(), self._state_size()  # O, S

    def type_index(self, unit_type: int, *, ours: bool) -> int:
        return int(self._type_index[0 if ours else 1, unit_type])

    @property
    def sight(self) -> NDArray[np.float64]:
        return self._stats[:, vectors.SIGHT_RANGE]

    def sight_range(self, unit_type: int) -> float:
        return float(self._stats[unit_type, vectors.SIGHT_RANGE])

    def _observation_size(self) -> int:
        """SMAC counts the time once in its own size but gives two numbers for it, of which the first is 0; SMACv2
        gives one."""
        timed = (1 if self._generated else 2) * self.options.obs_timestep_number
        if not self.options.obs_starcraft:
            return int(self.options.obs_timestep_number)
        others = self.enemies * self.enemy_width + (self.agents - 1) * self.ally_width
        return int(self.move_width + others + self.own_width + timed)

    def _state_size(self) -> int:
        ours = 4 + self.ally_shield + 2 * self.options.conic_fov + self.cap_size
        units = self.agents * ours + self.enemies * (3 + self.enemy_shield + self.bits)
        actions = self.agents * self.actions * self.options.state_last_action
        return int(units + actions + self.options.state_timestep_number)

    def observe(
        self,
        snapshot: Snapshot,
        available: NDArray[np.bool_],
        last_actions: NDArray[np.int64] | None = None,
        time: NDArray[np.float64] | None = None,
        looking: NDArray[np.float64] | None = None,
        traits: Traits | None = None,
    ) -> NDArray[np.float32]:
        """(B, N, O) for available (B, N, A), last_actions (B, N) or none yet, time (B,) as a share of the limit, and
        with a conic field of view the directions (B, N, 2) of looking."""
        B = len(snapshot.health)
        out = np.zeros((B, self.agents, self.observation_size), dtype=np.float32)
        vectors.write_observations(
            snapshot.position, snapshot.health, snapshot.shield, self.kinds(snapshot), available,
            *self._so_far(B, last_actions, time), self._looking(looking), self.half_angle, self._stats,
            self._type_index, self._ground, self._around, self._widths, self._shields, self._flags,
            *(traits or _NONE), self._body, out,
        )  # fmt: skip
        return out

    def available(
        self, snapshot: Snapshot, looking: NDArray[np.float64] | None = None, *, everywhere: bool = False
    ) -> NDArray[np.bool_]:
        """(B, N, A) SMAC's masks, from the rounded positions that SMAC sees; `looking` as in `observe`. `everywhere`:
        SMACv2's without `action_mask`, which allow every living target."""
        masks = np.zeros((len(snapshot.health), self.agents, self.actions), dtype=np.bool_)
        rules.write_masks(
            snapshot.position, snapshot.health, self.kinds(snapshot), self._everywhere if everywhere else self.rules,
            self._pathing, 0.0, self._move_amount, self.attack_at,
            self._looking(looking), np.inf if everywhere else self.half_angle, masks,
        )  # fmt: skip
        return masks

    def turn(self, actions: NDArray[np.int64], looking: NDArray[np.float64]) -> NDArray[np.int64]:
        """Actions (B, N) in SMAC's numbers, a look as no order at all; directions change in `looking` (B, N, 2)."""
        orders = np.empty_like(actions)
        vectors.turn(actions, self.attack_at, self.directions, looking, orders)
        return orders

    def _looking(self, looking: NDArray[np.float64] | None) -> NDArray[np.float64]:
        if looking is None and self.options.conic_fov:
            raise ValueError("a conic field of view needs the directions of looking")
        return self._nowhere if looking is None else looking

    def _so_far(
        self, battles: int, last: NDArray[np.int64] | None, time: NDArray[np.float64] | None
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Last actions and time, where none are given those before the first step."""
        none = np.full((battles, self.agents), NO_ACTION) if last is None else last
        return none, np.zeros(battles) if time is None else time

    def kinds(self, snapshot: Snapshot) -> NDArray[np.uint8]:
        """(B, U) unit types, battle by battle."""
        if snapshot.unit_type.ndim == 2:
            return snapshot.unit_type
        B = len(snapshot.health)
        if len(self._rows) < B:
            self._rows = np.tile(np.asarray(snapshot.unit_type, dtype=np.uint8), (B, 1))
        return self._rows[:B]

    def full_health(self, snapshot: Snapshot) -> NDArray[np.float64]:
        """(B, N) what each agent has at most."""
        return self._stats[self.kinds(snapshot)[:, : self.agents], vectors.AGENT_HEALTH]

    def state(
        self,
        snapshot: Snapshot,
        last_actions: NDArray[np.int64] | None = None,
        time: NDArray[np.float64] | None = None,
        looking: NDArray[np.float64] | None = None,
        traits: Traits | None = None,
    ) -> NDArray[np.float32]:
        """(B, S) all agents, all enemies, the last actions one-hot (none before the first step), the time."""
        B = len(snapshot.health)
        out = np.zeros((B, self.state_size), dtype=np.float32)
        vectors.write_states(
            snapshot.position, snapshot.health, snapshot.shield, snapshot.energy, snapshot.cooldown_loops,
            self.kinds(snapshot), *self._so_far(B, last_actions, time), self._looking(looking),
            self.options.conic_fov, self._stats, self._type_index, self._shields, self.bits, self.actions,
            self.options.state_last_action, self.options.state_timestep_number, *(traits or _NONE)[:2], out,
        )  # fmt: skip
        return out


_NONE = Traits()


@cache
def _stats(*, own_ranges: bool) -> NDArray[np.float64]:
    table = np.ones((_KINDS, vectors.COLUMNS))
    for number, kind in UNIT_TYPES.items():
        cooldown = MAX_COOLDOWN.get(kind.name, 15.0)
        sight = kind.sight if own_ranges else SIGHT
        health = kind.health, kind.most_health(enemy=True)
        table[number] = *health, max(kind.shield, 1.0), cooldown, kind.is_healer, sight
    return table


def _type_index(unit_type: NDArray[np.uint8], agents: int) -> tuple[NDArray[np.int64], int]:
    """(2, types) the place of each type among the one-hot bits, for agents and for enemies, in SMAC's order; and how
    many bits there are: none where each side has a single type, as in SMAC's registry."""
    ours, theirs = set(unit_type[:agents].tolist()), set(unit_type[agents:].tolist())
    index = np.zeros((2, _KINDS), dtype=np.int64)
    if len(ours) == 1 and len(theirs) == 1:
        return index, 0
    kinds = sorted(ours | theirs, key=SMAC_RANK.__getitem__)
    index[:, kinds] = np.arange(len(kinds))
    if set(kinds) == {_STALKER, _ZEALOT}:  # SMAC numbers these enemies by the game's ids: zealot 73, stalker 74
        index[1] = 1 - index[1]
    return index, len(kinds)
