"""Focus fire: everybody hits the weakest enemy its weapon reaches, the one with the fewest hit points and shields left.

A unit that reaches nobody goes for the nearest, so that zealots do not run past those who hit them."""

from __future__ import annotations

import numpy as np

from s2rm_data.core.compiled import compiled
from s2rm_data.starcraft.codes import Action
from s2rm_data.starcraft.policies import _moves as moves
from s2rm_data.starcraft.policies._view import DISTANCE2, FRIEND, HEALTH, INDEX, SHIELD, TYPE, Policy, policy

_MARGIN = 0.5  # Assumption: an enemy half a unit out of reach is as good as in reach
_REACH2 = (moves.REACH + _MARGIN) ** 2  # squared, by [own type, enemy type]


@compiled("int64(float64[:, ::1], boolean[::1])")
def weakest_in_reach(units, available):  # type: ignore[no-untyped-def]
    """Row with the least health + shield of the enemies in reach; of equals the nearer, then the lower slot."""
    best, least = moves.NOBODY, 0.0
    for row in range(1, units.shape[0]):
        if units[row, FRIEND] == 1.0 or not moves.can_hit(units[0, TYPE], units[row, TYPE]):
            continue
        far = units[row, DISTANCE2] > _REACH2[np.int64(units[0, TYPE]), np.int64(units[row, TYPE])]
        if far or not available[Action.ATTACK + np.int64(units[row, INDEX])]:
            continue
        left = units[row, HEALTH] + units[row, SHIELD]
        nearer = best != moves.NOBODY and left == least and units[row, DISTANCE2] < units[best, DISTANCE2]
        if best == moves.NOBODY or left < least or nearer:
            best, least = row, left
    return best


@policy
def choose(units, places, available, memory, word):  # type: ignore[no-untyped-def]
    if moves.is_healer(units[0, TYPE]):
        return moves.attend(units, places, available, memory)
    row = weakest_in_reach(units, available)
    if row == moves.NOBODY:
        row = moves.nearest_enemy(units, available, False)
    if row == moves.NOBODY:
        return moves.search(places, available, memory)
    return moves.aim_or_approach(units, row, available)


POLICY = Policy(
    choose=choose, description="focus fire: attack the weakest enemy in reach (fewest hit points + shields)"
)
