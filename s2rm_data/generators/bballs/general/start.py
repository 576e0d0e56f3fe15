"""First frames of general worlds, as a pure function of the sequence's seed: radii, masses, places and velocities.

Balls are placed one after the other, the largest first, each uniformly in the space that is still free; where one finds
no place, all are placed anew. Only + - * / sqrt and comparisons.
"""

# N sequences, n balls, D discs and G walls that stand still

from __future__ import annotations

import math
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from s2rm_data.compiled import compiled
from s2rm_data.config import between, checked
from s2rm_data.errors import UsageError
from s2rm_data.generators.bballs.general.config import MAX_OBSTACLES, WALL_HALF_WIDTH_PX, GeneralConfig
from s2rm_data.generators.bballs.start import draw_velocities, uniforms
from s2rm_data.seeding import sequence_seeds

_GENERAL_PLACE, _BODY = (np.uint64(purpose) for purpose in (16, 17))  # purposes of draws that plain starts do not use
_ATTEMPTS, _TRIES = 200, 1000
_TRIALS = 64
_ROUNDING = 0.01  # px by which places in hundredths may be nearer to each other


def general_start(seeds: NDArray[np.uint64], config: GeneralConfig) -> tuple[NDArray[np.float64], ...]:
    """Position and velocity (N, n, 2), radius and mass (N, n), in px, frames and units of mass."""
    position = np.empty((len(seeds), config.balls, 2))
    velocity = np.empty_like(position)
    radius, mass = np.empty((2, len(seeds), config.balls))
    _draw_bodies(seeds, *config.radius_px, *(config.mass_range or (1.0, 1.0)), radius, mass)
    if config.mass == "area":
        mass = math.pi * radius * radius
    stuck = _place_all(seeds, float(config.size), config.discs, config.segments, radius, position)
    if stuck >= 0:
        raise _no_room(config)
    draw_velocities(seeds, config.speed_px_per_frame, config.system_speed_px_per_frame, velocity)
    return position, velocity, radius, mass


def scattered(count: int, config: GeneralConfig, seed: int) -> list[tuple[float, float]]:
    """Places of fixed balls as large as the largest ball of a world that has walls alone, the same for all its splits.

    They are in hundredths of a pixel, so that the command that makes a split can list them.
    """
    checked("fixed", count, Annotated[int, between(0, MAX_OBSTACLES)])
    seeds = sequence_seeds(seed, "bballs/fixed", 0, 1)
    radius, position = np.full((1, count), config.radius_px[1] + _ROUNDING), np.empty((1, count, 2))
    if _place_all(seeds, float(config.size), config.discs, config.segments, radius, position) >= 0:
        raise UsageError(
            f"{count} fixed balls of radius {config.radius_px[1]:g} px find no places in a box of {config.size} x "
            f"{config.size} px with {len(config.walls)} inner walls; take fewer, or list their places and radii"
        )
    return [(round(float(x), 2), round(float(y), 2)) for x, y in position[0]]


def check_room(config: GeneralConfig) -> None:
    """Raise a UsageError unless balls of the largest radius find places in each of some trials."""
    seeds = np.arange(_TRIALS, dtype=np.uint64)
    radius = np.full((_TRIALS, config.balls), config.radius_px[1])
    position = np.empty((_TRIALS, config.balls, 2))
    if _place_all(seeds, float(config.size), config.discs, config.segments, radius, position) >= 0:
        raise _no_room(config)


def _no_room(config: GeneralConfig) -> UsageError:
    return UsageError(
        f"{config.balls} balls of radius up to {config.radius_px[1]:g} px do not find places in a box of {config.size} "
        f"x {config.size} px with {len(config.fixed)} fixed balls and {len(config.walls)} inner walls; take fewer or "
        "smaller balls, or a larger box"
    )


@compiled(error_model="numpy")
def _draw_bodies(seeds, radius_low, radius_high, mass_low, mass_high, radius, mass):  # type: ignore[no-untyped-def]
    for s in range(len(seeds)):
        for k in range(radius.shape[1]):
            a, b, _, _ = uniforms(seeds[s], _BODY, k)
            radius[s, k] = radius_low + a * (radius_high - radius_low)
            mass[s, k] = mass_low + b * (mass_high - mass_low)


@compiled(error_model="numpy")
def segment_distance_sq(x, y, segment):  # type: ignore[no-untyped-def]
    """Square distance of a point to a wall's middle line (x0, y0, x1, y1)."""
    ex, ey = segment[2] - segment[0], segment[3] - segment[1]
    px, py = x - segment[0], y - segment[1]
    along = min(max((px * ex + py * ey) / (ex * ex + ey * ey), 0.0), 1.0)
    px, py = px - along * ex, py - along * ey
    return px * px + py * py


@compiled(error_model="numpy")
def _is_free(x, y, r, discs, segments, order, placed, radius, position):  # type: ignore[no-untyped-def]
    """Whether a ball at (x, y) touches neither what stands still nor the balls that are placed."""
    for k in range(len(discs)):
        dx, dy, reach = x - discs[k, 0], y - discs[k, 1], r + discs[k, 2]
        if dx * dx + dy * dy < reach * reach:
            return False
    for k in range(len(segments)):
        if segment_distance_sq(x, y, segments[k]) < (r + WALL_HALF_WIDTH_PX) * (r + WALL_HALF_WIDTH_PX):
            return False
    for k in order[:placed]:
        dx, dy, reach = x - position[k, 0], y - position[k, 1], r + radius[k]
        if dx * dx + dy * dy < reach * reach:
            return False
    return True


@compiled(error_model="numpy")
def _place(seed, size, discs, segments, radius, position):  # type: ignore[no-untyped-def]
    """Fill position (n, 2); False when all attempts fail."""
    order = np.argsort(-radius, kind="mergesort")
    draw = 0
    for _ in range(_ATTEMPTS):
        placed, tries = 0, 0
        while placed < len(position) and tries < _TRIES:
            k = order[placed]
            r = radius[k]
            a, b, _, _ = uniforms(seed, _GENERAL_PLACE, draw)
            draw += 1
            x, y = r + a * (size - 2 * r), r + b * (size - 2 * r)
            if _is_free(x, y, r, discs, segments, order, placed, radius, position):
                position[k, 0], position[k, 1] = x, y
                placed, tries = placed + 1, 0
            else:
                tries += 1
        if placed == len(position):
            return True
    return False


@compiled(error_model="numpy")
def _place_all(seeds, size, discs, segments, radius, position):  # type: ignore[no-untyped-def]
    """Fill position (N, n, 2); the first sequence without room, or -1."""
    for s in range(len(seeds)):
        if not _place(seeds[s], size, discs, segments, radius[s], position[s]):
            return s
    return -1
