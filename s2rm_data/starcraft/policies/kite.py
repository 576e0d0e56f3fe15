"""Kiting: a ranged unit keeps away from enemies of shorter reach while its weapon cools, and shoots when it is ready.

It steps where the enemies that could reach it next are least near, and does not let itself be driven to the edge of the
map: the nearer to the edge, the more a step outwards costs. Ready, it takes the weakest enemy in reach."""

from __future__ import annotations

import numpy as np

from s2rm_data.core.compiled import compiled
from s2rm_data.starcraft.codes import Action
from s2rm_data.starcraft.policies import _view as see
from s2rm_data.starcraft.policies._moves import NOBODY, REACH, aim_or_approach, attend, is_healer, nearest_enemy, search
from s2rm_data.starcraft.policies.focus import weakest_in_reach
from s2rm_data.starcraft.units import LOOPS_PER_SECOND, LOOPS_PER_STEP, UNIT_TYPES

# By unit type number; entry 0 is nothing.
_STRIDE = np.array([0.0, *(unit.speed_per_second * LOOPS_PER_STEP / LOOPS_PER_SECOND for unit in UNIT_TYPES.values())])
_RANGED = np.array([False, *(unit.range > 1.0 for unit in UNIT_TYPES.values())])
# Assumptions, chosen by what wins 3s_vs_3z and 3s_vs_4z (docs/fidelity/data.md):
_READY_LOOPS = 3.0  # a weapon that needs longer can be walked with for a step
_MARGIN = 1.5  # an enemy that comes this near to its reach within a step is worth a step back
_LEAST_GAP = 0.1
_ROOM = 11.0  # from the middle between both starts; beyond it, the edge of the map counts
_EDGE_WEIGHT = 0.5


@compiled("boolean(int64, int64)")
def _outranges(own, enemy):  # type: ignore[no-untyped-def]
    """Whether keeping away from the enemy costs it more than oneself."""
    return 0.0 < REACH[enemy, own] < REACH[own, enemy]


@compiled("boolean(float64[:, ::1])")
def _threatened(units):  # type: ignore[no-untyped-def]
    own = np.int64(units[0, see.TYPE])
    for row in range(1, units.shape[0]):
        enemy = np.int64(units[row, see.TYPE])
        near = REACH[enemy, own] + _STRIDE[enemy] + _MARGIN
        if units[row, see.FRIEND] == 0.0 and _outranges(own, enemy) and units[row, see.DISTANCE2] < near * near:
            return True
    return False


@compiled("float64(float64[:, ::1], float64[:, ::1], float64, float64)")
def _danger(units, places, x, y):  # type: ignore[no-untyped-def]
    """How bad it is to stand at (x, y) from here: near to enemies, and near to the edge of the map."""
    own, total = np.int64(units[0, see.TYPE]), 0.0
    for row in range(1, units.shape[0]):
        enemy = np.int64(units[row, see.TYPE])
        if units[row, see.FRIEND] == 0.0 and _outranges(own, enemy):
            dx, dy = units[row, see.DX] - x, units[row, see.DY] - y
            gap = max(np.sqrt(dx * dx + dy * dy) - REACH[enemy, own], _LEAST_GAP)
            total += 1.0 / (gap * gap)
    middle_x = (places[see.ENEMY_START, 0] + places[see.OWN_START, 0]) / 2.0
    middle_y = (places[see.ENEMY_START, 1] + places[see.OWN_START, 1]) / 2.0
    beyond = max(abs(x - middle_x), abs(y - middle_y)) - _ROOM
    return total + _EDGE_WEIGHT * max(beyond, 0.0)


@compiled("int64(float64[:, ::1], float64[:, ::1], boolean[::1])")
def _retreat(units, places, available):  # type: ignore[no-untyped-def]
    """The available step that leads to the least danger; NOBODY if there is none."""
    best, least = NOBODY, 0.0
    stride = _STRIDE[np.int64(units[0, see.TYPE])]
    for action in range(Action.NORTH, Action.WEST + 1):
        if not available[action]:
            continue
        x = stride * ((action == Action.EAST) - (action == Action.WEST))
        y = stride * ((action == Action.NORTH) - (action == Action.SOUTH))
        danger = _danger(units, places, x, y)
        if best == NOBODY or danger < least:
            best, least = action, danger
    return best


@see.policy
def choose(units, places, available, memory, word):  # type: ignore[no-untyped-def]
    if is_healer(units[0, see.TYPE]):
        return attend(units, places, available, memory)
    if _RANGED[np.int64(units[0, see.TYPE])] and units[0, see.COOLDOWN] > _READY_LOOPS and _threatened(units):
        step = _retreat(units, places, available)
        if step != NOBODY:
            return step
    row = weakest_in_reach(units, available)
    if row == NOBODY:
        row = nearest_enemy(units, available, True)
    if row == NOBODY:
        row = nearest_enemy(units, available, False)
    if row == NOBODY:
        return search(places, available, memory)
    return aim_or_approach(units, row, available)


POLICY = see.Policy(
    choose=choose,
    description="kiting: ranged units keep away from enemies of shorter reach while their weapon cools",
)
