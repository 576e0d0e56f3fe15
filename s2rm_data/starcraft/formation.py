"""Where units stand when a battle begins: each squad is created at one point, unit by unit, on the nearest free spot.

The rule and its numbers are inferred from recordings of the real game, whose starting positions it gives to 0.0005
(docs/fidelity/engine.md). Spots are tried on a square lattice of the unit's radius around the spawn point, nearest
first. On the first ring a spot that is taken is pushed out of the units in the way, one after the other, and counts if
it is free then and did not move by a radius; the order of the pushes is chance, so that a scenario has several
formations.
The enemies' formation is the agents', shifted, not mirrored; `mirrored` reflects it (east to west) for fair battles.

Where a unit goes that is created at a point: onto it or, if it cannot stand there, onto the nearest spot it can.

Assumption: the game's debug command does this; how it chooses among equally near spots is unknown."""

# U units of both sides, agents first; K = 11 unit-type numbers (0 unused)

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from s2rm_data.core.compiled import compiled
from s2rm_data.core.errors import UsageError
from s2rm_data.starcraft.scenarios import Scenario, Squad
from s2rm_data.starcraft.terrain_maps import SIZE, terrain
from s2rm_data.starcraft.units import SMAC_RANK, UNIT_TYPES, contact_distance

NOWHERE = -1


@cache
def spiral() -> NDArray[np.float64]:
    """(n, 2) displacements, nearest first: an eighth of a unit apart up to one unit away, then a half up to nine."""
    fine, coarse = np.arange(-8, 9) / 8, np.arange(-18, 19) / 2
    grids = [np.stack([g.ravel() for g in np.meshgrid(axis, axis, indexing="ij")], axis=1) for axis in (fine, coarse)]
    spots = np.unique(np.concatenate(grids), axis=0)
    return np.ascontiguousarray(spots[np.argsort(np.sum(spots**2, axis=1), kind="stable")])


@cache
def contacts() -> NDArray[np.float64]:
    """(K, K) how near two unit types come."""
    apart = np.zeros((len(UNIT_TYPES) + 1, len(UNIT_TYPES) + 1))
    for a, unit in UNIT_TYPES.items():
        for b, other in UNIT_TYPES.items():
            apart[a, b] = contact_distance(unit, other)
    return apart


@cache
def planes() -> NDArray[np.int64]:
    """(K,) the plane each unit type moves on."""
    return np.array([0, *(unit.plane for unit in UNIT_TYPES.values())], dtype=np.int64)


@compiled()
def nearest_free(x, y, kind, kinds, places, count, contacts, planes, passable, spiral):  # type: ignore[no-untyped-def]
    """Index into `spiral` of the nearest displacement from (x, y) where a unit of type `kind` can stand among the
    first `count` units, of types `kinds` at `places` (n, 2); NOWHERE if there is none. Map coordinates."""
    for index in range(spiral.shape[0]):
        u, v = x + spiral[index, 0], y + spiral[index, 1]
        if not (0.0 <= u < SIZE and 0.0 <= v < SIZE) or not passable[planes[kind], int(u), int(v)]:
            continue
        free = True
        for other in range(count):
            dx, dy, apart = u - places[other, 0], v - places[other, 1], contacts[kind, kinds[other]]
            if dx * dx + dy * dy < apart * apart:
                free = False
                break
        if free:
            return index
    return NOWHERE


_REACH = 9.0  # farthest spot from the spawn point
_PUSH_MARGIN = 1.0 / 1024.0  # a pushed spot lies this far beyond contact
_SLACK = 1e-9
_GRAIN = 4096.0  # the game's coordinates have twelve binary digits after the point; float32 holds them exactly
CENTRE = SIZE / 2

Spot = tuple[float, float]
Placed = tuple[tuple[int, float, float], ...]  # (unit type, x, y), in order of creation, relative to the map's centre

