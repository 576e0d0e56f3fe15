"""Scores of predicted crops, with the fixed ball and without it, and pictures that anybody can draw without a model.

The fixed ball is always there, and drawing it alone gives an F1 of about 0.4 with three balls: `moving` leaves out its
pixels, and nothing else. Pixels of a crop outside the arena count in both; they are off.

What a prediction must beat to have learned motion:
- the last-seen canvas: every pixel as a view last showed it, off where none ever did;
- a copy of the whole previous frame, of which no model sees more than half;
- the fixed ball in the centre, which is always there;
- nothing: all pixels off.
"""

# B sequences, T steps, V views, S x S pixels

from __future__ import annotations

from typing import NamedTuple, Self

import torch
from torch import Tensor

from s2rm_data.metrics import BinaryCounts

BALL_SCORES = ("f1", "balanced_accuracy", "f1_moving", "balanced_accuracy_moving")


class BallCounts(NamedTuple):
    all: BinaryCounts
    moving: BinaryCounts

    @classmethod
    def of(cls, predicted: Tensor, true: Tensor, fixed: Tensor) -> Self:
        """predicted, true, fixed: 0/1 or bool, of one shape; fixed: the pixels of the fixed ball."""
        return cls(BinaryCounts.of(predicted, true), BinaryCounts.of(predicted, true, ~fixed.bool()))

    @classmethod
    def zero(cls, device: torch.device | str = "cpu") -> Self:
        return cls(BinaryCounts.zero(device), BinaryCounts.zero(device))

    def plus(self, other: BallCounts) -> Self:
        return type(self)(self.all.plus(other.all), self.moving.plus(other.moving))

    def scores(self) -> dict[str, float]:
        values = (self.all.f1, self.all.balanced_accuracy, self.moving.f1, self.moving.balanced_accuracy)
        return dict(zip(BALL_SCORES, values, strict=True))


def seen_pixels(view_position: Tensor, view_mask: Tensor, size: int, reach: int) -> Tensor:
    """(B, T, S, S) bool, [row, column]: the pixels within `reach` of a view's centre (B, T, V, 2), masked (B, T, V)."""
    line = torch.arange(size, device=view_position.device)
    near = (view_position.unsqueeze(-1) - line).abs() <= reach  # (B, T, V, 2, S)
    columns, rows = (near & view_mask[..., None, None]).float().unbind(-2)
    return torch.einsum("btvr,btvc->btrc", rows, columns) > 0


def last_seen_canvas(frames: Tensor, seen: Tensor) -> Tensor:
    """(B, T, S, S) bool: at t, all that was seen of frames 0..t. frames (B, T, S, S) 0/1; seen (B, T, S, S) bool."""
    canvas = torch.zeros_like(seen[:, 0])
    canvases = []
    for frame, fresh in zip(frames.bool().unbind(1), seen.unbind(1), strict=True):
        canvas = torch.where(fresh, frame, canvas)
        canvases.append(canvas)
    return torch.stack(canvases, 1)
