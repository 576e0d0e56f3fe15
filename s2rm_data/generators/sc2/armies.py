"""The draws of SMACv2's generated battles: armies by weight, places by layout, as `generated` describes them.

An episode is a function of its seed. Only + - * / and comparisons decide.
"""

# B battles, U units of both sides (agents first), K unit types of a race

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from s2rm_data.compiled import compiled
from s2rm_data.errors import UsageError
from s2rm_data.generators.sc2.generated import RACES, TERRAIN, Generated
from s2rm_data.generators.sc2.maps import SIZE, terrain
from s2rm_data.generators.sc2.placing import NOWHERE, contacts, nearest_free, planes, spiral
from s2rm_data.generators.sc2.units import SMAC_RANK, UNIT_TYPES
from s2rm_data.philox import philox, to_unit

REFLECTED_SHARE = 0.5
_MIDDLE = SIZE / 2
_STRIP = 1.0  # left free west of the middle
_OFFSET = 2.0  # the diagonals end this far from the middle, in x and in y
_GRAIN = 4096.0  # positions have twelve binary digits after the point, as the game's
_DOMAIN = np.uint64(0x534D414376322D47)  # "SMACv2-G"
_TEAM, _MORE_ENEMIES, _LAYOUT, _PLACES, _MORE_PLACES = (np.uint64(tag) for tag in range(5))
_LONGEST_TRY = 1 << 20  # words of a stream that one attempt to draw an army may use


def draw(generated: Generated, seeds: NDArray[np.uint64]) -> tuple[NDArray[np.uint8], NDArray[np.float64]]:
    """(B, U) unit types, agents in SMAC's order (unit type, x, y), then enemies in order of creation; and (B, U, 2)
    map coordinates of their starts.
    """
    race = RACES[generated.race]
    types = np.array(generated.unit_types, dtype=np.uint8)
    bounds = np.cumsum(list(race.weights.values()))
    alone = np.array([name not in race.never_alone for name in race.weights])
    units = generated.agents + generated.enemies
    kinds, places = np.zeros((len(seeds), units), np.uint8), np.zeros((len(seeds), units, 2))
    ranks = np.array([0, *(SMAC_RANK[number] for number in UNIT_TYPES)], dtype=np.int64)
    tables = (contacts(), planes(), terrain(TERRAIN).passable, spiral())
    seeds = np.ascontiguousarray(seeds, dtype=np.uint64)
    if not _draw_battles(seeds, generated.agents, types, bounds, alone, ranks, tables, kinds, places):
        raise UsageError(f"the armies of {generated.agents} against {generated.enemies} do not fit; take fewer units")
    return kinds, places


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
