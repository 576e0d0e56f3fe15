"""Balls as images: binary, one bit a pixel, or in grey or colour with smooth rims.

Binary: a pixel is on when its centre lies in a ball, a fixed ball or an inner wall, the rim included: pixel (row i,
column j) exactly when, in float64, (j + 0.5 - x)^2 + (i + 0.5 - y)^2 <= r^2 for one of the balls. In a row that is an
interval of columns: a square root guesses its ends, the expression itself settles them, so that the outcome is that of
testing every pixel. Cost: O(r) a ball.

A ball of up to 25 px width spans at most four bytes of a row, whatever its place: they are all written, without asking
which it needs (a branch that the processor cannot foresee costs more). Past the end of a row those writes change
nothing; past the end of the last they fall on a margin.

Grey and colour: every pixel has 8 x 8 samples, and its level is the share of them that is covered, in steps of 1/64.
They are drawn as binary images of eight times the size, where one byte is a pixel's row of samples. Nothing overlaps,
so that shares add up."""

# N sequences, T frames, n balls, 2 coordinates (x, y), S size of the box, W = ceil(S / 8) bytes per row, C channels,
# D discs and G walls that stand still

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from s2rm_data.core.compiled import compiled
from s2rm_data.generators.bballs.making import ball_config
from s2rm_data.generators.bballs.making.ball_config import WALL_HALF_WIDTH_PX, AnyConfig, BallsConfig, packed_width
from s2rm_data.generators.bballs.making.ball_contacts import segment_distance_sq

MARGIN_BYTES = 4
_NARROW_PX = 25
SAMPLES = 8  # per pixel and axis: one byte
STANDING = (128, 128, 128)  # colour of fixed balls and walls; grey frames show everything in white
# Okabe and Ito's colours, which most people can tell apart; ball 7 has the colour of ball 1
PALETTE = ((213, 94, 0), (0, 114, 178), (0, 158, 115), (204, 121, 167), (230, 159, 0), (86, 180, 233))
Pixels = NDArray[np.uint8]


def render(position: NDArray[np.floating], radius: NDArray[np.float64], config: AnyConfig) -> Pixels:
    """Frames of position (N, T, n, 2) and radius (N, n): packed (N, T, S, W), grey (N, T, S, S) or (N, T, S, S, 3)."""
    if isinstance(config, BallsConfig) or config.render == "binary":
        return draw_packed(position, radius, standing_pixels(config))
    channels = ball_config.CHANNELS[config.render]
    palette, standing = (PALETTE, STANDING) if channels == 3 else (((255,),), (255,))
    colours, ground = np.array(palette, np.float64), _standing_share(config)[..., None] * np.array(standing, np.float64)
    frames = np.empty((*position.shape[:2], config.size, config.size, channels), dtype=np.uint8)
    empty = (np.minimum(ground, 255.0) + 0.5).astype(np.uint8)
    bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(1, dtype=np.int64)
    _paint_all(np.ascontiguousarray(position), radius, ground, empty, bits, colours, frames)
    return frames if channels == 3 else frames[..., 0]


def draw_packed(position: NDArray[np.floating], radius: NDArray[np.float64], background: Pixels) -> Pixels:
    """Packed frames (N, T, S, W) of position (N, T, n, 2) and radius (N, n) over a picture (S, W). Bits are in reading
    order, the most significant first; those beyond the last column are 0. Balls that stick out of the image are cut
    off."""
    shape = (*position.shape[:2], *background.shape)
    packed = np.empty(math.prod(shape) + MARGIN_BYTES, dtype=np.uint8)
    _draw_all(np.ascontiguousarray(position), radius, len(background), background.reshape(-1), packed)
    return packed[:-MARGIN_BYTES].reshape(shape)


@lru_cache(maxsize=16)
def standing_pixels(config: AnyConfig) -> Pixels:
    """Packed (S, W) image of the fixed balls and inner walls, not to be written to."""
    return draw_standing(config.discs, config.segments, config.size)


@lru_cache(maxsize=16)
def _standing_share(config: AnyConfig) -> NDArray[np.float64]:
    """(S, S) share of each pixel that fixed balls and inner walls cover, not to be written to."""
    packed = draw_standing(config.discs * SAMPLES, config.segments, config.size * SAMPLES, SAMPLES)
    samples = np.unpackbits(packed, axis=-1).reshape(config.size, SAMPLES, config.size, SAMPLES)
    return samples.sum((1, 3)) / SAMPLES**2


def draw_standing(discs: NDArray[np.float64], segments: NDArray[np.float64], side: int, scale: int = 1) -> Pixels:
    """Packed (side, W) image of discs, and of walls that are to be drawn `scale` times as large."""
    image = np.zeros(side * packed_width(side) + MARGIN_BYTES, dtype=np.uint8)
    for x, y, radius in discs.tolist():
        draw_ball(x, y, radius, side, np.empty((2, side)), image)
    packed: NDArray[np.uint8] = image[:-MARGIN_BYTES].reshape(side, -1)
    for wall in segments:
        packed |= np.packbits(_is_in_wall((np.arange(side) + 0.5) / scale, wall), axis=-1)
    return packed


