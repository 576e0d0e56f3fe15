"""The numbers that actions, orders, abilities and outcomes go by, in memory, in stores and on the wire.

They are integers everywhere, in compiled functions as well: `Order.MOVE == 1`. The lower-case names stand in stores.
So do those of the channels of polar images.

A snapshot is all that a back end tells about battles at one moment. Policies and the polar renderer read snapshots and
nothing else, so that the embedded engine, the served API and the real game can stand in for each other.

Units of a battle stand in fixed slots: the agents (team 1) first, in SMAC's order (unit type, x, y), then the enemies.
A slot keeps its unit for the whole episode; a dead unit keeps its slot with `health` 0 and is seen by nobody."""

# B battles, U units of both sides, N agents = the first units of a battle, E = U - N enemies

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray


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
    on the other side wherever it is."""

    IDLE = 0
    MOVE = 1
    ATTACK = 2
    HEAL = 3
    ATTACK_MOVE = 4
    HUNT = 5


class Outcome(IntEnum):
    """How a battle stands. RUNNING: neither army was dead after the last recorded step; LIMIT: nor at SMAC's limit for
    the map; DRAW: both armies died in the same step."""

    RUNNING = 0
    WIN = 1
    LOSS = 2
    DRAW = 3
    LIMIT = 4


class Ability(IntEnum):
    SMART = 1
    STOP = 4
    MOVE = 16
    PATROL = 17
    ATTACK = 23
    HEAL = 386


# Lower-case names by number, as stores spell them.
ORDERS = tuple(order.name.lower() for order in Order)
OUTCOMES = tuple(outcome.name.lower() for outcome in Outcome)

# Channels of `categories`.
FRIENDLY, UNIT_TYPE, ACTION = range(3)
CATEGORY_CHANNELS = ("friendly", "unit_type", "action")

# Categories of the action image, the same in every scenario.
ACTION_CATEGORIES = ("no-op", "unknown", "stop", "north", "south", "east", "west", "attack", "heal")
NOBODY, UNKNOWN, STOPS, MOVES_NORTH, MOVES_SOUTH, MOVES_EAST, MOVES_WEST, ATTACKS, HEALS = range(9)

# Channels of `hecs` and what each is divided by, for all unit types alike (paper, 'Standardized Unit Stats').
# Assumption: the paper does not give its divisors. Powers of two keep the division exact, so that the game's value can
# be read back from the image; health and shield share one: a hit point is a hit point. All values are below 1.2.
HECS_CHANNELS = ("health", "energy", "cooldown", "shield")
HECS_DIVISORS = (256.0, 256.0, 32.0, 256.0)  # hit points, energy, loops, hit points


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """Game values as the SC2 API gives them, in float32; positions are map coordinates, x east, y north."""

    agents: int  # N
    unit_type: NDArray[np.uint8]  # (U,), or (B, U) if armies differ; 1..9, spine crawler 10; see units.py
    position: NDArray[np.float32]  # (B, U, 2)
    health: NDArray[np.float32]  # (B, U) 0 = dead
    shield: NDArray[np.float32]  # (B, U)
    energy: NDArray[np.float32]  # (B, U)
    cooldown_loops: NDArray[np.float32]  # (B, U) loops until the weapon is ready


STATS = {  # of a unit, as stores and as snapshots call them
    "unit_health": "health",
    "unit_shield": "shield",
    "unit_energy": "energy",
    "unit_cooldown": "cooldown_loops",
}
