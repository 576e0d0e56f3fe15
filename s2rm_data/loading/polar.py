"""Polar images as models take them, assembled on a CPU by a compiled loop; `models.batch.polar_views` gives the same.

Channels come last in memory, the layout that convolutions on a CPU want, and first in the shape.
"""

# N images, I x J polar cells, 24 channels (models/batch.py)

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from s2rm_data.compiled import compiled
from s2rm_data.models.batch import HECS, OBSERVATION_CHANNELS, POLAR_CHANNELS, UNIT_TYPE_COUNT

_FIRST_HECS = 1 + UNIT_TYPE_COUNT
_HEIGHT = _FIRST_HECS + HECS


def assemble(categories: Tensor, hecs: Tensor, height: Tensor, height_scale: float) -> Tensor:
    """categories (B, T, N, I, J, 3) uint8, hecs (B, T, N, I, J, 4), height (B, T, N, I, J) uint8
    -> (B, T, N, 24, I, J) float32. Slices along B and T are read as they lie."""
    views = torch.empty((*height.shape, POLAR_CHANNELS), dtype=torch.float32)
    _assemble(
        categories.flatten(2, 4).numpy(),
        hecs.flatten(2, 4).numpy(),
        height.flatten(2, 4).numpy(),
        np.float32(height_scale),
        views.flatten(2, 4).numpy(),
    )
    return views.movedim(-1, -3)


@compiled(error_model="numpy")
def _assemble(categories, hecs, height, height_scale, views):  # type: ignore[no-untyped-def]
    batch, steps, cells, _ = views.shape
    for b in range(batch):
        for t in range(steps):
            for cell in range(cells):
                kind, view = categories[b, t, cell], views[b, t, cell]
                for channel in range(POLAR_CHANNELS):
                    view[channel] = 0.0
                if kind[0] == 1:
                    view[0] = 1.0
                if kind[1] > 0:
                    view[kind[1]] = 1.0
                    for channel in range(HECS):
                        view[_FIRST_HECS + channel] = hecs[b, t, cell, channel]
                view[_HEIGHT] = height[b, t, cell] * height_scale
                view[OBSERVATION_CHANNELS + kind[2]] = 1.0
