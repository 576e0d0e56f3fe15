"""Drawing sequences: the frame with the crops an observer sees outlined on it, and the crops themselves beside it.

What no crop shows is dimmed, so that one sees how little of the world an observer has. Pillow is imported when used.
"""

# T frames, V views, S side of the arena in pixels

from __future__ import annotations

import colorsys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from s2rm_data import painting

CROP = 11  # side of a crop in pixels (paper, section Video Prediction from Crops)
VIEWS = 10  # crops per frame (same place)
_LEGEND = "bright: seen by a crop; dim: seen by none"
_BALL, _GROUND, _HIDDEN = 255, 40, 0.35  # grey levels, and the brightness of what no crop shows


def sample_positions(rng: np.random.Generator, frames: int, size: int, views: int = VIEWS) -> NDArray[np.int64]:
    """(T, V, 2) central pixels (x, y) of the crops, uniform over the arena."""
    return rng.integers(0, size, (frames, views, 2))


def crop(frame: NDArray[np.uint8], centre: NDArray[np.int64]) -> NDArray[np.uint8]:
    """(11, 11) pixels around the central pixel (x, y); zero outside the arena."""
    padded = np.pad(frame, [(CROP // 2, CROP // 2)] * 2 + [(0, 0)] * (frame.ndim - 2))
    x, y = int(centre[0]), int(centre[1])
    return padded[y : y + CROP, x : x + CROP]


def frames(
    sequence: NDArray[np.uint8], positions: NDArray[np.int64], *, title: str = "", scale: int = 8
) -> Iterator[Any]:
    """One Pillow image per frame. `sequence` (T, S, S), or (T, S, S, 3) in colour; `positions` (T, V, 2)."""
    for number, (frame, centres) in enumerate(zip(sequence, positions, strict=True)):
        picture = _beside(_arena(frame, centres, scale), frame, centres, scale)
        yield painting.captioned(picture, f"{title} frame {number}   {_LEGEND}; right: the crops")


def contact_sheet(
    sequences: Sequence[NDArray[np.uint8]],
    positions: Sequence[NDArray[np.int64]],
    labels: Sequence[str],
    *,
    columns: int = 8,
    scale: int = 3,
) -> Any:
    """One row per sequence, `columns` of its frames evenly spread over time."""
    times = np.unique(np.linspace(0, len(sequences[0]) - 1, columns).astype(int))
    rows = [
        [_arena(sequence[time], centres[time], scale) for time in times]
        for sequence, centres in zip(sequences, positions, strict=True)
    ]
    heads = [f"frame {time}" for time in times]
    return painting.contact_sheet(rows, labels, heads, f"{_LEGEND}; coloured squares: the crops of that frame")


def levels(frame: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """A frame (S, S) or (S, S, 3) as levels to show, the ground not quite black. A grey level is 0 or at least 4."""
    if frame.ndim == 2 and frame.max(initial=0) <= 1:
        return np.where(frame > 0, _BALL, _GROUND).astype(np.uint8)
    return np.asarray(_GROUND + frame.astype(np.uint16) * (_BALL - _GROUND) // 255, np.uint8)


def _colours(count: int) -> list[tuple[int, int, int]]:
    hues = (colorsys.hsv_to_rgb(index / count, 0.75, 1.0) for index in range(count))
    return [(int(255 * r), int(255 * g), int(255 * b)) for r, g, b in hues]


def _arena(frame: NDArray[np.uint8], centres: NDArray[np.int64], scale: int) -> Any:
    from PIL import ImageDraw

    size, reach = len(frame), CROP // 2
    seen = np.zeros((size, size), dtype=bool)
    for x, y in centres:
        seen[max(0, y - reach) : y + reach + 1, max(0, x - reach) : x + reach + 1] = True
    light = np.where(seen, 1.0, _HIDDEN)
    shown = levels(frame) * (light if frame.ndim == 2 else light[..., None])
    picture = painting.grey_image(shown.astype(np.uint8), scale).convert("RGB")
    pen = ImageDraw.Draw(picture)
    for (x, y), colour in zip(centres, _colours(len(centres)), strict=True):
        box = ((x - reach) * scale, (y - reach) * scale, (x + reach + 1) * scale - 1, (y + reach + 1) * scale - 1)
        pen.rectangle([float(edge) for edge in box], outline=colour, width=max(1, scale // 4))
    return picture


def _beside(arena: Any, frame: NDArray[np.uint8], centres: NDArray[np.int64], scale: int) -> Any:
    """The arena with a block of the crops at its right, each framed in its colour."""
    from PIL import Image, ImageDraw

    rows = 5
    columns = -(-len(centres) // rows)
    zoom = max(1, (arena.height // rows - 6) // CROP)
    pitch = arena.height // rows
    canvas = Image.new("RGB", (arena.width + 8 + columns * pitch, arena.height), painting.PAPER)
    canvas.paste(arena, (0, 0))
    pen = ImageDraw.Draw(canvas)
    for index, (centre, colour) in enumerate(zip(centres, _colours(len(centres)), strict=True)):
        tile = painting.grey_image(levels(crop(frame, centre)), zoom).convert("RGB")
        x, y = arena.width + 8 + index // rows * pitch + 3, index % rows * pitch + 3
        canvas.paste(tile, (x, y))
        pen.rectangle([x - 2, y - 2, x + tile.width + 1, y + tile.height + 1], outline=colour, width=2)
    return canvas
