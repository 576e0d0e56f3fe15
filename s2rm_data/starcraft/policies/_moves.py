"""Parts that policies share: whom to take, and which way to walk. Comparisons and exact arithmetic only."""

# K units one agent sees (row 0 is the agent itself), A actions; columns as in _view.py

from __future__ import annotations

import numpy as np

from s2rm_data.core.compiled import compiled
from s2rm_data.starcraft.codes import Action
from s2rm_data.starcraft.policies import _view as see
from s2rm_data.starcraft.units import UNIT_TYPES, reach
from s2rm_data.starcraft.units import can_hit as can_hit_type

NOBODY = -1
# By unit type number; entry 0 is nothing.
_HEALTH_MAX = np.array([0.0, *(unit.health for unit in UNIT_TYPES.values())])
_HEALER = np.array([False, *(unit.is_healer for unit in UNIT_TYPES.values())])
REACH = np.zeros((len(UNIT_TYPES) + 1,) * 2)  # of the weapon of [attacker, target]; 0 if it cannot hit
for _own, _unit in UNIT_TYPES.items():
    for _enemy, _target in UNIT_TYPES.items():
        REACH[_own, _enemy] = reach(_unit, _target) if can_hit_type(_unit, _target) else 0.0
_ARRIVED2 = 4.0  # Assumption: an agent within 2 units (one SMAC move) of a place it searches has arrived
_BESIDE2 = 4.0  # Assumption: a healer without a patient stays within 2 units of somebody it can heal


@compiled("boolean(float64, float64)")
def can_hit(own_type, enemy_type):  # type: ignore[no-untyped-def]
    """Whether the unit has a weapon that can be aimed at it (marauders skip medivacs in SMAC's script, too)."""
    return REACH[np.int64(own_type), np.int64(enemy_type)] > 0.0


@compiled("boolean(float64)")
def is_healer(unit_type):  # type: ignore[no-untyped-def]
    return _HEALER[np.int64(unit_type)]


@compiled("int64(float64[:, ::1], boolean[::1], boolean)")
def nearest_enemy(units, available, in_reach):  # type: ignore[no-untyped-def]
    """Row of the nearest enemy the agent can hit, of equals the lower slot; `in_reach`: of those its mask allows."""
    best = NOBODY
    for row in range(1, units.shape[0]):
        if units[row, see.FRIEND] == 1.0 or not can_hit(units[0, see.TYPE], units[row, see.TYPE]):
            continue
        if in_reach and not available[Action.ATTACK + np.int64(units[row, see.INDEX])]:
            continue
        if best == NOBODY or units[row, see.DISTANCE2] < units[best, see.DISTANCE2]:
            best = row
    return best


@compiled("int64(float64[:, ::1], boolean)")
def nearest_patient(units, only_hurt):  # type: ignore[no-untyped-def]
    """Row of the nearest friend a healer can heal (no healer, as in SMAC), or NOBODY."""
    best = NOBODY
    for row in range(1, units.shape[0]):
        if units[row, see.FRIEND] == 0.0 or is_healer(units[row, see.TYPE]):
            continue
        if only_hurt and units[row, see.HEALTH] >= _HEALTH_MAX[np.int64(units[row, see.TYPE])]:
            continue
        if best == NOBODY or units[row, see.DISTANCE2] < units[best, see.DISTANCE2]:
            best = row
    return best


@compiled("int64(float64, float64, boolean[::1])")
def step_along(dx, dy, available):  # type: ignore[no-untyped-def]
    """The move along the larger difference, as SMAC's script walks; along the other if that is blocked; else stop."""
    sideways = Action.EAST if dx > 0.0 else Action.WEST
    upwards = Action.NORTH if dy > 0.0 else Action.SOUTH
    first, second = (sideways, upwards) if abs(dx) > abs(dy) else (upwards, sideways)
    if available[first]:
        return first
    if min(abs(dx), abs(dy)) > 0.0 and available[second]:
        return second
    return Action.STOP if available[Action.STOP] else Action.NO_OP


@compiled("int64(float64[:, ::1], boolean[::1], int64[::1])")
def search(places, available, memory):  # type: ignore[no-untyped-def]
    """Walks to where the enemies started, and back to its own start, in turn, while it sees none of them."""
    place = see.OWN_START if memory[see.HEADING_HOME] == 1 else see.ENEMY_START
    dx, dy = places[place, 0], places[place, 1]
    if dx * dx + dy * dy <= _ARRIVED2:
        memory[see.HEADING_HOME] = 1 - memory[see.HEADING_HOME]
        place = see.OWN_START if memory[see.HEADING_HOME] == 1 else see.ENEMY_START
        dx, dy = places[place, 0], places[place, 1]
    return step_along(dx, dy, available)


@compiled("int64(float64[:, ::1], int64, boolean[::1])")
def aim_or_approach(units, row, available):  # type: ignore[no-untyped-def]
    """Attacks (or heals) the unit of a row when the mask allows it, else takes one step towards it."""
    action = Action.ATTACK + np.int64(units[row, see.INDEX])
    return action if available[action] else step_along(units[row, see.DX], units[row, see.DY], available)


@compiled("int64(float64[:, ::1], int64[::1], boolean)")
def _remembered(units, memory, friend):  # type: ignore[no-untyped-def]
    """Row of the unit the agent sticks to, or NOBODY when it is dead or out of sight."""
    for row in range(1, units.shape[0]):
        if (units[row, see.FRIEND] == 1.0) == friend and 1 + np.int64(units[row, see.INDEX]) == memory[see.TARGET]:
            return row
    return NOBODY


@compiled("int64(float64[:, ::1], float64[:, ::1], boolean[::1], int64[::1])")
def attend(units, places, available, memory):  # type: ignore[no-untyped-def]
    """A healer's turn: the nearest hurt friend until it is well or gone, else keep beside the nearest friend."""
    row = _remembered(units, memory, True)
    if row == NOBODY or units[row, see.HEALTH] >= _HEALTH_MAX[np.int64(units[row, see.TYPE])]:
        row = nearest_patient(units, True)
    memory[see.TARGET] = 0 if row == NOBODY else 1 + np.int64(units[row, see.INDEX])
    if row != NOBODY:
        return aim_or_approach(units, row, available)
    row = nearest_patient(units, False)
    if row == NOBODY:
        return search(places, available, memory)
    if units[row, see.DISTANCE2] <= _BESIDE2:
        return Action.STOP
    return step_along(units[row, see.DX], units[row, see.DY], available)


@compiled("int64(float64[:, ::1], boolean[::1], int64[::1])")
def sticky_enemy(units, available, memory):  # type: ignore[no-untyped-def]
    """Row of the enemy the agent sticks to; the nearest in sight when it has none (SMAC's heuristic)."""
    row = _remembered(units, memory, False)
    if row == NOBODY:
        row = nearest_enemy(units, available, False)
    memory[see.TARGET] = 0 if row == NOBODY else 1 + np.int64(units[row, see.INDEX])
    return row
