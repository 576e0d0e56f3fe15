"""What the channels of polar images are, and what their values mean."""

from __future__ import annotations

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
