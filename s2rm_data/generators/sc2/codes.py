"""The numbers that actions, orders, abilities and outcomes go by, in memory, in stores and on the wire.

They are integers everywhere, in compiled functions as well: `Order.MOVE == 1`. The lower-case names stand in stores.
"""

from __future__ import annotations

from enum import IntEnum


class Action(IntEnum):
    """SMAC's action numbers (smac/env/starcraft2/starcraft2.py). ATTACK + k is enemy k; for a healer it is agent k."""

    NO_OP = 0
    STOP = 1
    NORTH = 2
    SOUTH = 3
    EAST = 4
    WEST = 5
    ATTACK = 6


class Order(IntEnum):
    """What a unit can be ordered to do. ATTACK and HEAL name a unit, MOVE and ATTACK_MOVE a point; HUNT is an attack
    on the other side wherever it is.
    """

    IDLE = 0
    MOVE = 1
    ATTACK = 2
    HEAL = 3
    ATTACK_MOVE = 4
    HUNT = 5


class Outcome(IntEnum):
    """How a battle stands. RUNNING: neither army was dead after the last recorded step; LIMIT: nor at SMAC's limit for
    the map; DRAW: both armies died in the same step.
    """

    RUNNING = 0
    WIN = 1
    LOSS = 2
    DRAW = 3
    LIMIT = 4


class Ability(IntEnum):
    """Ability ids of the SC2 API."""

    SMART = 1
    STOP = 4
    MOVE = 16
    ATTACK = 23
    HEAL = 386


def names(codes: type[IntEnum]) -> tuple[str, ...]:
    """Lower-case names by number, as stores spell them."""
    return tuple(code.name.lower() for code in codes)


ORDERS = names(Order)
OUTCOMES = names(Outcome)
