"""Finding the ways around the walls of a terrain, in compiled functions: only who walks imports them."""

# 32 x 32 cells, first index x (east), second y (north); cell = 32 x + y

from __future__ import annotations

import numpy as np

from s2rm_data.compiled import compiled
from s2rm_data.generators.sc2.maps import CELLS, SIZE


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
