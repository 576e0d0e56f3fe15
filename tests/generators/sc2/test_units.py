"""Every stat of the unit table against the game-data export beside this file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from s2rm_data.generators.sc2 import units
from s2rm_data.generators.sc2.units import NUMBER_OF, UNIT_TYPES, can_hit, damage_per_hit, reach

EXPORT = json.loads((Path(__file__).parent / "units_liberty.json").read_text(encoding="ascii"))

# name in the table: name in the export; what the export leaves out has its default
FIELDS = {
    "health": "hp",
    "shield": "shield",
    "armour": "armor",
    "speed_per_second": "speed",
    "acceleration": "accel",
    "radius": "radius",
    "separation_radius": "sep_radius",
    "sight": "sight",
    "damage": "dmg",
    "hits": "attacks",
    "hit_gap_s": "burst_gap",
    "bonus": "bonus",
    "period_s": "period",
    "range": "range",
    "min_scan_range": "min_scan",
    "damage_point_s": "damage_point",
    "backswing_s": "backswing",
    "missile_speed_per_second": "missile_speed",
    "blast_radius": "splash_radius",
    "structure_damage": "structure_dmg",
    "energy": "energy_start",
    "energy_max": "energy_max",
    "energy_per_second": "energy_regen",
    "heal_per_second": "heal_rate",
    "energy_per_health": "energy_per_hp",
    "heal_range": "heal_range",
    "heal_scan_range": "autocast_range",
}
DEFAULTS = {
    "min_scan": units.DEFAULT_MIN_SCAN_RANGE,
    "accel": 1000.0,
    "backswing": units.DEFAULT_BACKSWING_S,
    "attacks": 1,
    "bonus": {},
}


@pytest.mark.parametrize("unit", UNIT_TYPES.values(), ids=lambda unit: unit.name)
@pytest.mark.parametrize("field", FIELDS)
def test_stat_is_that_of_the_export(unit: units.UnitType, field: str) -> None:
    exported = EXPORT["units"][unit.name]
    exported = exported | exported.get("M", {})  # the multiplayer values apply (docs/fidelity.md)
    key = FIELDS[field]
    assert getattr(unit, field) == exported.get(key, DEFAULTS.get(key, 0))


@pytest.mark.parametrize("unit", UNIT_TYPES.values(), ids=lambda unit: unit.name)
def test_attributes_and_zerg_regeneration_are_those_of_the_export(unit: units.UnitType) -> None:
    exported = EXPORT["units"][unit.name]
    assert list(unit.attributes) == exported["attr"]
    assert unit.zerg == ("hp_regen" in exported)
    assert exported.get("hp_regen", units.ZERG_REGEN_PER_SECOND) == units.ZERG_REGEN_PER_SECOND


def test_shield_regeneration_and_jitter_are_those_of_the_export() -> None:
    assert EXPORT["_shield"] == {"regen": units.SHIELD_REGEN_PER_SECOND, "delay": units.SHIELD_REGEN_DELAY_S}
    least, most = (round(second * units.LOOPS_PER_SECOND) for second in EXPORT["_random_delay_s"])
    assert tuple(range(least, most + 1)) == units.PERIOD_JITTER_LOOPS


def test_colossus_line_is_that_of_the_export() -> None:
    assert EXPORT["units"]["colossus"]["splash"].startswith("line perpendicular, 11 pts -1.25..1.25 step .25, r=0.15")
    assert (units.COLOSSUS.line_half_length, units.COLOSSUS.line_point_radius) == (1.25, 0.15)


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
def test_bonus_damage_counts_against_its_attribute_only(
    attacker: units.UnitType, target: units.UnitType, damage: float
) -> None:
    assert damage_per_hit(attacker, target) == damage


def test_only_units_with_anti_air_weapons_hit_medivacs() -> None:
    shooters = {unit.name for unit in UNIT_TYPES.values() if can_hit(unit, units.MEDIVAC)}
    assert shooters == {"marine", "stalker", "hydralisk"}


def test_reach_is_range_plus_both_radii() -> None:
    assert reach(units.STALKER, units.ZEALOT) == 6 + 0.625 + 0.5
