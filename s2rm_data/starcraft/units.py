"""The unit table: ten unit types with the stats that SMAC's maps show in the running game.

Numbers are the game's own data (Liberty with the multiplayer overrides of VoidMulti, docs/fidelity/game_data.md), which
a test holds them against: seconds are *Normal* seconds of 16 game loops, distances map units. Agents are the maps' own
copies of the units, which no override reaches; where the two differ, an enemy's number has a name of its own.
`Assumption:` marks what the data leave open."""

from __future__ import annotations

from dataclasses import dataclass, field

LOOPS_PER_SECOND = 16  # Normal speed
LOOPS_PER_STEP = 8  # SMAC's step_mul

SHIELD_REGEN_PER_SECOND = 2.0
SHIELD_REGEN_DELAY_S = 10.0
ZERG_REGEN_PER_SECOND = 0.2734
# A weapon's period is lengthened by a whole number of loops, drawn anew for each attack (-0.0625 s .. +0.125 s).
PERIOD_JITTER_LOOPS = (-1, 0, 1, 2)
MIN_DAMAGE_PER_HIT = 0.5
CONTACT_OVERLAP = 1.0 / 16.0

# Acquisition, edge to edge: on attack-move as far as the weapon's minimal scan range (the export's default is 5).
DEFAULT_MIN_SCAN_RANGE = 5.0
# Assumption: units that stand idle look this far. Fitted to the lengths of untrained agents' battles (7 to 8 fit), and
# below the 8.5, centre to centre, at which recorded stand-offs of MMM2 stay idle.
GUARD_SCAN_RANGE = 7.5
# Assumption: the catalogue's default for weapons that name no backswing of their own.
DEFAULT_BACKSWING_S = 0.5

LIGHT, ARMORED, BIOLOGICAL, MECHANICAL, MASSIVE, STRUCTURE = (
    "Light", "Armored", "Biological", "Mechanical", "Massive", "Structure",
)  # fmt: skip
GROUND, WALKER, AIR = range(3)  # planes: units collide within their own plane only; a colossus is a WALKER


@dataclass(frozen=True, kw_only=True)
class UnitType:
    """Stats of one unit type; `letters` spell it in scenario names."""

    name: str
    letters: str
    health: float
    enemy_health: float | None = None  # of the game's own unit, where it differs from the maps' copy
    shield: float = 0.0
    armour: float
    speed_per_second: float
    acceleration: float = 1000.0  # units per second squared
    radius: float
    separation_radius: float
    sight: float
    attributes: tuple[str, ...]
    plane: int = GROUND
    zerg: bool = False
    # weapon
    damage: float = 0.0
    hits: int = 1
    hit_gap_s: float = 0.0
    bonus: dict[str, float] = field(default_factory=dict)
    period_s: float = 0.0
    range: float = 0.0  # edge to edge
    min_scan_range: float = DEFAULT_MIN_SCAN_RANGE  # edge to edge
    damage_point_s: float = 0.0
    backswing_s: float = DEFAULT_BACKSWING_S
    missile_speed_per_second: float = 0.0  # 0 = the hit is instant
    shoots_air: bool = False
    blast_radius: float = 0.0
    structure_damage: float = 0.0  # 0 = the same as against units
    line_half_length: float = 0.0
    line_point_radius: float = 0.0
    # healer
    energy: float = 0.0
    energy_max: float = 0.0
    energy_per_second: float = 0.0
    heal_per_second: float = 0.0
    energy_per_health: float = 0.0
    heal_range: float = 0.0
    heal_scan_range: float = 0.0

    @property
    def is_healer(self) -> bool:
        return self.heal_per_second > 0

    def most_health(self, *, enemy: bool) -> float:
        return self.health if self.enemy_health is None or not enemy else self.enemy_health


