"""SMAC's scripted policy, free form (`heuristic_ai`): attack the nearest enemy and stick to it until it dies.

In its free form the order goes out for any enemy, and the game walks the unit there. SMAC's script knows every enemy on
the map; here an agent knows those within its sight, and looks for them while it sees none."""

from __future__ import annotations

from s2rm_data.starcraft.codes import Action
from s2rm_data.starcraft.policies._moves import NOBODY, attend, is_healer, search, sticky_enemy
from s2rm_data.starcraft.policies._view import INDEX, TYPE, Policy, policy


@policy
def choose(units, places, available, memory, word):  # type: ignore[no-untyped-def]
    if is_healer(units[0, TYPE]):
        return attend(units, places, available, memory)
    row = sticky_enemy(units, available, memory)
    if row == NOBODY:
        return search(places, available, memory)
    return Action.ATTACK + int(units[row, INDEX])


POLICY = Policy(
    choose=choose,
    description="SMAC's script, free form: attack the nearest enemy in sight, at any distance, until it dies",
    keeps_to_mask=False,
)
