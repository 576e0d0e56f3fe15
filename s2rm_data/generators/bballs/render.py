"""Balls as binary images, one bit a pixel: a pixel is on when its centre lies in a ball, the rim included.

Pixel (row i, column j) has its centre at (x, y) = (j + 0.5, i + 0.5). It is on exactly when, in float64,

    (j + 0.5 - x)^2 + (i + 0.5 - y)^2 <= r^2

for one of the balls or the fixed ball in the middle. In a row that is an interval of columns: a square root guesses its
ends, the expression itself settles them, so that the outcome is that of testing every pixel. Cost: O(r) a ball.

A ball of up to 25 px width spans at most four bytes of a row, whatever its place: they are all written, without asking
which it needs (a branch that the processor cannot foresee costs more). Past the end of a row those writes change
nothing; past the end of the last they fall on a margin.
"""

# N sequences, T frames, n balls, 2 coordinates (x, y), S size of the box, W = ceil(S / 8) bytes per row

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from s2rm_data.compiled import compiled
from s2rm_data.generators.bballs.config import packed_width

MARGIN_BYTES = 4
_NARROW_PX = 25


def render(position: NDArray[np.floating], *, size: int, radius_px: float) -> NDArray[np.uint8]:
    """Packed frames (N, T, S, W) of position (N, T, n, 2): bits in reading order, the most significant first.

    Bits beyond the last column are 0. Balls that stick out of the image are cut off.
    """
    shape = (*position.shape[:2], size, packed_width(size))
    background = np.zeros(shape[2] * shape[3] + MARGIN_BYTES, dtype=np.uint8)
    draw_ball(size / 2, size / 2, float(radius_px), size, np.empty((2, size)), background)
    packed = np.empty(math.prod(shape) + MARGIN_BYTES, dtype=np.uint8)
    balls = np.ascontiguousarray(position).reshape(shape[0] * shape[1], *position.shape[2:])
    _render(balls, float(radius_px), size, background[:-MARGIN_BYTES], packed)
    return packed[:-MARGIN_BYTES].reshape(shape)


def unpack(packed: NDArray[np.uint8], size: int) -> NDArray[np.uint8]:
    """Packed rows (..., W) as pixels 0 and 1, (..., S)."""
    return np.unpackbits(packed, axis=-1, count=size)


@compiled(error_model="numpy")
def _is_in(index, middle, other_sq, radius_sq):  # type: ignore[no-untyped-def]
    """The test of a pixel: `index` counts along one axis, `other_sq` is the square distance along the other."""
    distance = index + 0.5 - middle
    return distance * distance + other_sq <= radius_sq


@compiled(error_model="numpy")
def _interval(middle, reach, other_sq, radius_sq, size):  # type: ignore[no-untyped-def]
    """First and last index in the image that pass the test, as floats; the first is the larger when none does.

    `reach` is half the interval's length but for rounding, which is far less than a pixel: each end is off by one at
    most. Rounding keeps order, so that the indices that pass have no gap. No branches, so that rows go side by side.
    """
    low, high = np.ceil(middle - reach - 0.5), np.floor(middle + reach - 0.5)
    skip = 0.0 if _is_in(low, middle, other_sq, radius_sq) else 1.0
    low += -1.0 if _is_in(low - 1.0, middle, other_sq, radius_sq) else skip
    skip = 0.0 if _is_in(high, middle, other_sq, radius_sq) else -1.0
    high += 1.0 if _is_in(high + 1.0, middle, other_sq, radius_sq) else skip
    return max(low, 0.0), min(high, size - 1.0)


@compiled(error_model="numpy")
def draw_ball(x, y, radius, size, ends, image):  # type: ignore[no-untyped-def]
    """Turn on the pixels of one ball in image (S * W and a margin,); `ends` (2, S) is room to work in."""
    radius_sq = radius * radius
    width = (size + 7) >> 3
    top, bottom = _interval(y, radius, 0.0, radius_sq, size)
    rows = int(bottom - top) + 1
    for row in range(rows):
        dy = top + row + 0.5 - y
        ends[0, row], ends[1, row] = _interval(x, math.sqrt(radius_sq - dy * dy), dy * dy, radius_sq, size)
    for row in range(rows):
        left, right = int(ends[0, row]), int(ends[1, row])
        begin = (int(top) + row) * width
        if right - left >= _NARROW_PX:
            _fill_wide(left & 7, right & 7, begin + (left >> 3), begin + (right >> 3), image)
        elif left <= right:
            _fill_narrow(left & 7, right - left, begin + (left >> 3), image)


@compiled(error_model="numpy")
def _fill_narrow(skip, more, first, image):  # type: ignore[no-untyped-def]
    """Turn on 1 + `more` bits after the first `skip` bits of byte `first`; together at most 32."""
    bits = (0xFFFFFFFF >> skip) & (0xFFFFFFFF << (31 - skip - more))
    image[first] |= (bits >> 24) & 0xFF
    image[first + 1] |= (bits >> 16) & 0xFF
    image[first + 2] |= (bits >> 8) & 0xFF
    image[first + 3] |= bits & 0xFF


@compiled(error_model="numpy")
def _fill_wide(skip, end, first, last, image):  # type: ignore[no-untyped-def]
    """Turn on the bits from bit `skip` of byte `first` to bit `end` of a later byte `last`."""
    image[first] |= 0xFF >> skip
    for byte in range(first + 1, last):
        image[byte] = 0xFF
    image[last] |= (0xFF << (7 - end)) & 0xFF


@compiled(error_model="numpy")
def _render(position, radius, size, background, packed):  # type: ignore[no-untyped-def]
    """Draw position (N * T, n, 2) over background (S * W,) into packed (N * T * S * W and a margin,)."""
    nbytes = len(background)
    ends = np.empty((2, size))
    for f in range(len(position)):
        image = packed[f * nbytes : (f + 1) * nbytes + MARGIN_BYTES]
        for byte in range(nbytes):
            image[byte] = background[byte]
        for k in range(position.shape[1]):
            draw_ball(np.float64(position[f, k, 0]), np.float64(position[f, k, 1]), radius, size, ends, image)
