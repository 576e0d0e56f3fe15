"""Scores of binary predictions from pooled counts: F1 and balanced accuracy (section 'Evaluation Criteria')."""

from __future__ import annotations

from typing import NamedTuple, Self

import torch
from torch import Tensor


class BinaryCounts(NamedTuple):
    """Scalars, int64, on the device where they were counted; they add up without waiting for it."""

    true_positive: Tensor
    false_positive: Tensor
    false_negative: Tensor
    true_negative: Tensor

    @classmethod
    def of(cls, predicted: Tensor, true: Tensor, where: Tensor | None = None) -> Self:
        """predicted, true: 0/1 or bool of one shape; where: what counts, broadcast against them."""
        predicted, true = predicted.bool(), true.bool()
        counted = torch.ones_like(true) if where is None else where.expand(true.shape)
        both = (predicted & true & counted).sum()
        positive, hits = (predicted & counted).sum(), (true & counted).sum()
        return cls(both, positive - both, hits - both, counted.sum() - positive - hits + both)

    @classmethod
    def zero(cls, device: torch.device | str = "cpu") -> Self:
        return cls(*torch.zeros(4, dtype=torch.int64, device=device))

    def plus(self, other: BinaryCounts) -> Self:
        return type(self)(*(a + b for a, b in zip(self, other, strict=True)))

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall; 0 where there is nothing to find and nothing was found."""
        tp, fp, fn, _ = (int(count) for count in self)
        return 2 * tp / (2 * tp + fp + fn) if tp + fp + fn else 0.0

    @property
    def balanced_accuracy(self) -> float:
        """Mean of recall and specificity, of those that are defined."""
        tp, fp, fn, tn = (int(count) for count in self)
        rates = [right / total for right, total in ((tp, tp + fn), (tn, tn + fp)) if total]
        return sum(rates) / len(rates) if rates else 0.0
