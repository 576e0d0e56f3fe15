"""Where a unit goes that is created at a point: onto it or, if it cannot stand there, onto the nearest spot it can.

Assumption: the game's debug command does this; how it chooses among equally near spots is unknown.
"""

# K = 11 unit-type numbers (0 unused)

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from s2rm_data.compiled import compiled
from s2rm_data.generators.sc2.maps import SIZE
from s2rm_data.generators.sc2.units import UNIT_TYPES, contact_distance

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
    first `count` units, of types `kinds` at `places` (n, 2); NOWHERE if there is none. Map coordinates.
    """
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
