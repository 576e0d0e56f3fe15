"""Losses: means over what exists, that is over the cells of queries whose mask is True."""

# B sequences, T steps, Q queries, I x J cells

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor


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


def masked_mean(values: Tensor, mask: Tensor) -> Tensor:
    """Mean of (B, T, Q, ...) where mask (B, T, Q) holds; 0 if it holds nowhere."""
    per_query = values.flatten(mask.dim()).mean(-1)
    return torch.where(mask, per_query, 0.0).sum() / mask.sum().clamp(min=1)
