"""What SMAC's class tells of a map and its units: names, ids, and units as the API shows them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from s2rm_data.envs.battles import BattleBatch
from s2rm_data.generators.sc2.api.catalogue import OPPONENT, PLAYER, STANDARD_ID, custom_ids
from s2rm_data.generators.sc2.units import AIR, NUMBER_OF, UNIT_TYPES, UnitType

_FIRST_TAG = 1 << 32
# SMAC's names of its maps' armies, by the agents' types; another army has the names of its types.
_MAP_TYPES = {
    ("marine",): "marines",
    ("stalker", "zealot"): "stalkers_and_zealots",
    ("colossus", "stalker", "zealot"): "colossi_stalkers_zealots",
    ("marauder", "marine", "medivac"): "MMM",
    ("zealot",): "zealots",
    ("hydralisk",): "hydralisks",
    ("stalker",): "stalkers",
    ("colossus",): "colossus",
    ("baneling", "zergling"): "bane",
}
IDS = ("marine", "marauder", "medivac", "hydralisk", "zergling", "baneling", "stalker", "colossus", "zealot")


def map_type(battles: BattleBatch) -> str:
    if battles.scenario.generated is not None:
        return f"{battles.scenario.generated.race}_gen"
    names = tuple(sorted({UNIT_TYPES[squad.unit_type].name for squad in battles.scenario.agents}))
    return _MAP_TYPES.get(names, "_".join(names))


def agent_ids(battles: BattleBatch) -> dict[str, int]:
    """SMAC's `marine_id` and so on: the ids of the map's own units, 0 for types that no agent has."""
    own = _own_ids(battles)
    return {f"{name}_id": own.get(NUMBER_OF[name], 0) for name in IDS}


def _own_ids(battles: BattleBatch) -> dict[int, int]:
    """Unit type -> id of the map's own units; SMACv2's map has all of them."""
    types = [NUMBER_OF[name] for name in IDS] if battles.generated else battles.scenario.agent_types
    return custom_ids(types)


def api_ids(battles: BattleBatch) -> list[int]:
    """Ids of all units in slot order: the map's own for agents, the game's for enemies."""
    own, numbers = _own_ids(battles), [int(number) for number in battles.engine.kinds[0]]
    return [own[n] if slot < battles.agents else STANDARD_ID[n] for slot, n in enumerate(numbers)]


def type_of_id(battles: BattleBatch, api_id: int) -> UnitType:
    """The unit type behind an id of this map."""
    ids = api_ids(battles)
    return UNIT_TYPES[int(battles.engine.kinds[0, ids.index(api_id)])]


@dataclass(frozen=True)
class Point:
    x: float
    y: float
    z: float


@dataclass(frozen=True, kw_only=True)
class ApiUnit:
    """One unit with the names of the API's message; the dead have health 0."""

    tag: int
    owner: int
    unit_type: int
    pos: Point
    facing: float
    radius: float
    health: float
    health_max: float
    shield: float
    shield_max: float
    energy: float
    energy_max: float
    weapon_cooldown: float
    is_flying: bool
    orders: tuple[Any, ...] = ()
    engaged_target_tag: int = 0

    def HasField(self, name: str) -> bool:  # noqa: N802 (the API's name)
        """As in the game, the enemies' cooldowns are not told."""
        return name != "weapon_cooldown" or self.owner == PLAYER


def api_units(battles: BattleBatch, battle_number: int) -> list[ApiUnit]:
    """All units of the only battle, in slot order; a battle's tags do not come again."""
    seen, ids = battles.snapshot, api_ids(battles)
    facing, z = battles.engine.facing[0].tolist(), battles.terrain.z
    units = []
    for slot in range(battles.units):
        kind, ours = UNIT_TYPES[int(battles.engine.kinds[0, slot])], slot < battles.agents
        x, y = (float(value) for value in seen.position[0, slot])
        units.append(
            ApiUnit(
                tag=_FIRST_TAG + battle_number * battles.units + slot,
                owner=PLAYER if ours else OPPONENT,
                unit_type=ids[slot],
                pos=Point(x, y, float(z[min(int(x), 31), min(int(y), 31)])),
                facing=math.atan2(facing[slot][1], facing[slot][0]) % (2 * math.pi),
                radius=kind.radius,
                health=float(seen.health[0, slot]),
                health_max=kind.health,
                shield=float(seen.shield[0, slot]),
                shield_max=kind.shield,
                energy=float(seen.energy[0, slot]),
                energy_max=kind.energy_max,
                weapon_cooldown=float(seen.cooldown_loops[0, slot]) if ours else 0.0,
                is_flying=kind.plane == AIR,
            )
        )
    return units