@compiled(error_model="numpy")
def _is_in(index, middle, other_sq, radius_sq):  # type: ignore[no-untyped-def]
    """The test of a pixel: `index` counts along one axis, `other_sq` is the square distance along the other."""
    distance = index + 0.5 - middle
    return distance * distance + other_sq <= radius_sq


@compiled(error_model="numpy")
def _interval(middle, reach, other_sq, radius_sq, size):  # type: ignore[no-untyped-def]
    """First and last index in the image that pass the test, as floats; the first is the larger when none does. `reach`
    is half the interval's length but for rounding, which is far less than a pixel: each end is off by one at most.
    Rounding keeps order, so that the indices that pass have no gap. No branches, so that rows go side by side."""
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
def _draw_all(position, radius, size, background, packed):  # type: ignore[no-untyped-def]
    """Draw position (N, T, n, 2) over background (S * W,) into packed (N * T * S * W and a margin,)."""
    nbytes = len(background)
    ends = np.empty((2, size))
    frame = 0
    for s in range(len(position)):
        for t in range(position.shape[1]):
            image = packed[frame * nbytes : (frame + 1) * nbytes + MARGIN_BYTES]
            for byte in range(nbytes):  # compiles sooner than the assignment of a slice
                image[byte] = background[byte]
            for k in range(position.shape[2]):
                x, y = np.float64(position[s, t, k, 0]), np.float64(position[s, t, k, 1])
                draw_ball(x, y, radius[s, k], size, ends, image)
            frame += 1


@compiled(error_model="numpy")
def _paint_all(position, radius, ground, empty, bits, colours, frames):  # type: ignore[no-untyped-def]
    """Fill frames (N, T, S, S, C): balls of `colours` (K, C) on `ground` (S, S, C), which alone looks as `empty`. bits
    (256,): how many a byte has."""
    size = len(ground)
    side = size * SAMPLES
    samples = np.zeros(side * size + MARGIN_BYTES, dtype=np.uint8)
    ends = np.empty((2, side))
    levels = ground.copy()
    for s in range(len(position)):
        for t in range(position.shape[1]):
            frame = frames[s, t]
            frame[:] = empty
            for k in range(position.shape[2]):
                x, y, r = np.float64(position[s, t, k, 0]), np.float64(position[s, t, k, 1]), radius[s, k]
                draw_ball(x * SAMPLES, y * SAMPLES, r * SAMPLES, side, ends, samples)
                _blend(x, y, r, samples, bits, colours[k % len(colours)], levels)
            for k in range(position.shape[2]):
                _write(position[s, t, k, 0], position[s, t, k, 1], radius[s, k], ground, levels, frame)


@compiled(error_model="numpy")
def _write(x, y, radius, ground, levels, frame):  # type: ignore[no-untyped-def]
    """The pixels around one ball to the frame, where another ball has not written them; its levels are those of the
    ground again."""
    size = len(levels)
    for i in range(max(int(y - radius) - 1, 0), min(int(y + radius) + 2, size)):
        for j in range(max(int(x - radius) - 1, 0), min(int(x + radius) + 2, size)):
            for c in range(levels.shape[2]):
                if levels[i, j, c] != ground[i, j, c]:
                    frame[i, j, c] = int(min(levels[i, j, c], 255.0) + 0.5)
                    levels[i, j, c] = ground[i, j, c]


@compiled(error_model="numpy")
def _blend(x, y, radius, samples, bits, colour, levels):  # type: ignore[no-untyped-def]
    """Add a ball's share of each pixel to levels (S, S, C), and clear its samples."""
    size = len(levels)
    for i in range(max(int(y - radius) - 1, 0), min(int(y + radius) + 2, size)):
        for j in range(max(int(x - radius) - 1, 0), min(int(x + radius) + 2, size)):
            covered = 0
            for row in range(SAMPLES):
                place = (i * SAMPLES + row) * size + j
                covered += bits[samples[place]]
                samples[place] = 0
            for c in range(levels.shape[2]):
                levels[i, j, c] += covered * colour[c] / (SAMPLES * SAMPLES)


@compiled(error_model="numpy")
def _is_in_wall(middle, wall):  # type: ignore[no-untyped-def]
    on = np.zeros((len(middle), len(middle)), dtype=np.bool_)
    for i in range(len(middle)):
        for j in range(len(middle)):
            on[i, j] = segment_distance_sq(middle[j], middle[i], wall) <= WALL_HALF_WIDTH_PX * WALL_HALF_WIDTH_PX
    return on
