"""Losses of both tasks: means over what exists, that is over the cells of queries whose mask is True.

Legend: B sequences, T steps, Q queries, I x J cells.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from s2rm_data.models.batch import BallPrediction, PolarPrediction, PolarTargets, Prediction, Targets


def loss_terms(prediction: Prediction, targets: Targets, mask: Tensor) -> dict[str, Tensor]:
    """Scalars by name, to be summed. mask: (B, T, Q) bool.

    bballs: binary cross-entropy of the crop. sc2 (section 'Multi-Agent World Modeling', Training): binary
    cross-entropy of the friendly markers, cross-entropy of the unit types, mean squared error of HECS.
    """
    if isinstance(prediction, BallPrediction):
        return {"crop": _masked_mean(_bce(prediction.crop, targets[0]), mask)}
    assert isinstance(prediction, PolarPrediction)
    assert isinstance(targets, PolarTargets)
    friendly, unit_type, hecs = targets
    return {
        "friendly": _masked_mean(_bce(prediction.friendly, friendly), mask),
        "unit_type": _masked_mean(_cross_entropy(prediction.unit_type, unit_type), mask),
        "hecs": _masked_mean((_full(prediction.hecs) - hecs).square(), mask),
    }


def _full(x: Tensor) -> Tensor:
    """Half precision widened; a log-sum over ten classes and thousands of cells loses too much in it."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _bce(logits: Tensor, target: Tensor) -> Tensor:
    logits = _full(logits)
    return F.binary_cross_entropy_with_logits(logits, target.to(logits.dtype), reduction="none")


def _cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """(..., 10, I, J) logits, (..., I, J) classes -> (..., I, J)."""
    nll = F.cross_entropy(_full(logits).flatten(0, -4), target.long().flatten(0, -3), reduction="none")
    return nll.view(target.shape)


def _masked_mean(values: Tensor, mask: Tensor) -> Tensor:
    """Mean of (B, T, Q, ...) where mask (B, T, Q) holds; 0 if it holds nowhere."""
    per_query = values.flatten(mask.dim()).mean(-1)
    return torch.where(mask, per_query, 0.0).sum() / mask.sum().clamp(min=1)
