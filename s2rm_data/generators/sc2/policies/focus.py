"""Focus fire: everybody shoots the weakest enemy in reach, the one with the fewest hit points and shields left."""

from __future__ import annotations

import numba as nb
import numpy as np

from s2rm_data.generators.sc2.policies._moves import (
    NOBODY,
    aim_or_approach,
    attend,
    can_hit,
    is_healer,
    nearest_enemy,
    search,
)
from s2rm_data.generators.sc2.policies._policy import Policy
from s2rm_data.generators.sc2.policies._view import DISTANCE2, FRIEND, HEALTH, INDEX, SHIELD, TYPE, compiled
from s2rm_data.generators.sc2.snapshot import ATTACK


@nb.njit("int64(float64[:, ::1], boolean[::1])", cache=True, nogil=True)
def weakest_in_reach(units, available):  # type: ignore[no-untyped-def]
    """Row with the least health + shield of the enemies the mask allows; of equals the nearer, then the lower slot."""
    best, least = NOBODY, 0.0
    for row in range(1, units.shape[0]):
        if units[row, FRIEND] == 1.0 or not can_hit(units[0, TYPE], units[row, TYPE]):
            continue
        if not available[ATTACK + np.int64(units[row, INDEX])]:
            continue
        left = units[row, HEALTH] + units[row, SHIELD]
        nearer = best != NOBODY and left == least and units[row, DISTANCE2] < units[best, DISTANCE2]
        if best == NOBODY or left < least or nearer:
            best, least = row, left
    return best


@compiled
def choose(units, places, available, memory, word):  # type: ignore[no-untyped-def]
    if is_healer(units[0, TYPE]):
        return attend(units, places, available, memory)
    row = weakest_in_reach(units, available)
    if row == NOBODY:
        row = nearest_enemy(units, available, False)
    if row == NOBODY:
        return search(places, available, memory)
    return aim_or_approach(units, row, available)


POLICY = Policy(
    choose=choose, description="focus fire: attack the weakest enemy in reach (fewest hit points + shields)"
)
