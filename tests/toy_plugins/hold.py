"""A policy in one file: everybody stands still."""

from __future__ import annotations

from s2rm_data.generators.sc2.codes import Action
from s2rm_data.generators.sc2.policies._policy import Policy
from s2rm_data.generators.sc2.policies._view import policy


@policy
def choose(units, places, available, memory, word):
    return Action.STOP if available[Action.STOP] else Action.NO_OP


POLICY = Policy(choose=choose, description="hold the position, whoever comes")
