"""Kiting: a ranged unit steps away from the nearest enemy while its weapon cools, and shoots when it is ready."""

from __future__ import annotations

import numpy as np

from s2rm_data.generators.sc2.codes import Action
from s2rm_data.generators.sc2.policies._moves import (
    NOBODY,
    aim_or_approach,
    attend,
    is_healer,
    nearest_enemy,
    search,
    step_along,
)
from s2rm_data.generators.sc2.policies._policy import Policy
from s2rm_data.generators.sc2.policies._view import COOLDOWN, DISTANCE2, DX, DY, TYPE, policy
from s2rm_data.generators.sc2.units import LOOPS_PER_STEP, UNIT_TYPES

# By unit type number: everybody who shoots further than it can hit by hand.
_RANGED = np.array([False, *(unit.range > 1.0 for unit in UNIT_TYPES.values())])
_STEP_LOOPS = float(LOOPS_PER_STEP)  # a weapon that needs longer cannot fire before the next decision
_THREAT2 = 25.0  # Assumption: an enemy within 5 units is worth a step back


@policy
def choose(units, places, available, memory, word):  # type: ignore[no-untyped-def]
    if is_healer(units[0, TYPE]):
        return attend(units, places, available, memory)
    row = nearest_enemy(units, available, False)
    if row == NOBODY:
        return search(places, available, memory)
    cooling = _RANGED[np.int64(units[0, TYPE])] and units[0, COOLDOWN] > _STEP_LOOPS
    if cooling and units[row, DISTANCE2] < _THREAT2:
        away = step_along(-units[row, DX], -units[row, DY], available)
        if away != Action.STOP:
            return away
    reachable = nearest_enemy(units, available, True)
    return aim_or_approach(units, row if reachable == NOBODY else reachable, available)


POLICY = Policy(
    choose=choose, description="kiting: ranged units step back from the nearest enemy while their weapon cools"
)
