"""Where the state of a battle lies in memory, and the tables its rules read.

All numbers of a battle stand side by side: `floats[b]` (FLOAT_ROWS, U) float64 and `ints[b]` (INT_ROWS, U) int64, one
row per quantity, one column per unit. Compiled functions take these, the table `stats`, and `agents`, how many of the
first slots are agents: plain arrays, because a tuple of arrays costs an atomic reference count at every access.
Positions are relative to the map's centre, so that a reflected battle is the exact negative. Import it as `at`:
`floats[at.HEALTH, u]`, `stats[kind, at.SPEED]`; u and v are slots."""

# B battles, U units of both sides, K = 11 unit-type numbers (0 unused)

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from s2rm_data.starcraft.units import (
    BIOLOGICAL,
    GUARD_SCAN_RANGE,
    LOOPS_PER_SECOND,
    SHIELD_REGEN_PER_SECOND,
    UNIT_TYPES,
    ZERG_REGEN_PER_SECOND,
    UnitType,
    can_hit,
    contact_distance,
    damage_per_hit,
    reach,
)

# float rows of a unit
(
    X,
    Y,
    HEALTH,
    SHIELD,
    ENERGY,
    COOLDOWN,  # loops until the weapon is ready
    WINDUP,  # loops until the started attack hits or releases its missile; 0 = no attack under way
    BACKSWING,  # loops the unit stays rooted after its hit unless a new order comes
    PENDING,  # loops until the released missile or the second hit lands, or the beams' sweep ends; 0 = none
    SHIELD_WAIT,  # loops until shields begin to regenerate
    PACE,  # speed reached, units per loop; counts for units that need time to accelerate
    FACE_X,
    FACE_Y,
    GOAL_X,
    GOAL_Y,
    WALK_X,  # where it walks to; once all have had their turn, where it will stand at the end of this loop
    WALK_Y,
    DEALT,  # health and shields taken off others in this step
    TAKEN,  # health and shields lost to others in this step
    RESTORED,  # health and shields regained in this step
    SPENT,  # own health given up in this step (a baneling's attack)
    HEALTH_MAX,  # never changes
    TURRET_WINDUP,  # loops until the shot leaves that a turret has begun by itself; 0 = none
    STEP,  # how far its step of this loop is
    FLOAT_ROWS,
) = range(25)

# integer rows of a unit
(
    ORDER,
    TARGET,  # slot the order names, -1 = none
    FOCUS,  # slot that attack-move or an idle guard has acquired, -1 = none
    PENDING_TARGET,
    SCAN_WAIT,  # loops until it looks for a target, or for a better one
    BEND,  # side (+1 left, -1 right) on which it walks around what is in the way, 0 = nothing is
    STRAIGHT,  # loops it has walked straight on since it last bent
    MOVED_LOOP,  # last loop it moved in
    FUSE,  # 1 = a baneling about to blow up
    AFTER,  # order that follows an attack-move which has arrived
    QUEUE,  # update order: the slots, shuffled every loop
    KIND,  # unit type, never changes
    PASSIVE,  # 1 = attacks only when ordered to
    BURNT,  # bit u % 63 is set: the first beam of unit u's last volley has hit it
    BURNT_TOO,  # the same of the second beam
    TURRET_TARGET,  # whom a turret shoots at by itself
    HAS_FIRED,  # 1 = a turret that has fired; a passive one begins no shot by itself before
    INT_ROWS,
) = range(18)

# columns of a battle's counters
(
    STEPS,
    LOOPS,
    QUEUED,  # slots in the queue: the living and those with a missile in the air
    OUTCOME,
    COUNTERS,
) = range(5)

# scratch space of one loop, in slots: SCRATCH_BLOCKS blocks of U, then U rows of up to U slots: those that each slot
# may touch while the loop lasts
(
    NEAR,  # slots near the unit whose turn it is
    WALKERS,  # slots that walk in this loop
    GIVES_WAY,  # how each slot gives way to walkers: not at all, as an idle friend, as a walker
    AROUND,  # how many slots each may touch
    LIVING,  # slots of the living
    MOVERS,  # slots that do not stand: first ascending, then those of them that may touch anybody as they are queued
    SCRATCH_BLOCKS,
) = range(7)
STANDS, IDLES, WALKS = range(3)


def scratch(units: int) -> NDArray[np.int64]:
    return np.zeros((SCRATCH_BLOCKS + units) * units, dtype=np.int64)


# float columns of a unit type
(
    AGENT_HEALTH,  # of the maps' own copy of the unit
    ENEMY_HEALTH,  # of the game's own
    SHIELD_MAX,
    ARMOUR,
    SPEED,
    ACCELERATION,
    RADIUS,
    DAMAGE_POINT,
    BACKSWING_LOOPS,
    PERIOD,
    HITS,
    HIT_GAP,
    MISSILE_SPEED,
    BLAST_RADIUS,
    LINE_HALF,
    LINE_RADIUS,
    HEALTH_REGEN,
    SHIELD_REGEN,
    ENERGY_START,
    ENERGY_MAX,
    ENERGY_REGEN,
    HEAL_RATE,
    ENERGY_PER_HEALTH,
    HEAL_RANGE,
    HEAL_SCAN,
    IS_BIOLOGICAL,
    IS_FIGHTER,
    IS_MELEE,
    PLANE,
    TYPE_COLUMNS,
) = range(30)

