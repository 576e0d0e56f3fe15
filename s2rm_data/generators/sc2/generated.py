"""SMACv2's generated battles: armies drawn by weight and places drawn on an open map, anew for every episode.

`10gen_protoss_5_vs_5`: five agents against five enemies of one race. Facts are those of smacv2 (its example configs,
`distributions.py` and the script inside its map 32x32_flat):

- Every agent's type is drawn by weight; an army of nothing but the types in `never_alone` is drawn again. The enemies
  are the agents' army; more enemies are drawn the same way, fewer are the first of them.
- With equal chances an episode is `reflect` (agents anywhere in the west half but the strip of one unit at its edge,
  enemies at their mirror images; more enemies anywhere in the east half) or `surrounded` (agents at the centre, enemies
  in one to four groups, each at a random distance on a diagonal of its own).
- Units created at a place that is taken stand beside it (`placing`).

An episode is a function of its seed. Only + - * / and comparisons decide.
"""

# B battles, U units of both sides (agents first), K unit types of a race

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from s2rm_data.compiled import compiled
from s2rm_data.errors import UsageError, did_you_mean
from s2rm_data.generators.sc2.maps import SIZE, terrain
from s2rm_data.generators.sc2.placing import NOWHERE, contacts, nearest_free, planes, spiral
from s2rm_data.generators.sc2.units import NUMBER_OF, SMAC_RANK, UNIT_TYPES, UnitType
from s2rm_data.philox import philox, to_unit

PREFIX = "10gen_"
LIMIT_STEPS = 200
TERRAIN = "open"  # 32x32_flat has the cell flags and heights of 3s_vs_3z
MOST_UNITS = 50  # a side: what stands in one spot still finds room
REFLECTED_SHARE = 0.5
MIN_ATTACK_RANGE = 2.0  # smacv2's min_attack_range
_MIDDLE = SIZE / 2
_STRIP = 1.0  # left free west of the middle
_OFFSET = 2.0  # the diagonals end this far from the middle, in x and in y
_GRAIN = 4096.0  # positions have twelve binary digits after the point, as the game's
_DOMAIN = np.uint64(0x534D414376322D47)  # "SMACv2-G"
_TEAM, _MORE_ENEMIES, _LAYOUT, _PLACES, _MORE_PLACES = (np.uint64(tag) for tag in range(5))
_LONGEST_TRY = 1 << 20  # words of a stream that one attempt to draw an army may use


@dataclass(frozen=True, kw_only=True)
class Race:
    """Unit types by name, their chances, and which of them cannot be a whole army."""

    weights: dict[str, float]
    never_alone: tuple[str, ...] = ()


RACES = {
    "protoss": Race(weights={"stalker": 0.45, "zealot": 0.45, "colossus": 0.1}),
    "terran": Race(weights={"marine": 0.45, "marauder": 0.45, "medivac": 0.1}, never_alone=("medivac",)),
    "zerg": Race(weights={"zergling": 0.45, "baneling": 0.1, "hydralisk": 0.45}, never_alone=("baneling",)),
}
# smacv2's get_unit_type_id
TYPE_ORDER = {
    "protoss": ("stalker", "zealot", "colossus"),
    "terran": ("marine", "marauder", "medivac"),
    "zerg": ("zergling", "hydralisk", "baneling"),
}
NAMES = tuple(f"{PREFIX}{race}_{size}" for race in RACES for size in ("5_vs_5", "10_vs_10"))


def mask_range(unit: UnitType) -> float:
    """How far away a target may be for a mask to allow it, centre to centre (use_unit_ranges of smacv2)."""
    return float(max(unit.heal_range if unit.is_healer else unit.range, MIN_ATTACK_RANGE))