# Where recordings contradict equal chances: (army, letters of the unit, its number within the squad) -> offsets from
# the spawn point and their shares; the rule's own spots take the rest. What makes the game choose them is unknown.
_MEASURED: dict[tuple[str, str, int], tuple[tuple[Spot, float], ...]] = {
    ("2s3z", "z", 2): (((-0.5, 1.0), 6 / 64),),
    ("7m2mr1mv", "mr", 0): (((-0.8307, 0.9664), 1.0),),  # 87 of 96, survivors of the last battle were in the way of 9
    ("7m2mr1mv", "mr", 1): (((-1.125, -1.125), 60 / 89), ((0.0, 1.6875), 9 / 89)),
    ("8m3mr1mv", "mr", 1): (((-1.125, -1.125), 25 / 62),),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Formation:
    unit_type: NDArray[np.uint8]  # (U,)
    position: NDArray[np.float64]  # (U, 2) relative to the map's centre


@cache
def formations(scenario: Scenario, *, mirrored: bool = False) -> tuple[tuple[float, Formation], ...]:
    """All formations of a scenario with their chances. Slots: agents in SMAC's order (unit type, x, y), then the
    enemies in order of creation. `mirrored`: one formation, in which armies that are alike stand as mirror images."""
    agents = _armies(scenario, "agents", west_to_east=True)
    enemies = _armies(scenario, "enemies", west_to_east=not mirrored)
    if mirrored:
        agents, enemies = ((1.0, agents[0][1]),), ((1.0, enemies[0][1]),)
    return tuple((p * q, _in_slots(ours, theirs)) for p, ours in agents for q, theirs in enemies)


def formation(scenario: Scenario) -> Formation:
    """The likeliest formation."""
    return max(formations(scenario), key=lambda entry: entry[0])[1]


def _in_slots(agents: Placed, enemies: Placed) -> Formation:
    units = [*sorted(agents, key=lambda unit: (SMAC_RANK[unit[0]], unit[1], unit[2])), *enemies]
    return Formation(
        unit_type=np.array([unit[0] for unit in units], dtype=np.uint8),
        position=np.array([unit[1:] for unit in units], dtype=np.float64),
    )


def _armies(scenario: Scenario, side: str, *, west_to_east: bool) -> tuple[tuple[float, Placed], ...]:
    """Ways in which an army can stand, with their chances."""
    squads, others = scenario.agents, scenario.enemies
    if side == "enemies":
        squads, others = others, squads
    spelled = "".join(f"{squad.count}{UNIT_TYPES[squad.unit_type].letters}" for squad in squads)
    ways: list[tuple[float, Placed]] = [(1.0, ())]
    for squad in squads:
        spots, inner = _spots(scenario, squad, others, 1.0 if west_to_east else -1.0)
        for number in range(squad.count):
            extra = _MEASURED.get((spelled, UNIT_TYPES[squad.unit_type].letters, number), ()) if west_to_east else ()
            ways = [
                (chance * share, (*placed, (squad.unit_type, *spot)))
                for chance, placed in ways
                for share, spot in _with_extra(squad, extra, placed, _next_spots(squad.unit_type, placed, spots, inner))
            ]
            if not ways:
                raise UsageError(
                    f"scenario {scenario.name!r}: the {side}' army does not fit, there is room for {number} of "
                    f"its {UNIT_TYPES[squad.unit_type].name}s on their half of the terrain {scenario.terrain!r}; "
                    "take fewer units"
                )
    return tuple(ways)


def _with_extra(
    squad: Squad, extra: tuple[tuple[Spot, float], ...], placed: Placed, spots: list[tuple[float, Spot]]
) -> list[tuple[float, Spot]]:
    """The measured spots that are free, and the rule's own."""
    x, y = squad.spawn
    measured = [(share, (_on_grain(x + dx - CENTRE), _on_grain(y + dy - CENTRE))) for (dx, dy), share in extra]
    apart, taken = _others(squad.unit_type, placed)
    measured = [entry for entry in measured if (_gaps(np.array([entry[1]]), taken) >= apart - _SLACK).all()]
    rest = 1.0 - sum(share for share, _ in measured)
    return measured + [(rest * share, spot) for share, spot in spots if rest > 0.0]


def _next_spots(
    unit_type: int, placed: Placed, spots: NDArray[np.float64], inner: NDArray[np.bool_]
) -> list[tuple[float, Spot]]:
    """Spots the next unit may get, with their chances: several where the order of pushes decides; none if all is taken.

    Both orders, newest and oldest unit first, are equally likely, as far as recordings tell (2s3z: 36 to 28)."""
    apart, taken = _others(unit_type, placed)
    free: NDArray[np.bool_] = np.all(_gaps(spots, taken) >= apart - _SLACK, axis=1)
    chosen: dict[Spot, float] = {}
    for share, newest_first in ((0.5, True), (0.5, False)):
        spot = _first_spot(UNIT_TYPES[unit_type].radius, spots, inner, free, taken, apart, newest_first)
        if spot is None:
            return []
        chosen[spot] = chosen.get(spot, 0.0) + share
    return [(share, spot) for spot, share in chosen.items()]


def _others(unit_type: int, placed: Placed) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(n,) how near a unit may come to those who stand there, and (n, 2) where these stand."""
    apart = np.array([contact_distance(UNIT_TYPES[unit_type], UNIT_TYPES[other]) for other, _, _ in placed])
    return apart, np.array([unit[1:] for unit in placed]).reshape(-1, 2)


def _first_spot(
    radius: float,
    spots: NDArray[np.float64],
    inner: NDArray[np.bool_],
    free: NDArray[np.bool_],
    taken: NDArray[np.float64],
    apart: NDArray[np.float64],
    newest_first: bool,
) -> Spot | None:
    for index in np.flatnonzero(free | inner):
        x, y = (float(value) for value in spots[index])
        if free[index]:
            return x, y
        pushed = _pushed((x, y), taken, apart, newest_first)
        moved = np.hypot(pushed[0] - x, pushed[1] - y)
        if 0.0 < moved < radius and (_gaps(np.array([pushed]), taken) >= apart - _SLACK).all():
            return pushed
    return None


def _gaps(spots: NDArray[np.float64], taken: NDArray[np.float64]) -> NDArray[np.float64]:
    """(spots, taken) distances."""
    difference: NDArray[np.float64] = spots[:, None] - taken[None]
    return np.sqrt(difference[..., 0] ** 2 + difference[..., 1] ** 2)


def _pushed(spot: Spot, taken: NDArray[np.float64], apart: NDArray[np.float64], newest_first: bool) -> Spot:
    """A spot pushed out of each unit it overlaps, along the line of centres."""
    x, y = spot
    for index in reversed(range(len(taken))) if newest_first else range(len(taken)):
        dx, dy = x - taken[index, 0], y - taken[index, 1]
        distance = float(np.sqrt(dx * dx + dy * dy))
        if 0.0 < distance < apart[index]:
            scale = (apart[index] + _PUSH_MARGIN) / distance
            x, y = float(taken[index, 0] + dx * scale), float(taken[index, 1] + dy * scale)
    return (_on_grain(x), _on_grain(y)) if (x, y) != spot else spot


def _on_grain(coordinate: float) -> float:
    return round(coordinate * _GRAIN) / _GRAIN


@cache
def _lattice(cells: int) -> NDArray[np.int64]:
    """(n, 2) lattice points, nearest first; of equals south first, then counter-clockwise, as the game creates them."""
    points: list[tuple[int, int, int, int]] = []
    for k in range(cells + 1):
        for j in range(k + 1):
            if j == 0:
                ring = [(0, -k), (k, 0), (0, k), (-k, 0)] if k else [(0, 0)]
            elif j == k:
                ring = [(k, -k), (k, k), (-k, k), (-k, -k)]
            else:
                ring = [(j, -k), (k, j), (-j, k), (-k, -j), (k, -j), (j, k), (-k, j), (-j, -k)]
            points += [(j * j + k * k, j, x, y) for x, y in ring]
    points.sort(key=lambda point: point[:2])
    return np.array([point[2:] for point in points])


def _spots(
    scenario: Scenario, squad: Squad, others: tuple[Squad, ...], side: float
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Spots a unit of the squad can stand on, nearest to the spawn point first; (n, 2) relative to the map's centre;
    and which of them belong to the first ring.

    A spot belongs to the army whose spawn points are nearer, so that armies never mingle."""
    unit = UNIT_TYPES[squad.unit_type]
    lattice = _lattice(int(_REACH / unit.radius))
    own = np.array(squad.spawn) - CENTRE
    spots = own + lattice * (side * unit.radius, unit.radius)
    cells = np.floor(spots + CENTRE).astype(np.int64)
    inside = ((cells >= 0) & (cells < SIZE)).all(axis=1)
    lattice, spots, cells = lattice[inside], spots[inside], cells[inside]
    usable = terrain(scenario.terrain).passable[unit.plane][cells[:, 0], cells[:, 1]]
    distance = np.sum((spots - own) ** 2, axis=1)
    usable = usable & (distance <= _REACH * _REACH)
    for other in others:
        usable = usable & (distance < np.sum((spots - (np.array(other.spawn) - CENTRE)) ** 2, axis=1))
    return spots[usable], (np.abs(lattice[usable]) <= 1).all(axis=1)
