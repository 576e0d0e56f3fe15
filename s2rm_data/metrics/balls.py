"""Scores of predicted crops of bouncing balls, with the fixed ball and without it.

The fixed ball is always there, and drawing it alone gives an F1 of about 0.4 with three balls: `moving` leaves out its
pixels, and nothing else. Pixels of a crop outside the arena count in both; they are off.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import torch
from torch import Tensor

from s2rm_data.metrics.binary import BinaryCounts

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
