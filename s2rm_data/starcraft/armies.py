"""The draws of SMACv2's generated battles: armies by weight, places by layout, as `generated` describes them.

An episode is a function of its seed. Only + - * / and comparisons decide."""

# B battles, U units of both sides (agents first), K unit types of a race

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray

from s2rm_data.core.compiled import compiled
from s2rm_data.core.errors import UsageError
from s2rm_data.core.philox import philox, to_unit
from s2rm_data.starcraft.formation import NOWHERE, contacts, nearest_free, planes, spiral
from s2rm_data.starcraft.generated import TERRAIN, Generated
from s2rm_data.starcraft.terrain_maps import SIZE, terrain
from s2rm_data.starcraft.units import NUMBER_OF, SMAC_RANK, UNIT_TYPES

_STRIP = 1.0  # left free west of the middle
_OFFSET = 2.0  # the diagonals end this far from the middle, in x and in y
_GRAIN = 4096.0  # positions have twelve binary digits after the point, as the game's
_DOMAIN = np.uint64(0x534D414376322D47)  # "SMACv2-G"
_TEAM, _MORE_ENEMIES, _LAYOUT, _PLACES, _MORE_PLACES = (np.uint64(tag) for tag in range(5))
POINTS = (8.0, 16.0), (24.0, 16.0)  # where smacv2 puts the armies if it draws no places
_LONGEST_TRY = 1 << 20  # words of a stream that one attempt to draw an army may use


def draw(generated: Generated, seeds: NDArray[np.uint64]) -> tuple[NDArray[np.uint8], NDArray[np.float64]]:
    """(B, U) unit types, agents in SMAC's order (unit type, x, y), then enemies in order of creation; and (B, U, 2)
    map coordinates of their starts."""
    units = generated.agents + generated.enemies
    kinds, places = np.zeros((len(seeds), units), np.uint8), np.zeros((len(seeds), units, 2))
    ranks = np.array([0, *(SMAC_RANK[number] for number in UNIT_TYPES)], dtype=np.int64)
    tables = (contacts(), planes(), terrain(TERRAIN).passable, spiral())
    seeds = np.ascontiguousarray(seeds, dtype=np.uint64)
    if generated.given:
        kinds[:] = [NUMBER_OF[name] for name, _, _ in generated.given]
        places[:] = [place for _, *place in generated.given]
    else:
        share = -1.0 if generated.reflected_share is None else generated.reflected_share  # negative for no layouts
        _draw_battles(seeds, generated.agents, *_teams_of(generated), share, *generated.size, kinds, places)
    if not _settle_battles(generated.agents, ranks, tables, kinds, places):
        raise UsageError(f"the armies of {generated.agents} against {generated.enemies} do not fit; take fewer units")
    return kinds, places


def _teams_of(
    generated: Generated,
) -> tuple[NDArray[np.uint8], NDArray[np.float64], NDArray[np.bool_], NDArray[np.uint8]]:
    """(K,) types, the upper bounds of their draws, which may stand alone; (C, N) all armies, to pick one of."""
    names = list(generated.chances)
    types = np.array([NUMBER_OF[name] for name in names], dtype=np.uint8)
    bounds = np.cumsum(list(generated.chances.values()))
    alone = np.array([name not in generated.exceptions for name in names])
    every = list(combinations_with_replacement(range(len(names)), generated.agents)) if generated.all_teams else []
    return types, bounds, alone, np.array(every, dtype=np.uint8).reshape(len(every), generated.agents)


@compiled()
def unit_draw(seed, tag, number):  # type: ignore[no-untyped-def]
    """Draw `number` of a stream, in [0, 1)."""
    return to_unit(philox(seed, _DOMAIN, np.uint64(number), tag)[0])


@compiled()
def _draw_team(seed, tag, types, bounds, alone, kinds):  # type: ignore[no-untyped-def]
    """Types of one army, drawn again while none of them may stand alone."""
    attempt, stands = 0, False
    while not stands:
        for unit in range(kinds.shape[0]):
            draw, kind = unit_draw(seed, tag, attempt * _LONGEST_TRY + unit), 0
            while kind < types.shape[0] - 1 and draw >= bounds[kind]:
                kind += 1
            kinds[unit] = types[kind]
            stands = stands or alone[kind]
        attempt += 1


