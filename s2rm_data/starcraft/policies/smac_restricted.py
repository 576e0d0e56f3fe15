"""SMAC's scripted policy, restricted form (`heuristic_rest`): as `smac`, but attacks only what the mask allows.

While the enemy it sticks to is out of reach, the agent takes one cardinal step along the larger difference."""

from __future__ import annotations

from s2rm_data.starcraft.policies._moves import NOBODY, aim_or_approach, attend, is_healer, search, sticky_enemy
from s2rm_data.starcraft.policies._view import TYPE, Policy, policy


@policy
def choose(units, places, available, memory, word):  # type: ignore[no-untyped-def]
    if is_healer(units[0, TYPE]):
        return attend(units, places, available, memory)
    row = sticky_enemy(units, available, memory)
    if row == NOBODY:
        return search(places, available, memory)
    return aim_or_approach(units, row, available)


POLICY = Policy(
    choose=choose,
    description="SMAC's script, restricted form: step towards the nearest enemy, attack it once the mask allows",
)
