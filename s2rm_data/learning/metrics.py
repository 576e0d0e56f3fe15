"""Scores from pooled counts, and losses; pure functions of tensors, on any device. Worlds build theirs of these.

Counts are pooled over sequences, steps, queries and pixels before a score is taken of them (section 'Evaluation
Criteria'). Losses are means over what exists, that is over the cells of queries whose mask is True."""

# B sequences, T steps, Q queries, I x J cells

from __future__ import annotations

from typing import NamedTuple, Self

import torch
import torch.nn.functional as F  # noqa: N812
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


def _occurrences(numbers: Tensor, below: int) -> Tensor:
    """(below,) how often each number occurs. `bincount` is quicker on a CPU, but on a GPU waits for the largest one."""
    if numbers.device.type == "cpu":
        return torch.bincount(numbers, minlength=below)
    return numbers.new_zeros(below).scatter_add(0, numbers, torch.ones_like(numbers))


class ClassCounts(NamedTuple):
    confusion: Tensor  # (classes, classes) int64: [true, predicted]

    @classmethod
    def of(cls, predicted: Tensor, true: Tensor, where: Tensor, classes: int) -> Self:
        """predicted, true: integer classes of one shape; where: bool, what counts."""
        pair = true.long() * classes + predicted.long()
        pair = torch.where(where.expand(pair.shape), pair, classes * classes)  # what does not count falls off the end
        return cls(_occurrences(pair.flatten(), classes * classes + 1)[:-1].view(classes, classes))

    @classmethod
    def zero(cls, classes: int, device: torch.device | str = "cpu") -> Self:
        return cls(torch.zeros((classes, classes), dtype=torch.int64, device=device))

    def plus(self, other: ClassCounts) -> Self:
        return type(self)(self.confusion + other.confusion)

    def macro_f1(self, *, background: bool) -> float:
        """Mean F1 of the classes that occur in the truth; class 0, `nothing`, is one of them only with `background`.
        A class that never occurs would score 0 for a perfect prediction, so it is left out of the mean."""
        confusion = self.confusion.double().cpu()
        hits, true, predicted = confusion.diagonal(), confusion.sum(1), confusion.sum(0)
        f1 = 2 * hits / (true + predicted).clamp(min=1)
        first = 0 if background else 1
        present = true[first:] > 0
        return float(f1[first:][present].mean()) if present.any() else 0.0


def full(x: Tensor) -> Tensor:
    """Half precision widened; a log-sum over ten classes and thousands of cells loses too much in it."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def binary_cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """Of each cell; the target is 0/1 of any dtype."""
    logits = full(logits)
    return F.binary_cross_entropy_with_logits(logits, target.to(logits.dtype), reduction="none")


def cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """(..., classes, I, J) logits, (..., I, J) classes -> (..., I, J)."""
    nll = F.cross_entropy(full(logits).flatten(0, -4), target.long().flatten(0, -3), reduction="none")
    return nll.view(target.shape)


def squared_error(values: Tensor, target: Tensor) -> Tensor:
    return (full(values) - target).square()


def weighted(loss: Tensor, target: Tensor, weight: float) -> Tensor:
    """The loss of each cell, times the weight where the target is not 0; a weight of 1 changes nothing."""
    return loss if weight == 1.0 else torch.where(target != 0, weight * loss, loss)


def masked_mean(values: Tensor, mask: Tensor) -> Tensor:
    """Mean of (B, T, Q, ...) where mask (B, T, Q) holds; 0 if it holds nowhere."""
    per_query = values.flatten(mask.dim()).mean(-1)
    return torch.where(mask, per_query, 0.0).sum() / mask.sum().clamp(min=1)