MARINE = UnitType(
    name="marine", letters="m", health=45, armour=0, attributes=(LIGHT, BIOLOGICAL), sight=9,
    speed_per_second=2.25, radius=0.375, separation_radius=0.375,
    damage=6, period_s=0.8608, range=5, min_scan_range=5.5, damage_point_s=0.05, backswing_s=0.75, shoots_air=True,
)  # fmt: skip
MARAUDER = UnitType(
    name="marauder", letters="mr", health=125, armour=1, attributes=(ARMORED, BIOLOGICAL), sight=10,
    speed_per_second=2.25, radius=0.5625, separation_radius=0.5,
    damage=10, bonus={ARMORED: 10}, period_s=1.5, range=6, min_scan_range=6.5, damage_point_s=0.0, backswing_s=0.0,
    missile_speed_per_second=20,
)  # fmt: skip
MEDIVAC = UnitType(
    name="medivac", letters="mv", health=150, armour=1, attributes=(ARMORED, MECHANICAL), plane=AIR, sight=11,
    speed_per_second=2.75, acceleration=2.3125, radius=0.75, separation_radius=0.75,
    energy=50, energy_max=200, energy_per_second=0.5625, heal_per_second=9, energy_per_health=0.33, heal_range=4,
    heal_scan_range=6,
)  # fmt: skip
STALKER = UnitType(
    name="stalker", letters="s", health=80, shield=80, armour=1, attributes=(ARMORED, MECHANICAL), sight=10,
    speed_per_second=2.9531, radius=0.625, separation_radius=0.625,
    damage=13, bonus={ARMORED: 5}, period_s=1.87, range=6, min_scan_range=6.5, damage_point_s=0.167,
    missile_speed_per_second=18.75, shoots_air=True,
)  # fmt: skip
ZEALOT = UnitType(
    name="zealot", letters="z", health=100, shield=50, armour=1, attributes=(LIGHT, BIOLOGICAL), sight=9,
    speed_per_second=2.25, radius=0.5, separation_radius=0.375,
    damage=8, hits=2, hit_gap_s=0.28, period_s=1.2, range=0.1, damage_point_s=0.0,
)  # fmt: skip
COLOSSUS = UnitType(
    name="colossus", letters="c", health=200, shield=150, armour=1, attributes=(ARMORED, MECHANICAL, MASSIVE),
    plane=WALKER, sight=10,
    speed_per_second=2.25, radius=1.0, separation_radius=0.75,
    damage=10, hits=2, bonus={LIGHT: 5}, period_s=1.5, range=7, min_scan_range=7.5, damage_point_s=0.0832,
    line_half_length=1.25, line_point_radius=0.15,
)  # fmt: skip
HYDRALISK = UnitType(
    name="hydralisk", letters="h", health=80, enemy_health=90, armour=0, attributes=(LIGHT, BIOLOGICAL), zerg=True,
    sight=9,
    speed_per_second=2.25, radius=0.625, separation_radius=0.5,
    damage=12, period_s=0.825, range=5, min_scan_range=5.5, damage_point_s=0.208, missile_speed_per_second=40,
    shoots_air=True,
)  # fmt: skip
ZERGLING = UnitType(
    name="zergling", letters="zg", health=35, armour=0, attributes=(LIGHT, BIOLOGICAL), zerg=True, sight=8,
    speed_per_second=2.9531, radius=0.375, separation_radius=0.375,
    damage=5, period_s=0.696, range=0.1, damage_point_s=0.167,
)  # fmt: skip
BANELING = UnitType(
    name="baneling", letters="b", health=30, armour=0, attributes=(BIOLOGICAL,), zerg=True, sight=8,
    speed_per_second=2.5, radius=0.375, separation_radius=0.375,
    damage=20, bonus={LIGHT: 15}, period_s=0.833, range=0.25, damage_point_s=0.0, blast_radius=2.2,
    structure_damage=80,
)  # fmt: skip
SPINE_CRAWLER = UnitType(
    name="spine_crawler", letters="sc", health=300, armour=2, attributes=(ARMORED, BIOLOGICAL, STRUCTURE), zerg=True,
    sight=11,
    speed_per_second=0, radius=0.875, separation_radius=0.875,
    damage=25, bonus={ARMORED: 5}, period_s=1.85, range=7, damage_point_s=0.3332,
)  # fmt: skip

# Unit type numbers, 1..9 as the nine unit-type channels, 10 stands on the enemy side only; 0 is "nothing there".
UNIT_TYPES: dict[int, UnitType] = dict(
    enumerate(
        (MARINE, MARAUDER, MEDIVAC, STALKER, ZEALOT, COLOSSUS, HYDRALISK, ZERGLING, BANELING, SPINE_CRAWLER), start=1
    )
)
NUMBER_OF: dict[str, int] = {unit.name: number for number, unit in UNIT_TYPES.items()}
NUMBER_OF_LETTERS: dict[str, int] = {unit.letters: number for number, unit in UNIT_TYPES.items()}
# SMAC sorts agents by the ids of the maps' custom units, which follow the alphabet on every map with several types.
SMAC_RANK: dict[int, int] = {
    number: rank for rank, number in enumerate(sorted(UNIT_TYPES, key=lambda number: UNIT_TYPES[number].name))
}


def damage_per_hit(attacker: UnitType, target: UnitType) -> float:
    """Damage of one hit before armour, with the bonus against the target's attributes."""
    if attacker.structure_damage and STRUCTURE in target.attributes:
        return attacker.structure_damage
    return attacker.damage + sum(value for name, value in attacker.bonus.items() if name in target.attributes)


def reach(attacker: UnitType, target: UnitType) -> float:
    """Centre-to-centre distance from which the weapon hits. Assumption: range plus both radii."""
    return attacker.range + attacker.radius + target.radius


def contact_distance(unit: UnitType, other: UnitType) -> float:
    """How near two units of the same plane come: both radii less a sixteenth; 0 for units that do not collide.

    Measured in recordings for eight pairs of unit types, to 0.001. The export's separation radii do not tell it."""
    return unit.radius + other.radius - CONTACT_OVERLAP if unit.plane == other.plane else 0.0


def can_hit(attacker: UnitType, target: UnitType) -> bool:
    return attacker.damage > 0 and (target.plane != AIR or attacker.shoots_air)
