"""How many balls fit: explicit packings of equal balls around the fixed ball of the same radius in the box's middle.

The largest number of discs in a square is an open problem, so what is accepted is what can be shown: `sites` builds
packings of several families and keeps the largest. A ball count is accepted when that packing holds it, and the packing
is also where a start comes from when random placement fails, so that every accepted count can really be placed."""

# K sites, 2 coordinates (x, y)

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from s2rm_data.core.errors import UsageError

MAX_BALLS = 1000
MIN_RADIUS_PX = 0.75  # a disc of radius sqrt(1/2) = 0.707 always covers a pixel centre: every ball shows in every frame
CLEARANCE = 1.01  # packed balls are this much apart, in units of touching, so that none is jammed
_COMPLETED_SITES = 300  # larger packings gain nothing worth the time from filling their holes
_HOLE_GRID = 96


@lru_cache(maxsize=64)
def sites(size: int, radius_px: float) -> NDArray[np.float64]:
    """Centres (K, 2) in px at which K balls stand free of each other, of the walls and of the fixed ball; read-only."""
    half = radius_px * CLEARANCE
    best = np.empty((0, 2))
    if 2 * half <= size:
        # First an empty start: filling its holes in raster order gives rows that lie in each other's gaps.
        for family in (lambda *_: np.empty((0, 2)), _square, _wide_rows, _narrow_rows, _rings):
            candidate = _clear_of_centre(family(float(size), half), size, half)
            if len(candidate) <= _COMPLETED_SITES:
                candidate = _fill_holes(candidate, size, half)
            if len(candidate) > len(best):
                best = candidate
    best.setflags(write=False)
    return best


def capacity(size: int, radius_px: float) -> int:
    """The largest number of balls of this radius that is accepted in a box of this size."""
    return min(len(sites(size, radius_px)), MAX_BALLS)


def largest_radius_px(size: int, balls: int) -> float | None:
    """The largest accepted radius for this number of balls, to 0.01 px; None when not even the smallest is."""
    if balls > MAX_BALLS or capacity(size, MIN_RADIUS_PX) < balls:
        return None
    low, high = MIN_RADIUS_PX, size / 2
    while high - low > 0.005:
        middle = (low + high) / 2
        low, high = (middle, high) if capacity(size, middle) >= balls else (low, middle)
    hundredths = math.floor(low * 100)
    while capacity(size, hundredths / 100) < balls:
        hundredths -= 1
    return hundredths / 100


def check_fit(size: int, radius_px: float, balls: int) -> None:
    """Raise a UsageError that says what would fit, unless `balls` balls of this radius do."""
    if balls <= (most := capacity(size, radius_px)):
        return
    radius, held = largest_radius_px(size, balls), f"at most {most} balls" if most else "no ball"
    other = f"a radius of at most {radius:g} px for {balls}" if radius else f"never as many as {balls}"
    raise UsageError(
        f"{balls} balls of radius {radius_px:g} px do not fit in a box of {size} x {size} px beside the fixed ball in "
        f"its centre; it holds {held} of this radius, or {other}: take fewer or smaller balls, or a larger box"
    )


def _square(size: float, half: float) -> NDArray[np.float64]:
    """As many rows and columns as go in, spread out evenly."""
    line = _spread(size, half, 2 * half)
    return _points(line[None, :].repeat(len(line), 0), line)


def _wide_rows(size: float, half: float) -> NDArray[np.float64]:
    """Hexagonal: rows of equal length, every other one shifted by half a pitch."""
    count = int((size - 2 * half) / (2 * half) + 0.5)
    if count < 1:
        return np.empty((0, 2))
    pitch = (size - 2 * half) / (count - 0.5)
    rows = _spread(size, half, _row_distance(pitch, half))
    line = half + pitch * np.arange(count)
    return _points(np.stack([line + pitch / 2 * (row % 2) for row in range(len(rows))]), rows)


def _narrow_rows(size: float, half: float) -> NDArray[np.float64]:
    """Hexagonal: full rows along the walls, and rows of one ball less between them."""
    line = _spread(size, half, 2 * half)
    if len(line) < 2:
        return np.empty((0, 2))
    rows = _spread(size, half, _row_distance(line[1] - line[0], half))
    between = (line[1:] + line[:-1]) / 2
    return np.concatenate([_points((between if r % 2 else line)[None], rows[r : r + 1]) for r in range(len(rows))])


def _rings(size: float, half: float) -> NDArray[np.float64]:
    """Square rings one inside the other, the outermost along the walls."""
    found = []
    for inset in np.arange(0.0, size / 2 - half, 2 * half):
        line = inset + _spread(size - 2 * inset, half, 2 * half)
        if len(line) < 2:
            break
        first, last = line[:-1], line[::-1][:-1]
        low, high = np.full_like(first, line[0]), np.full_like(first, line[-1])
        found += [np.stack(xy, axis=-1) for xy in ((first, low), (high, first), (last, high), (low, last))]
    return np.concatenate(found) if found else np.empty((0, 2))


def _spread(size: float, half: float, distance: float) -> NDArray[np.float64]:
    """As many coordinates in [half, size - half] as can be `distance` apart, at even distances."""
    gaps = int((size - 2 * half) / distance)
    if gaps < 1:
        return np.array([size / 2])
    return half + (size - 2 * half) / gaps * np.arange(gaps + 1, dtype=np.float64)


def _row_distance(pitch: float, half: float) -> float:
    """Distance of shifted rows at which balls of neighbouring rows touch; next-nearest rows must not touch either."""
    return max(math.sqrt(max(4 * half * half - pitch * pitch / 4, 0.0)), half)


def _points(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rows of x coordinates (R, C) with the row's y (R,), as points (R * C, 2)."""
    return np.stack([x, np.broadcast_to(y[:, None], x.shape)], axis=-1).reshape(-1, 2)


def _clear_of_centre(points: NDArray[np.float64], size: int, half: float) -> NDArray[np.float64]:
    return points[_distance_sq(points, np.full(2, size / 2)) >= 4 * half * half]


def _fill_holes(points: NDArray[np.float64], size: int, half: float) -> NDArray[np.float64]:
    """Add balls, in raster order of a fine grid, wherever there is still room."""
    line = half + (size - 2 * half) / (_HOLE_GRID - 1) * np.arange(_HOLE_GRID, dtype=np.float64)
    line[-1] = min(line[-1], size - half)
    holes = _clear_of_centre(_points(line[None, :].repeat(_HOLE_GRID, 0), line), size, half)
    for point in points:
        holes = holes[_distance_sq(holes, point) >= 4 * half * half]
    found = list(points)
    while len(holes) and len(found) < 2 * _COMPLETED_SITES:
        found.append(holes[0])
        holes = holes[_distance_sq(holes, holes[0]) >= 4 * half * half]
    return np.array(found).reshape(-1, 2)


def _distance_sq(points: NDArray[np.float64], point: NDArray[np.float64]) -> NDArray[np.float64]:
    dx, dy = points[:, 0] - point[0], points[:, 1] - point[1]
    return dx * dx + dy * dy
