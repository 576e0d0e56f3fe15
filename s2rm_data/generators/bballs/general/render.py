"""Drawing general worlds: binary frames as `bballs.render` draws them, or grey and colour frames with smooth rims.

Binary: a pixel is on when its centre lies in a ball, a fixed ball or an inner wall. Grey and colour: every pixel has
8 x 8 samples, and its level is the share of them that is covered, in steps of 1/64. They are drawn as binary images of
eight times the size, where one byte is a pixel's row of samples. Nothing overlaps, so that shares add up.
"""

# N sequences, T frames, n balls, S size of the box, W bytes per row, C channels, D discs and G walls that stand still

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from s2rm_data.compiled import compiled
from s2rm_data.generators.bballs.config import packed_width
from s2rm_data.generators.bballs.general.config import CHANNELS, WALL_HALF_WIDTH_PX, GeneralConfig
from s2rm_data.generators.bballs.general.start import segment_distance_sq
from s2rm_data.generators.bballs.render import MARGIN_BYTES, draw_ball

SAMPLES = 8  # per pixel and axis: one byte
STANDING = (128, 128, 128)  # colour of fixed balls and walls; grey frames show everything in white
# Okabe and Ito's colours, which most people can tell apart; ball 7 has the colour of ball 1
PALETTE = ((213, 94, 0), (0, 114, 178), (0, 158, 115), (204, 121, 167), (230, 159, 0), (86, 180, 233))


def render_general(
    position: NDArray[np.floating], radius: NDArray[np.float64], config: GeneralConfig
) -> NDArray[np.uint8]:
    """Frames of position (N, T, n, 2) and radius (N, n): packed (N, T, S, W), grey (N, T, S, S) or (N, T, S, S, 3)."""
    position = np.ascontiguousarray(position)
    if config.render == "binary":
        return _render_binary(position, radius, config)
    channels = CHANNELS[config.render]
    white = np.full((1, 3), 255)
    colours = np.array(PALETTE if channels == 3 else white)[:, :channels].astype(np.float64)
    still = np.array(STANDING if channels == 3 else (255,), dtype=np.float64)
    ground = standing_share(config)[..., None] * still
    frames = np.empty((*position.shape[:2], config.size, config.size, channels), dtype=np.uint8)
    _paint_all(position, radius, ground, colours, config.size, frames)
    return frames if channels == 3 else frames[..., 0]


def standing_pixels(config: GeneralConfig, scale: int = 1) -> NDArray[np.uint8]:
    """Packed (scale S, W) image of the fixed balls and inner walls, `scale` times as large."""
    side = config.size * scale
    image = np.zeros(side * packed_width(side) + MARGIN_BYTES, dtype=np.uint8)
    for x, y, radius in config.discs * scale:
        draw_ball(float(x), float(y), float(radius), side, np.empty((2, side)), image)
    packed: NDArray[np.uint8] = image[:-MARGIN_BYTES].reshape(side, -1)
    middle = (np.arange(side) + 0.5) / scale
    for wall in config.segments:
        packed |= np.packbits(_is_in_wall(middle, wall), axis=-1)
    return packed


def standing_share(config: GeneralConfig) -> NDArray[np.float64]:
    """(S, S) share of each pixel that fixed balls and inner walls cover."""
    samples = np.unpackbits(standing_pixels(config, SAMPLES), axis=-1)
    shape = (config.size, SAMPLES, config.size, SAMPLES)
    return samples.reshape(shape).sum((1, 3)) / SAMPLES**2


@compiled(error_model="numpy")
def _is_in_wall(middle, wall):  # type: ignore[no-untyped-def]
    on = np.zeros((len(middle), len(middle)), dtype=np.bool_)
    for i in range(len(middle)):
        for j in range(len(middle)):
            on[i, j] = segment_distance_sq(middle[j], middle[i], wall) <= WALL_HALF_WIDTH_PX * WALL_HALF_WIDTH_PX
    return on


def _render_binary(
    position: NDArray[np.floating], radius: NDArray[np.float64], config: GeneralConfig
) -> NDArray[np.uint8]:
    background = standing_pixels(config).reshape(-1)
    frames, side = position.shape[:2], config.size
    packed = np.empty(frames[0] * frames[1] * len(background) + MARGIN_BYTES, dtype=np.uint8)
    _draw_all(position, radius, side, background, packed)
    return packed[:-MARGIN_BYTES].reshape(*frames, side, packed_width(side))


@compiled(error_model="numpy")
def _draw_all(position, radius, size, background, packed):  # type: ignore[no-untyped-def]
    nbytes = len(background)
    ends = np.empty((2, size))
    frame = 0
    for s in range(len(position)):
        for t in range(position.shape[1]):
            image = packed[frame * nbytes : (frame + 1) * nbytes + MARGIN_BYTES]
            image[:nbytes] = background
            for k in range(position.shape[2]):
                x, y = np.float64(position[s, t, k, 0]), np.float64(position[s, t, k, 1])
                draw_ball(x, y, radius[s, k], size, ends, image)
            frame += 1


@compiled(error_model="numpy")
def _paint_all(position, radius, ground, colours, size, frames):  # type: ignore[no-untyped-def]
    """Fill frames (N, T, S, S, C): balls of `colours` (K, C) on `ground` (S, S, C)."""
    side = size * SAMPLES
    samples = np.zeros(side * size + MARGIN_BYTES, dtype=np.uint8)
    ends = np.empty((2, side))
    bits = np.array([_bit_count(byte) for byte in range(256)])
    levels = ground.copy()
    empty = _rounded(ground)
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
def _rounded(levels):  # type: ignore[no-untyped-def]
    pixels = np.empty(levels.shape, dtype=np.uint8)
    for i in range(levels.shape[0]):
        for j in range(levels.shape[1]):
            for c in range(levels.shape[2]):
                pixels[i, j, c] = int(min(levels[i, j, c], 255.0) + 0.5)
    return pixels


@compiled(error_model="numpy")
def _write(x, y, radius, ground, levels, frame):  # type: ignore[no-untyped-def]
    """The pixels around one ball to the frame, where another ball has not written them; its levels are those of the
    ground again.
    """
    size = len(levels)
    for i in range(max(int(y - radius) - 1, 0), min(int(y + radius) + 2, size)):
        for j in range(max(int(x - radius) - 1, 0), min(int(x + radius) + 2, size)):
            for c in range(levels.shape[2]):
                if levels[i, j, c] != ground[i, j, c]:
                    frame[i, j, c] = int(min(levels[i, j, c], 255.0) + 0.5)
                    levels[i, j, c] = ground[i, j, c]


@compiled(error_model="numpy")
def _bit_count(byte):  # type: ignore[no-untyped-def]
    count = 0
    while byte:
        count += byte & 1
        byte >>= 1
    return count


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
