"""Where units stand when a battle begins: each squad is created at one point and pushed apart.

Assumption: a unit gets the free spot nearest to its spawn point, squads and units in the order the map's script creates
them; the enemies' spots are the mirror image (east-west) of those that the same army would get on the agents' side.
Spots lie on a grid of an eighth of a map unit, so that the formation is exact in binary and mirrors without rounding.
"""

# U units of both sides, agents first

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from s2rm_data.errors import UsageError
from s2rm_data.generators.sc2.maps import SIZE, terrain
from s2rm_data.generators.sc2.scenarios import Scenario, Squad
from s2rm_data.generators.sc2.units import SMAC_RANK, UNIT_TYPES

_GRID = 0.125
_REACH = 9.0  # farthest spot from the spawn point
CENTRE = SIZE / 2


@dataclass(frozen=True, kw_only=True, eq=False)
class Formation:
    unit_type: NDArray[np.uint8]  # (U,)
    position: NDArray[np.float64]  # (U, 2) relative to the map's centre


@cache
def formation(scenario: Scenario) -> Formation:
    """Slots of a scenario: agents in SMAC's order (unit type, x, y), then the enemies in order of creation."""
    agents = _place(scenario, scenario.agents, scenario.enemies, side=1)
    enemies = _place(scenario, scenario.enemies, scenario.agents, side=-1)
    agents.sort(key=lambda unit: (SMAC_RANK[unit[0]], unit[1], unit[2]))
    units = agents + enemies
    return Formation(
        unit_type=np.array([unit[0] for unit in units], dtype=np.uint8),
        position=np.array([unit[1:] for unit in units], dtype=np.float64),
    )


def _place(
    scenario: Scenario, squads: tuple[Squad, ...], others: tuple[Squad, ...], *, side: int
) -> list[tuple[int, float, float]]:
    placed: list[tuple[int, float, float]] = []
    for squad in squads:
        spots = _spots(scenario, squad, others, side)
        free = np.ones(len(spots), dtype=np.bool_)
        for unit in placed:
            free &= _is_clear_of(spots, squad.unit_type, unit)
        for _ in range(squad.count):
            if not free.any():
                whose = "agents'" if side == 1 else "enemies'"
                raise UsageError(
                    f"scenario {scenario.name!r}: the {whose} army does not fit, there is room for {len(placed)} of "
                    f"its units on their half of the terrain {scenario.terrain!r}; take fewer units"
                )
            x, y = spots[np.argmax(free)]
            placed.append((squad.unit_type, float(x), float(y)))
            free &= _is_clear_of(spots, squad.unit_type, placed[-1])
    return placed


def _is_clear_of(spots: NDArray[np.float64], unit_type: int, other: tuple[int, float, float]) -> NDArray[np.bool_]:
    """(n,) which spots a unit of a type can take beside one that stands already."""
    unit, standing = UNIT_TYPES[unit_type], UNIT_TYPES[other[0]]
    if unit.plane != standing.plane:
        return np.ones(len(spots), dtype=np.bool_)
    apart = unit.separation_radius + standing.separation_radius
    return np.sum((spots - other[1:]) ** 2, axis=1) >= apart**2


def _spots(scenario: Scenario, squad: Squad, others: tuple[Squad, ...], side: int) -> NDArray[np.float64]:
    """Spots a unit of the squad can stand on, nearest to the spawn point first; (n, 2) relative to the map's centre.

    A spot belongs to the army whose spawn points are nearer, so that armies never mingle.
    """
    steps = np.arange(-int(_REACH / _GRID), int(_REACH / _GRID) + 1) * _GRID
    dx, dy = (axis.ravel() for axis in np.meshgrid(steps, steps, indexing="ij"))
    # Assumption: of equally near spots the rearmost, then the northern one. Chosen by outcome, not by
    # evidence: who stands in front decides battles (docs/fidelity.md).
    nearest = np.lexsort((-dy, dx, dx * dx + dy * dy))
    nearest = nearest[(dx * dx + dy * dy)[nearest] <= _REACH * _REACH]
    own = np.array(squad.spawn) - CENTRE
    spots = own + np.stack([side * dx[nearest], dy[nearest]], axis=1)
    cells = np.floor(spots + CENTRE).astype(np.int64)
    inside = ((cells >= 0) & (cells < SIZE)).all(axis=1)
    spots, cells = spots[inside], cells[inside]
    passable = terrain(scenario.terrain).passable[UNIT_TYPES[squad.unit_type].plane]
    usable = passable[cells[:, 0], cells[:, 1]]
    distance = np.sum((spots - own) ** 2, axis=1)
    for other in others:
        usable &= distance < np.sum((spots - (np.array(other.spawn) - CENTRE)) ** 2, axis=1)
    return spots[usable]
