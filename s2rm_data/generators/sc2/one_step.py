"""References of predictions one step ahead: the last image that the asked agent itself supplied, and nothing at all.

A copy is sure of itself, so that the likelihood of the slightest change would be zero. Its likelihood is therefore
given at the best confidence it could have: the entropy of the truth given the copied value, counted on the very data it
is scored on. No calibration of a copy does better.
"""

# B episodes, T steps, N agents (views and queries), I x J polar cells

from __future__ import annotations

import torch
from torch import Tensor

from s2rm_data.batch import Batch
from s2rm_data.generators.sc2.images import HECS, UNIT_CHANNELS, UNIT_CLASSES, PolarTargets
from s2rm_data.generators.sc2.scores import PolarCounts
from s2rm_data.metrics import BinaryCounts, ClassCounts

Image = tuple[Tensor, Tensor, Tensor]  # friendly (..., I, J), unit type (..., I, J), HECS (..., 4, I, J)


def reference_images(batch: Batch) -> dict[str, Image]:
    """What each reference says of frame t + 1, (B, T, N, ...); agents are views and queries in the same order."""
    copied = _last_supplied(batch)
    return {"copy_previous": copied, "always_off": (*(torch.zeros_like(part) for part in copied),)}  # type: ignore[dict-item]


def _last_supplied(batch: Batch) -> Image:
    """Each agent's latest image up to t that was not dropped; nothing where there has been none."""
    mask = batch.view_mask  # (B, T, N)
    step = torch.arange(mask.shape[1], device=mask.device)[:, None].expand_as(mask)
    latest = torch.where(mask, step, -1).cummax(1).values
    known = (latest >= 0)[..., None, None]
    index = latest.clamp(min=0)[..., None, None]

    def held(values: Tensor) -> Tensor:
        return torch.where(known, values.gather(1, index.expand_as(values)), 0)

    views = batch.views
    types = torch.arange(1, UNIT_CLASSES, device=views.device, dtype=views.dtype)
    unit_type = torch.einsum("...cij,c->...ij", views[..., 1 : 1 + UNIT_CHANNELS, :, :], types).to(torch.uint8)
    hecs = [held(views[..., 1 + UNIT_CHANNELS + channel, :, :]) for channel in range(HECS)]
    return held(views[..., 0, :, :]), held(unit_type), torch.stack(hecs, -3)


def image_counts(image: Image, batch: Batch) -> PolarCounts:
    friendly, unit_type, hecs = image
    targets = batch.targets
    assert isinstance(targets, PolarTargets)
    where = batch.query_mask[..., None, None]
    square = (hecs - targets.hecs.float()).square().mean(-3)
    none = torch.zeros((), dtype=torch.float64, device=square.device)
    return PolarCounts(
        friendly=BinaryCounts.of(friendly, targets.friendly, where),
        unit_type=ClassCounts.of(unit_type, targets.unit_type, where, UNIT_CLASSES),
        friendly_bce=none,
        unit_type_ce=none,
        squared_error=torch.where(where, square, 0.0).sum(dtype=torch.float64),
        cells=where.expand(square.shape).sum(),
    )


def reference_scores(counts: PolarCounts) -> dict[str, float]:
    """With the likelihood at the best confidence."""
    tp, fp, fn, tn = counts.friendly
    friendly = torch.stack([torch.stack([tn, fp]), torch.stack([fn, tp])])
    scores = counts.scores()
    uncertainty = conditional_entropy(friendly) + conditional_entropy(counts.unit_type.confusion)
    return {**scores, "ll": scores["nmse"] - uncertainty}


def conditional_entropy(confusion: Tensor) -> float:
    """H(true | predicted) in nats, of a table of counts [true, predicted]."""
    joint = confusion.double().cpu()
    share = joint / joint.sum(0).clamp(min=1)
    return float(-(joint * share.clamp(min=1e-300).log()).sum() / joint.sum().clamp(min=1))
