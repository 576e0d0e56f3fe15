"""A policy in one file: everybody stands still."""

from __future__ import annotations

from s2rm_data.extend import Action, Policy, policy


@policy
def choose(units, places, available, memory, word):
    return Action.STOP if available[Action.STOP] else Action.NO_OP


POLICY = Policy(choose=choose, description="hold the position, whoever comes")