@dataclass(frozen=True, kw_only=True)
class Generated:
    """How the battles of a generated scenario begin."""

    race: str
    agents: int
    enemies: int

    @property
    def type_order(self) -> tuple[int, ...]:
        """Unit types as smacv2 numbers them in observations."""
        return tuple(NUMBER_OF[name] for name in TYPE_ORDER[self.race])

    @property
    def unit_types(self) -> tuple[int, ...]:
        return tuple(NUMBER_OF[name] for name in RACES[self.race].weights)

    def draw(self, seeds: NDArray[np.uint64]) -> tuple[NDArray[np.uint8], NDArray[np.float64]]:
        """(B, U) unit types, agents in SMAC's order (unit type, x, y), then enemies in order of creation; and (B, U, 2)
        map coordinates of their starts.
        """
        race = RACES[self.race]
        types = np.array(self.unit_types, dtype=np.uint8)
        bounds = np.cumsum(list(race.weights.values()))
        alone = np.array([name not in race.never_alone for name in race.weights])
        units = self.agents + self.enemies
        kinds, places = np.zeros((len(seeds), units), np.uint8), np.zeros((len(seeds), units, 2))
        ranks = np.array([0, *(SMAC_RANK[number] for number in UNIT_TYPES)], dtype=np.int64)
        tables = (contacts(), planes(), terrain(TERRAIN).passable, spiral())
        seeds = np.ascontiguousarray(seeds, dtype=np.uint64)
        if not _draw_battles(seeds, self.agents, types, bounds, alone, ranks, tables, kinds, places):
            raise UsageError(f"the armies of {self.agents} against {self.enemies} do not fit; take fewer units")
        return kinds, places


def parse_generated(name: str) -> Generated:
    """The armies of a name that begins with `10gen_`."""
    match = re.fullmatch(r"10gen_([a-z]+)_([0-9]{1,4})_vs_([0-9]{1,4})", name)
    form = f"{PREFIX}RACE_N_vs_M, as in 10gen_protoss_5_vs_5, with RACE one of {', '.join(RACES)}"
    if match is None:
        raise UsageError(f"no scenario {name!r}{did_you_mean(name, NAMES) or ';'} a generated one is spelled {form}")
    race, agents, enemies = match[1], int(match[2]), int(match[3])
    if race not in RACES:
        raise UsageError(f"scenario {name!r}: no race {race!r}{did_you_mean(race, RACES) or ';'} it is spelled {form}")
    for count, whose in ((agents, "agents"), (enemies, "enemies")):
        if not 1 <= count <= MOST_UNITS:
            raise UsageError(f"scenario {name!r} has {count} {whose}; allowed are 1 to {MOST_UNITS}")
    return Generated(race=race, agents=agents, enemies=enemies)


@compiled()
def _unit(seed, tag, number):  # type: ignore[no-untyped-def]
    """Draw `number` of a stream, in [0, 1)."""
    return to_unit(philox(seed, _DOMAIN, np.uint64(number), tag)[0])


@compiled()
def _draw_team(seed, tag, types, bounds, alone, kinds):  # type: ignore[no-untyped-def]
    """Types of one army, drawn again while none of them may stand alone."""
    attempt, stands = 0, False
    while not stands:
        for unit in range(kinds.shape[0]):
            draw, kind = _unit(seed, tag, attempt * _LONGEST_TRY + unit), 0
            while kind < types.shape[0] - 1 and draw >= bounds[kind]:
                kind += 1
            kinds[unit] = types[kind]
            stands = stands or alone[kind]
        attempt += 1


@compiled()
def _reflect(seed, agents, places):  # type: ignore[no-untyped-def]
    units = places.shape[0]
    for agent in range(agents):
        places[agent, 0] = _unit(seed, _PLACES, 2 * agent) * (_MIDDLE - _STRIP)
        places[agent, 1] = _unit(seed, _PLACES, 2 * agent + 1) * SIZE
    for enemy in range(units - agents):
        if enemy < agents:
            places[agents + enemy, 0], places[agents + enemy, 1] = SIZE - places[enemy, 0], places[enemy, 1]
        else:
            places[agents + enemy, 0] = _MIDDLE + _unit(seed, _MORE_PLACES, 2 * enemy) * _MIDDLE
            places[agents + enemy, 1] = _unit(seed, _MORE_PLACES, 2 * enemy + 1) * SIZE


