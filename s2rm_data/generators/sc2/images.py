"""Polar images as models take and predict them.

24 channels: friendly 0, unit types 1..9 (unit type u at channel u, none set where nothing is), HECS 10..13, terrain
height 14, actions 15..23. On a CPU they are assembled by a compiled loop, elsewhere by `polar_views`, to equal values.
Channels come last in memory, the layout that convolutions on a CPU want, and first in the shape.
"""

# B episodes, T steps, Q queries (agents), I x J polar cells (radius x angle)

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from s2rm_data.compiled import compiled
from s2rm_data.generators.sc2.channels import ACTION_CATEGORIES

UNIT_CHANNELS = 9  # appendix 'Standardized State Space': nine one-hot unit-type channels
UNIT_CLASSES = 1 + UNIT_CHANNELS  # class 0: nothing there
HECS = 4  # health, energy, cooldown, shields
OBSERVATION_CHANNELS = 1 + UNIT_CHANNELS + HECS + 1  # friendly, unit type, HECS, terrain height
POLAR_CHANNELS = OBSERVATION_CHANNELS + len(ACTION_CATEGORIES)

_FIRST_HECS = 1 + UNIT_CHANNELS
_HEIGHT = _FIRST_HECS + HECS


class PolarTargets(NamedTuple):
    friendly: Tensor  # (B, T, Q, I, J) 0/1, any dtype
    unit_type: Tensor  # (B, T, Q, I, J) integer class, 0 nothing, 1..9
    hecs: Tensor  # (B, T, Q, 4, I, J) float, standardised stats


class PolarPrediction(NamedTuple):
    friendly: Tensor  # (B, T, Q, I, J) logits
    unit_type: Tensor  # (B, T, Q, 10, I, J) logits, class 0 nothing
    hecs: Tensor  # (B, T, Q, 4, I, J)


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


def polar_views(friendly: Tensor, unit_type: Tensor, hecs: Tensor, height: Tensor, action: Tensor) -> Tensor:
    """Polar images as models take them: (..., 24, I, J) float, from the compact form of the store.

    friendly (..., I, J) 0/1; unit_type (..., I, J) integer 0..9; hecs (..., 4, I, J); height (..., I, J);
    action (..., I, J) integer index into ACTION_CATEGORIES. Predictions can be fed back the same way.
    """
    types = torch.arange(1, UNIT_CLASSES, device=unit_type.device)
    actions = torch.arange(len(ACTION_CATEGORIES), device=action.device)
    return torch.cat(
        [
            friendly.to(hecs.dtype).unsqueeze(-3),
            (unit_type.unsqueeze(-3) == types[:, None, None]).to(hecs.dtype),
            hecs,
            height.to(hecs.dtype).unsqueeze(-3),
            (action.unsqueeze(-3) == actions[:, None, None]).to(hecs.dtype),
        ],
        dim=-3,
    )
