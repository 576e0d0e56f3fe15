"""Every agent takes one of its available actions, all equally likely."""

from __future__ import annotations

from s2rm_data.starcraft.policies._view import Policy, policy, random_available


@policy
def choose(units, places, available, memory, word):  # type: ignore[no-untyped-def]
    return random_available(available, word)


POLICY = Policy(choose=choose, description="one of the available actions at random")