@compiled()
def _surround(seed, agents, places):  # type: ignore[no-untyped-def]
    """Draws of the layout: 1 the number of groups, 2 to 5 their diagonals, 6 to 9 their places on them."""
    enemies = places.shape[0] - agents
    places[:agents] = _MIDDLE
    groups = 1 + int(_unit(seed, _LAYOUT, 1) * 4.0)
    corners = np.arange(4)
    for group in range(groups):
        other = group + int(_unit(seed, _LAYOUT, 2 + group) * (4 - group))
        corners[group], corners[other] = corners[other], corners[group]
    sizes = np.zeros(groups, np.int64)
    for enemy in range(enemies):
        sizes[int(_unit(seed, _PLACES, enemy) * groups)] += 1
    unit = agents
    for group in range(groups):
        share = _unit(seed, _LAYOUT, 6 + group)
        east, north = corners[group] >= 2, corners[group] in (1, 2)  # 0 south-west, then clockwise
        for _ in range(sizes[group]):
            places[unit, 0] = (_MIDDLE + (_OFFSET if east else -_OFFSET)) * share + (SIZE if east else 0) * (1 - share)
            places[unit, 1] = (_MIDDLE + (_OFFSET if north else -_OFFSET)) * share + (SIZE if north else 0) * (
                1 - share
            )
            unit += 1


@compiled()
def _settle(kinds, places, tables):  # type: ignore[no-untyped-def]
    """Put units, in order of creation, onto free spots; whether all found one."""
    contacts, planes, passable, spiral = tables
    for unit in range(kinds.shape[0]):
        for axis in range(2):
            inside = np.floor(places[unit, axis] * _GRAIN + 0.5) / _GRAIN
            places[unit, axis] = min(max(inside, 0.0), SIZE - 1.0 / _GRAIN)
        x, y = places[unit]
        spot = nearest_free(x, y, kinds[unit], kinds, places, unit, contacts, planes, passable, spiral)
        if spot == NOWHERE:
            return False
        places[unit, 0], places[unit, 1] = x + spiral[spot, 0], y + spiral[spot, 1]
    return True


@compiled()
def _sort_agents(agents, ranks, kinds, places):  # type: ignore[no-untyped-def]
    for last in range(1, agents):
        at = last
        while at > 0:
            a, b = at - 1, at
            before = (ranks[kinds[a]], places[a, 0], places[a, 1]) <= (ranks[kinds[b]], places[b, 0], places[b, 1])
            if before:
                break
            kinds[a], kinds[b] = kinds[b], kinds[a]
            for axis in range(2):
                places[a, axis], places[b, axis] = places[b, axis], places[a, axis]
            at -= 1


@compiled()
def _draw_battles(seeds, agents, types, bounds, alone, ranks, tables, kinds, places):  # type: ignore[no-untyped-def]
    """Fills kinds (B, U) and places (B, U, 2); whether everybody found room."""
    enemies = kinds.shape[1] - agents
    fits = True
    for battle in range(seeds.shape[0]):
        seed = seeds[battle]
        _draw_team(seed, _TEAM, types, bounds, alone, kinds[battle, :agents])
        same = min(agents, enemies)
        kinds[battle, agents : agents + same] = kinds[battle, :same]
        if enemies > agents:
            _draw_team(seed, _MORE_ENEMIES, types, bounds, alone, kinds[battle, 2 * agents :])
        if _unit(seed, _LAYOUT, 0) < REFLECTED_SHARE:
            _reflect(seed, agents, places[battle])
        else:
            _surround(seed, agents, places[battle])
        fits = fits and _settle(kinds[battle], places[battle], tables)
        _sort_agents(agents, ranks, kinds[battle], places[battle])
    return fits
