"""Terrain of the SMAC maps, 32 by 32 cells each: which cells are walkable and how high they lie. With the shortest ways
around walls.

A terrain is one text file in `terrain/`, north at the top, one character a cell, read off the map files' cell flags and
cliff levels: `0 1 2` walkable ground of that cliff level, `a b c` a ramp from 1 to 2, `# % @` a wall at level 0, 1, 2.
"""

# 32 x 32 cells, first index x (east), second y (north), as SMAC's own grids; cell = 32 x + y

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from s2rm_data.core.compiled import compiled
from s2rm_data.core.errors import UsageError, did_you_mean
from s2rm_data.starcraft.units import AIR, GROUND, WALKER

SIZE = 32
CELLS = SIZE * SIZE


@compiled()
def straight_pairs(passable):  # type: ignore[no-untyped-def]
    """(1024, 1024) whether the segment between two cells' centres, half a cell wide, runs over passable cells only."""
    straight = np.zeros((CELLS, CELLS), dtype=np.bool_)
    for start in range(CELLS):
        x0, y0 = start // SIZE, start % SIZE
        for goal in range(start, CELLS):
            x1, y1 = goal // SIZE, goal % SIZE
            samples = 2 * max(abs(x1 - x0), abs(y1 - y0))
            free = passable[x0, y0] and passable[x1, y1]
            k = 0
            while free and k <= samples:
                along = k / samples if samples > 0 else 0.0
                x, y = x0 + 0.5 + (x1 - x0) * along, y0 + 0.5 + (y1 - y0) * along
                free = (
                    passable[int(x - 0.25), int(y - 0.25)]
                    and passable[int(x - 0.25), int(y + 0.25)]
                    and passable[int(x + 0.25), int(y - 0.25)]
                    and passable[int(x + 0.25), int(y + 0.25)]
                )
                k += 1
            straight[start, goal] = straight[goal, start] = free
    return straight


