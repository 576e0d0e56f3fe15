"""Macro F1 of categorical predictions from a pooled confusion matrix."""

from __future__ import annotations

from typing import NamedTuple, Self

import torch
from torch import Tensor


class ClassCounts(NamedTuple):
    confusion: Tensor  # (classes, classes) int64: [true, predicted]

    @classmethod
    def of(cls, predicted: Tensor, true: Tensor, where: Tensor, classes: int) -> Self:
        """predicted, true: integer classes of one shape; where: bool, what counts."""
        pair = true.long() * classes + predicted.long()
        pair = torch.where(where.expand(pair.shape), pair, classes * classes)  # what does not count falls off the end
        counts = torch.bincount(pair.flatten(), minlength=classes * classes + 1)[:-1]
        return cls(counts.view(classes, classes))

    @classmethod
    def zero(cls, classes: int, device: torch.device | str = "cpu") -> Self:
        return cls(torch.zeros((classes, classes), dtype=torch.int64, device=device))

    def plus(self, other: ClassCounts) -> Self:
        return type(self)(self.confusion + other.confusion)

    def macro_f1(self, *, background: bool) -> float:
        """Mean F1 of the classes that occur in the truth; class 0, `nothing`, is one of them only with `background`.

        A class that never occurs would score 0 for a perfect prediction, so it is left out of the mean.
        """
        confusion = self.confusion.double().cpu()
        hits, true, predicted = confusion.diagonal(), confusion.sum(1), confusion.sum(0)
        f1 = 2 * hits / (true + predicted).clamp(min=1)
        first = 0 if background else 1
        present = true[first:] > 0
        return float(f1[first:][present].mean()) if present.any() else 0.0
