"""The unit table against the game's own data, of which game_data.json beside this file is an extract.

`python tools/game_data.py` has written it, and says from what; docs/fidelity/game_data.md lists what the engine
ignores.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from s2rm_data.starcraft import units
from s2rm_data.starcraft.units import NUMBER_OF, UNIT_TYPES, UnitType, can_hit, damage_per_hit, reach

DATA = json.loads((Path(__file__).parent / "game_data.json").read_text(encoding="ascii"))
IGNORED = Path(__file__).parents[2] / "docs" / "fidelity" / "game_data.md"
# Which of several weapons, damages or missiles counts; else there is one at most.
CHOSEN = {
    "hydralisk": ("Weapon NeedleSpines", "Effect NeedleSpinesDamage"),
    "baneling": ("Weapon VolatileBurst", "Effect VolatileBurstU"),
    "colossus": ("Effect ThermalLancesForward", "Effect ThermalLancesE", "Effect ThermalLancesMU"),
}
# stat: catalogue, field, what the field has where it is left out
FIELDS = {
    "shield": ("Unit", "ShieldsMax", 0),
    "armour": ("Unit", "LifeArmor", 0),
    "speed_per_second": ("Unit", "Speed", 0),
    "acceleration": ("Unit", "Acceleration", 1000),
    "radius": ("Unit", "Radius", None),
    "separation_radius": ("Unit", "SeparationRadius", None),
    "sight": ("Unit", "Sight", None),
    "energy": ("Unit", "EnergyStart", 0),
    "energy_max": ("Unit", "EnergyMax", 0),
    "energy_per_second": ("Unit", "EnergyRegenRate", 0),
    "period_s": ("Weapon", "Period", 0),
    "range": ("Weapon", "Range", 0),
    "min_scan_range": ("Weapon", "MinScanRange", units.DEFAULT_MIN_SCAN_RANGE),
    "damage_point_s": ("Weapon", "DamagePoint", 0),
    "backswing_s": ("Weapon", "Backswing", units.DEFAULT_BACKSWING_S),
    "damage": ("Effect", "Amount", 0),
    "missile_speed_per_second": ("Mover", "MotionPhases.0.MaxSpeed", 0),
    "heal_range": ("Abil", "Range", 0),
    "heal_scan_range": ("Abil", "AutoCastRange", 0),
    "heal_per_second": ("Effect", "RechargeVitalRate", 0),
    "energy_per_health": ("Effect", "DrainVitalCostFactor", 0),
}
# Where the table has another number than the data, and why.
DIFFERENCES = {
    ("spine_crawler", "period_s"): "Swarm's 1.85 where Liberty has 1.6; 2s_vs_1sc has not been measured with it",
    ("spine_crawler", "missile_speed_per_second"): "its tentacle flies 4 loops at most, and is taken as instant",
}


def entries(name: str, catalogue: str) -> list[dict[str, Any]]:
    """The entries of one catalogue that count for a unit."""
    mine = {key: fields for key, fields in DATA["units"][name].items() if key.split()[0] == catalogue}
    if chosen := [fields for key, fields in mine.items() if key in CHOSEN.get(name, ())]:
        return chosen
    return list(mine.values())


def datum(name: str, catalogue: str, field: str, default: Any = None) -> Any:
    return next((fields[field] for fields in entries(name, catalogue) if field in fields), default)


def flags(name: str, catalogue: str, field: str) -> list[str]:
    return [key.split(".")[1] for fields in entries(name, catalogue) for key in fields if key.startswith(f"{field}.")]


def test_every_stat_is_that_of_the_game_or_its_difference_has_a_reason() -> None:
    differing = {
        (unit.name, stat): (getattr(unit, stat), datum(unit.name, *source))
        for unit in UNIT_TYPES.values()
        for stat, source in FIELDS.items()
        if getattr(unit, stat) != datum(unit.name, *source)
    }
    assert differing.keys() == DIFFERENCES.keys(), f"table and data differ: {differing}"


def test_both_sides_have_the_health_of_their_own_units() -> None:
    for unit in UNIT_TYPES.values():
        game = datum(unit.name, "Unit", "LifeMax")
        agents = DATA["agents"].get(unit.name, {})
        assert unit.most_health(enemy=True) == game, unit.name
        assert unit.most_health(enemy=False) == agents.get("LifeMax", game), unit.name
        # what else the maps' copies have otherwise: they wait for orders, and banelings lack a weapon against buildings
        others = {"Collide.Locust", "DefaultAcquireLevel", "LifeMax", "LifeStart", "Response", "WeaponArray.1"}
        assert agents.keys() <= others, f"agents' {unit.name}: {agents}"
        if agents:
            assert (agents["DefaultAcquireLevel"], agents["Response"]) == ("Passive", "Nothing"), unit.name


def test_attributes_planes_bonuses_and_regeneration_are_those_of_the_game() -> None:
    for unit in UNIT_TYPES.values():
        assert sorted(unit.attributes) == sorted(flags(unit.name, "Unit", "Attributes")), unit.name
        plane = units.WALKER if "Colossus" in flags(unit.name, "Unit", "Collide") else units.GROUND
        plane = plane if "Ground" in flags(unit.name, "Unit", "PlaneArray") else units.AIR
        assert unit.plane == plane, unit.name
        bonuses = flags(unit.name, "Effect", "AttributeBonus")
        assert unit.bonus == {key: datum(unit.name, "Effect", f"AttributeBonus.{key}") for key in bonuses}, unit.name
        regeneration = datum(unit.name, "Unit", "LifeRegenRate", 0)
        assert regeneration == (units.ZERG_REGEN_PER_SECOND if unit.zerg else 0), unit.name
        shields = [datum(unit.name, "Unit", field, 0) for field in ("ShieldRegenRate", "ShieldRegenDelay")]
        assert shields == ([units.SHIELD_REGEN_PER_SECOND, units.SHIELD_REGEN_DELAY_S] if unit.shield else [0, 0])


def test_weapons_hit_how_often_how_wide_and_whom_they_do_in_the_game() -> None:
    for unit in UNIT_TYPES.values():
        filters = datum(unit.name, "Weapon", "TargetFilters", "").split(";")[0]
        assert unit.shoots_air == ("Visible" in filters and "Ground" not in filters), unit.name
    assert (units.ZEALOT.hits, units.ZEALOT.hit_gap_s) == (
        datum("zealot", "Effect", "PeriodCount"),
        datum("zealot", "Effect", "PeriodicPeriodArray")[1],
    )
    beams = [fields for fields in DATA["units"]["colossus"].values() if "PeriodicOffsetArray.0" in fields]
    assert units.COLOSSUS.hits == len(beams)
    for beam in beams:
        assert {abs(beam[f"PeriodicOffsetArray.{end}"][0]) for end in (0, 10)} == {units.COLOSSUS.line_half_length}
    assert units.COLOSSUS.line_point_radius == datum("colossus", "Effect", "AreaArray.0.Radius")
    baneling = DATA["units"]["baneling"]
    assert units.BANELING.blast_radius == baneling["Effect VolatileBurstU"]["AreaArray.0.Radius"]
    assert units.BANELING.structure_damage == baneling["Effect VolatileBurstU2"]["Amount"]


def test_what_holds_for_all_units_is_that_of_the_game() -> None:
    assert DATA["game"]["DamageMinimum"] == units.MIN_DAMAGE_PER_HIT
    for unit in (unit for unit in UNIT_TYPES.values() if unit.damage):
        seconds = (datum(unit.name, "Weapon", field) for field in ("RandomDelayMin", "RandomDelayMax"))
        least, most = (round(second * units.LOOPS_PER_SECOND) for second in seconds)
        assert tuple(range(least, most + 1)) == units.PERIOD_JITTER_LOOPS, unit.name


def test_docs_tell_of_every_field_that_the_unit_table_does_not_take() -> None:
    read = {f"{catalogue}.{field}" for catalogue, field, _ in FIELDS.values()} | {"Unit.LifeMax", "game.DamageMinimum"}
    told = re.findall(
        r"`((?:Unit|Weapon|Effect|Mover|Abil|Validator|game)\.[A-Za-z0-9.*]+)`", IGNORED.read_text("utf-8")
    )
    patterns = [re.compile(name.replace(".", r"\.").replace("*", ".*")) for name in told]
    found = {f"{key.split()[0]}.{field}" for unit in DATA["units"].values() for key in unit for field in unit[key]}
    found |= {f"game.{field}" for field in DATA["game"]}
    unexplained = sorted(name for name in found - read if not any(pattern.fullmatch(name) for pattern in patterns))
    assert not unexplained, f"neither in the unit table nor in {IGNORED.name}: {unexplained}"
    unknown = [pattern.pattern for pattern in patterns if not any(pattern.fullmatch(name) for name in found)]
    assert not unknown, f"{IGNORED.name} names fields that the data do not have: {unknown}"


def test_unit_type_numbers_are_the_nine_channels_and_the_spine_crawler() -> None:
    names = ["marine", "marauder", "medivac", "stalker", "zealot"]
    names += ["colossus", "hydralisk", "zergling", "baneling", "spine_crawler"]
    assert list(NUMBER_OF) == names
    assert list(NUMBER_OF.values()) == list(range(1, 11))
    assert len({unit.letters for unit in UNIT_TYPES.values()}) == 10


@pytest.mark.parametrize(
    ("attacker", "target", "damage"),
    [
        (units.STALKER, units.STALKER, 18),
        (units.STALKER, units.ZEALOT, 13),
        (units.COLOSSUS, units.ZEALOT, 15),
        (units.MARAUDER, units.COLOSSUS, 20),
        (units.BANELING, units.ZEALOT, 35),
        (units.BANELING, units.STALKER, 20),
        (units.BANELING, units.SPINE_CRAWLER, 80),
        (units.SPINE_CRAWLER, units.STALKER, 30),
    ],
)
def test_bonus_damage_counts_against_its_attribute_only(attacker: UnitType, target: UnitType, damage: float) -> None:
    assert damage_per_hit(attacker, target) == damage


def test_only_units_with_anti_air_weapons_hit_medivacs() -> None:
    shooters = {unit.name for unit in UNIT_TYPES.values() if can_hit(unit, units.MEDIVAC)}
    assert shooters == {"marine", "stalker", "hydralisk"}


def test_reach_is_range_plus_both_radii() -> None:
    assert reach(units.STALKER, units.ZEALOT) == 6 + 0.625 + 0.5