@compiled()
def _pick_team(seed, tag, types, alone, every, kinds):  # type: ignore[no-untyped-def]
    """One of all armies, not of those that may not stand alone, in an order that is drawn as well."""
    attempt, stands = 0, False
    while not stands:
        first = attempt * _LONGEST_TRY
        team = every[int(unit_draw(seed, tag, first) * every.shape[0])]
        for unit in range(kinds.shape[0]):
            kinds[unit] = types[team[unit]]
            stands = stands or alone[team[unit]]
        attempt += 1
    for unit in range(kinds.shape[0] - 1, 0, -1):
        other = int(unit_draw(seed, tag, first + unit) * (unit + 1))
        kinds[unit], kinds[other] = kinds[other], kinds[unit]


@compiled()
def _reflect(seed, agents, width, height, places):  # type: ignore[no-untyped-def]
    units, middle = places.shape[0], width / 2
    for agent in range(agents):
        places[agent, 0] = unit_draw(seed, _PLACES, 2 * agent) * (middle - _STRIP)
        places[agent, 1] = unit_draw(seed, _PLACES, 2 * agent + 1) * height
    for enemy in range(units - agents):
        if enemy < agents:
            places[agents + enemy, 0], places[agents + enemy, 1] = width - places[enemy, 0], places[enemy, 1]
        else:
            places[agents + enemy, 0] = middle + unit_draw(seed, _MORE_PLACES, 2 * enemy) * middle
            places[agents + enemy, 1] = unit_draw(seed, _MORE_PLACES, 2 * enemy + 1) * height


@compiled()
def _surround(seed, agents, width, height, places):  # type: ignore[no-untyped-def]
    """Draws of the layout: 1 the number of groups, 2 to 5 their diagonals, 6 to 9 their places on them."""
    enemies = places.shape[0] - agents
    middle_x, middle_y = width / 2, height / 2
    places[:agents, 0], places[:agents, 1] = middle_x, middle_y
    groups = 1 + int(unit_draw(seed, _LAYOUT, 1) * 4.0)
    corners = np.arange(4)
    for group in range(groups):
        other = group + int(unit_draw(seed, _LAYOUT, 2 + group) * (4 - group))
        corners[group], corners[other] = corners[other], corners[group]
    sizes = np.zeros(groups, np.int64)
    for enemy in range(enemies):
        sizes[int(unit_draw(seed, _PLACES, enemy) * groups)] += 1
    unit = agents
    for group in range(groups):
        share = unit_draw(seed, _LAYOUT, 6 + group)
        east, north = corners[group] >= 2, corners[group] in (1, 2)  # 0 south-west, then clockwise
        for _ in range(sizes[group]):
            near_x, far_x = middle_x + (_OFFSET if east else -_OFFSET), width if east else 0.0
            near_y, far_y = middle_y + (_OFFSET if north else -_OFFSET), height if north else 0.0
            places[unit, 0] = near_x * share + far_x * (1 - share)
            places[unit, 1] = near_y * share + far_y * (1 - share)
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
def _draw_battles(  # type: ignore[no-untyped-def]
    seeds, agents, types, bounds, alone, every, reflected_share, width, height, kinds, places
):
    enemies = kinds.shape[1] - agents
    for battle in range(seeds.shape[0]):
        seed = seeds[battle]
        if every.shape[0] > 0:
            _pick_team(seed, _TEAM, types, alone, every, kinds[battle, :agents])
        else:
            _draw_team(seed, _TEAM, types, bounds, alone, kinds[battle, :agents])
        same = min(agents, enemies)
        kinds[battle, agents : agents + same] = kinds[battle, :same]
        if enemies > agents:
            _draw_team(seed, _MORE_ENEMIES, types, bounds, alone, kinds[battle, 2 * agents :])
        if reflected_share < 0.0:
            for unit in range(kinds.shape[1]):
                places[battle, unit, 0], places[battle, unit, 1] = POINTS[0 if unit < agents else 1]
        elif unit_draw(seed, _LAYOUT, 0) < reflected_share:
            _reflect(seed, agents, width, height, places[battle])
        else:
            _surround(seed, agents, width, height, places[battle])


@compiled()
def _settle_battles(agents, ranks, tables, kinds, places):  # type: ignore[no-untyped-def]
    fits = True
    for battle in range(kinds.shape[0]):
        fits = fits and _settle(kinds[battle], places[battle], tables)
        _sort_agents(agents, ranks, kinds[battle], places[battle])
    return fits
