"""The API's protocol: whether its packages are installed and fit together, and its numbers for units and abilities.

Checked once and said clearly; used by the server and by the client alike."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from functools import cache
from types import ModuleType

from s2rm_data.core.errors import MissingComponentError, missing_component
from s2rm_data.starcraft.codes import Ability
from s2rm_data.starcraft.units import NUMBER_OF, SMAC_RANK, UNIT_TYPES

_NEEDED_FOR = "talking to StarCraft II"


@cache
def require_protocol() -> ModuleType:
    """`s2clientprotocol.sc2api_pb2`, or an error that says what to install.

    Two packages bring the module `s2clientprotocol`: the old one of that name, which pysc2 asks for and which today's
    protobuf refuses, and `pys2clientprotocol`, which works. The one installed last has overwritten the other."""
    try:
        return importlib.import_module("s2clientprotocol.sc2api_pb2")
    except ModuleNotFoundError:
        raise missing_component("pys2clientprotocol", "sc2", _NEEDED_FOR) from None
    except (TypeError, ImportError) as error:
        raise MissingComponentError(
            "the installed module 's2clientprotocol' cannot be used with the installed protobuf "
            f"({str(error).splitlines()[0]}). The old package of that name has overwritten 'pys2clientprotocol'; "
            "put it right with: pip install --force-reinstall --no-deps pys2clientprotocol"
        ) from None


@cache
def require_pysc2() -> None:
    """Check that pysc2 can be imported; its parts are imported where they are used."""
    require_protocol()
    try:
        importlib.import_module("pysc2.run_configs")
        importlib.import_module("pysc2.lib.remote_controller")
    except ModuleNotFoundError as error:
        raise missing_component((error.name or "pysc2").partition(".")[0], "sc2", _NEEDED_FOR) from None


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
    3795: Ability.PATROL,
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


def race_of(number: int) -> int:
    """common.proto: Terran 1, Zerg 2, Protoss 3."""
    unit = UNIT_TYPES[number]
    return 2 if unit.zerg else 3 if unit.shield else 1


def api_name(number: int) -> str:
    """The catalogue's spelling: SpineCrawler."""
    return "".join(word.capitalize() for word in UNIT_TYPES[number].name.split("_"))