# after them, one column for each unit type it may act upon: stats[a, DAMAGE + b] is what a does to b
_K = len(UNIT_TYPES) + 1
(
    DAMAGE,
    REACH_SQ,
    SCAN_SQ,  # how far it looks for targets on attack-move
    GUARD_SQ,  # how far it looks while it stands idle, and follows the target it has
    APART,
    CAN_HIT,
    TOUCH_SQ,  # farther apart neither is in the way of the other's step, when both walk once; 0 on different planes
    SHARE,  # how much of their overlap is its to give way when both walk
    TABLE_COLUMNS,
) = (TYPE_COLUMNS + _K * plane for plane in range(9))
_TOUCH_SLACK = 1e-6


def _is_melee(unit: UnitType) -> bool:
    return unit.damage > 0 and unit.range < 1.0


def _rooted_loops(unit: UnitType) -> float:
    """How long a unit without new orders stays where it is after its first hit. From the game's data: the hits of a
    zealot are a channelled burst, and its backswing follows the last of them. Inferred (lengths of corridor and
    bane_vs_bane): other hand weapons do not root."""
    burst_s = (unit.hits - 1) * unit.hit_gap_s
    rooted_s = 0.0 if _is_melee(unit) and burst_s == 0.0 else burst_s + unit.backswing_s
    return rooted_s * LOOPS_PER_SECOND


def _type_row(unit: UnitType) -> dict[int, float]:
    loops = float(LOOPS_PER_SECOND)
    return {
        AGENT_HEALTH: unit.health,
        ENEMY_HEALTH: unit.most_health(enemy=True),
        SHIELD_MAX: unit.shield,
        ARMOUR: unit.armour,
        SPEED: unit.speed_per_second / loops,
        ACCELERATION: unit.acceleration / (loops * loops),
        RADIUS: unit.radius,
        DAMAGE_POINT: unit.damage_point_s * loops,
        BACKSWING_LOOPS: _rooted_loops(unit),
        PERIOD: unit.period_s * loops,
        HITS: unit.hits,
        HIT_GAP: unit.hit_gap_s * loops,
        MISSILE_SPEED: unit.missile_speed_per_second / loops,
        BLAST_RADIUS: unit.blast_radius,
        LINE_HALF: unit.line_half_length,
        LINE_RADIUS: unit.line_point_radius,
        HEALTH_REGEN: ZERG_REGEN_PER_SECOND / loops if unit.zerg else 0.0,
        SHIELD_REGEN: SHIELD_REGEN_PER_SECOND / loops if unit.shield else 0.0,
        ENERGY_START: unit.energy,
        ENERGY_MAX: unit.energy_max,
        ENERGY_REGEN: unit.energy_per_second / loops,
        HEAL_RATE: unit.heal_per_second / loops,
        ENERGY_PER_HEALTH: unit.energy_per_health,
        HEAL_RANGE: unit.heal_range,
        HEAL_SCAN: unit.heal_scan_range,
        IS_BIOLOGICAL: float(BIOLOGICAL in unit.attributes),
        IS_FIGHTER: float(unit.damage > 0),
        IS_MELEE: float(_is_melee(unit)),
        PLANE: unit.plane,
    }


def _cube(unit: UnitType) -> float:
    return unit.radius * unit.radius * unit.radius


@cache
def table() -> NDArray[np.float64]:
    """(K, TABLE_COLUMNS) stats of each unit type in loops and units per loop, and what it does to each other type."""
    stats = np.zeros((_K, TABLE_COLUMNS))
    for a, unit in UNIT_TYPES.items():
        for column, value in _type_row(unit).items():
            stats[a, column] = value
        # a unit that cannot walk looks no farther than it can hit
        scan = unit.range if unit.speed_per_second == 0 else max(unit.min_scan_range, unit.range)
        guard = unit.range if unit.speed_per_second == 0 else max(GUARD_SCAN_RANGE, scan)
        for b, other in UNIT_TYPES.items():
            stats[a, DAMAGE + b] = damage_per_hit(unit, other)
            stats[a, REACH_SQ + b] = reach(unit, other) ** 2
            stats[a, SCAN_SQ + b] = (scan + unit.radius + other.radius) ** 2
            stats[a, GUARD_SQ + b] = (guard + unit.radius + other.radius) ** 2
            stats[a, APART + b] = contact_distance(unit, other)
            stats[a, CAN_HIT + b] = float(can_hit(unit, other))
            steps = (unit.speed_per_second + other.speed_per_second) / LOOPS_PER_SECOND
            # Inferred (MMM2): of two walkers the larger gives way more, a marauder three times as far as a marine.
            stats[a, SHARE + b] = _cube(unit) / (_cube(unit) + _cube(other))
            touch = stats[a, APART + b] + steps + _TOUCH_SLACK
            stats[a, TOUCH_SQ + b] = touch**2 if stats[a, APART + b] > 0.0 else 0.0
    return stats
