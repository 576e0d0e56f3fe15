"""The API's numbers for the units and abilities of SMAC's battles, for the server and for the adapter alike."""

from __future__ import annotations

from collections.abc import Iterable

from s2rm_data.generators.sc2.codes import Ability
from s2rm_data.generators.sc2.units import NUMBER_OF, SMAC_RANK, UNIT_TYPES

# Ids of the built-in units (Blizzard's stable ids).
STANDARD_ID: dict[int, int] = {
    NUMBER_OF["marine"]: 48,
    NUMBER_OF["marauder"]: 51,
    NUMBER_OF["medivac"]: 54,
    NUMBER_OF["stalker"]: 74,
    NUMBER_OF["zealot"]: 73,
    NUMBER_OF["colossus"]: 4,
    NUMBER_OF["hydralisk"]: 107,
    NUMBER_OF["zergling"]: 105,
    NUMBER_OF["baneling"]: 9,
    NUMBER_OF["spine_crawler"]: 98,
}
TYPE_OF_STANDARD: dict[int, int] = {api_id: number for number, api_id in STANDARD_ID.items()}

# The agents of a SMAC map are units of the map's own (`Stalker_RL`), numbered after the built-in ones in the order of
# their names. The game's first free number changes with its version; the served engine's lies within those that
# python-sc2 knows.
FIRST_CUSTOM_ID = 1970

# Ability ids that mean the same: the general ones, and attack-move of units without a weapon (scan-move).
SYNONYMS: dict[int, int] = {
    3794: Ability.MOVE,
    3674: Ability.ATTACK,
    3665: Ability.STOP,
    19: Ability.ATTACK,
    2048: Ability.ATTACK,
}
PLAYER, OPPONENT = 1, 2  # owners: SMAC's agents and enemies
PARTICIPANT, COMPUTER = 1, 2  # sc2api.proto, PlayerType
CONTROL_ENEMY = 2  # debug.proto, DebugGameState

# Seeds have 64 bits, random_seed 32: a participant whose player_name is `seed:N` gives the served engine all.
SEED_NAME = "seed:"


def custom_ids(types: Iterable[int], first: int = FIRST_CUSTOM_ID) -> dict[int, int]:
    """Unit type -> id of the agents' units on a map that has those types."""
    return {number: first + k for k, number in enumerate(sorted(set(types), key=SMAC_RANK.__getitem__))}


def types_by_id(ids: Iterable[int], types: Iterable[int]) -> dict[int, int]:
    """Id -> unit type of a map's agents, by their order, as SMAC finds it out; empty if the numbers of kinds differ."""
    kinds, seen = sorted(set(types), key=SMAC_RANK.__getitem__), sorted(set(ids))
    return dict(zip(seen, kinds, strict=True)) if len(kinds) == len(seen) else {}


def api_name(number: int) -> str:
    """The catalogue's spelling: SpineCrawler."""
    return "".join(word.capitalize() for word in UNIT_TYPES[number].name.split("_"))