@compiled()
def waypoints_around_walls(passable, straight):  # type: ignore[no-untyped-def]
    waypoint = np.full((CELLS, CELLS), -1, dtype=np.int16)
    next_cell = np.empty(CELLS, dtype=np.int64)
    for goal in range(CELLS):
        if not passable[goal // SIZE, goal % SIZE]:
            continue
        _shortest_ways(passable, goal, next_cell)
        for start in range(CELLS):
            if next_cell[start] < 0:
                continue
            if straight[start, goal]:
                waypoint[start, goal] = goal
                continue
            step = next_cell[start]
            while next_cell[step] != step and straight[start, next_cell[step]]:
                step = next_cell[step]
            waypoint[start, goal] = step
    return waypoint


@compiled()
def _shortest_ways(passable, goal, next_cell):  # type: ignore[no-untyped-def]
    """Next cell on a shortest 8-connected way to `goal` for every cell, -1 without one; no cutting of corners."""
    cost = np.full(CELLS, 1e9)
    next_cell[:] = -1
    cost[goal], next_cell[goal] = 0.0, goal
    queue = np.empty(64 * CELLS, dtype=np.int64)
    queue[0] = goal
    head, tail = 0, 1
    while head < tail:  # label correcting: a cell is queued again whenever its way gets shorter
        cell = queue[head % queue.size]
        head += 1
        x, y = cell // SIZE, cell % SIZE
        for dx in range(-1, 2):
            for dy in range(-1, 2):
                u, v = x + dx, y + dy
                if not (0 <= u < SIZE and 0 <= v < SIZE) or not passable[u, v]:
                    continue
                if dx != 0 and dy != 0 and not (passable[x, v] and passable[u, y]):
                    continue
                longer = cost[cell] + (1.4142135623730951 if dx != 0 and dy != 0 else 1.0)
                if longer < cost[u * SIZE + v] - 1e-9:
                    cost[u * SIZE + v] = longer
                    next_cell[u * SIZE + v] = cell
                    queue[tail % queue.size] = u * SIZE + v
                    tail += 1


# Height z in map units of each kind of cell: cliff level 1 lies at 8, level 2 at 10, a ramp's cells between (height
# maps).
# Assumption: the ground below the cliffs, never walked on, lies at 1 on every map.
_Z = {"0": 1.0, "1": 8.0, "a": 8.25, "b": 8.75, "c": 9.25, "2": 10.0, "#": 1.0, "%": 8.0, "@": 10.0}
_WALKABLE = "012abc"
_ABOVE_CLIFF = "12abc%@"  # where a colossus can step: ground and the cliff faces between levels


@dataclass(frozen=True, kw_only=True, eq=False)
class Terrain:
    """`passable[plane, x, y]` for ground units, walkers (colossus) and fliers; `waypoint[plane, from, to]` is the
    cell to head for on the way from cell `from` to cell `to` (cell = 32 x + y): `to` itself where the way is
    straight, -1 if there is none."""

    name: str
    pathing: NDArray[np.bool_]  # (32, 32) walkable for ground units; SMAC's pathing grid
    height: NDArray[np.float64]  # (32, 32) SMAC's terrain height: the API's 8-bit value over 255
    z: NDArray[np.float64]  # (32, 32) map units
    passable: NDArray[np.bool_]  # (3, 32, 32)
    waypoint: NDArray[np.int16]  # (2, 1024, 1024) for the planes GROUND and WALKER

    def __reduce__(self) -> Any:
        """A copy is the terrain itself: copies of its arrays could be written to, for which Numba compiles anew."""
        return terrain, (self.name,)


def names() -> list[str]:
    folder = resources.files(__package__) / "terrain"
    return sorted(entry.name.removesuffix(".txt") for entry in folder.iterdir() if entry.name.endswith(".txt"))


@cache
def terrain(name: str) -> Terrain:
    cells = _cells(name)
    z = _z(cells)
    passable = np.empty((3, SIZE, SIZE), dtype=np.bool_)
    passable[GROUND] = np.isin(cells, list(_WALKABLE))
    passable[WALKER] = np.isin(cells, list(_ABOVE_CLIFF)) | passable[GROUND]
    passable[AIR] = True
    waypoint = np.stack([_waypoints(passable[plane]) for plane in (GROUND, WALKER)])
    height = _height(z)
    for array in (z, height, passable, waypoint):
        array.flags.writeable = False
    return Terrain(name=name, pathing=passable[GROUND], height=height, z=z, passable=passable, waypoint=waypoint)


def height_of(name: str) -> NDArray[np.float64]:
    """(32, 32) `Terrain.height` alone, without the time that finding all ways takes."""
    return _height(_z(_cells(name)))


def height_bytes(name: str) -> NDArray[np.uint8]:
    return np.rint(height_of(name) * 255).astype(np.uint8)


def _cells(name: str) -> NDArray[np.str_]:
    """(32, 32) characters, [x, y]."""
    if name not in names():
        there_are = f"there are {', '.join(names())}"
        raise UsageError(f"no terrain {name!r}{did_you_mean(name, names(), there_are)}")
    text = (resources.files(__package__) / "terrain" / f"{name}.txt").read_text(encoding="ascii")
    return np.array([list(row) for row in text.split()]).T[:, ::-1]


def _z(cells: NDArray[np.str_]) -> NDArray[np.float64]:
    return np.vectorize(_Z.__getitem__, otypes=[np.float64])(cells)


def _height(z: NDArray[np.float64]) -> NDArray[np.float64]:
    """The API encodes heights -16..16 in a byte."""
    return np.floor((z + 16.0) * (255.0 / 32.0)) / 255.0


def _waypoints(passable: NDArray[np.bool_]) -> NDArray[np.int16]:
    """For each pair of cells the farthest cell on the shortest way that can be reached in a straight line, -1 without a
    way."""
    inside = passable.ravel()
    xs, ys = np.nonzero(passable)
    if inside.sum() == (np.ptp(xs) + 1) * (np.ptp(ys) + 1):  # a rectangle: every way is straight
        goal = np.arange(CELLS, dtype=np.int16)[None, :]
        return np.where(inside[:, None] & inside[None, :], goal, np.int16(-1))
    grid = np.ascontiguousarray(passable)
    waypoint = waypoints_around_walls(grid, straight_pairs(grid))
    # Assumption: who is sent into a wall goes to the passable cell nearest to it.
    walls, cells = np.flatnonzero(~inside), np.flatnonzero(inside)
    apart = (walls[:, None] // SIZE - cells // SIZE) ** 2 + (walls[:, None] % SIZE - cells % SIZE) ** 2
    waypoint[:, walls] = waypoint[:, cells[np.argmin(apart, axis=1)]]
    return waypoint
