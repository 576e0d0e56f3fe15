"""StarCraft II scores: friendly-marker F1, unit-type macro F1, negative mean squared error of HECS, log likelihood.

References of predictions one step ahead: the last image that the asked agent itself supplied, and nothing at all.

A copy is sure of itself, so that the likelihood of the slightest change would be zero. Its likelihood is therefore
given at the best confidence it could have: the entropy of the truth given the copied value, counted on the very data it
is scored on. No calibration of a copy does better."""

# B episodes, T steps, N agents (views), Q queries (agents), I x J polar cells (radius x angle)

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from s2rm_data.core.compiled import compiled
from s2rm_data.learning.batch import Batch
from s2rm_data.learning.metrics import BinaryCounts, ClassCounts
from s2rm_data.starcraft.codes import ACTION_CATEGORIES

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
    action (..., I, J) integer index into ACTION_CATEGORIES. Predictions can be fed back the same way."""
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


Image = tuple[Tensor, Tensor, Tensor]  # friendly (..., I, J), unit type (..., I, J), HECS (..., 4, I, J)


class PolarCounts(NamedTuple):
    """Pooled over queries and cells. The sums are float64; `cells` is how many cells they run over."""

    friendly: BinaryCounts
    unit_type: ClassCounts
    friendly_bce: Tensor
    unit_type_ce: Tensor
    squared_error: Tensor
    cells: Tensor

    @classmethod
    def of(cls, logits: Sequence[Tensor], targets: Sequence[Tensor], mask: Tensor) -> Self:
        """logits: friendly (B, T, Q, I, J), unit type (B, T, Q, 10, I, J), HECS (B, T, Q, 4, I, J), not a logit;
        targets: the same with classes (B, T, Q, I, J) for the unit type; mask (B, T, Q)."""
        friendly, unit_type, hecs = (part.float() for part in logits)
        true_friendly, true_type, _ = targets
        where = mask[..., None, None]
        bce = F.binary_cross_entropy_with_logits(friendly, true_friendly.float(), reduction="none")
        nll = -unit_type.log_softmax(-3).gather(-3, true_type.long().unsqueeze(-3)).squeeze(-3)
        likeliest = unit_type.max(-3).indices  # argmax over this dimension is five times slower on a CPU
        sure = cls.of_images((friendly > 0, likeliest, hecs), targets, mask)
        sums = [torch.where(where, values, 0.0).sum(dtype=torch.float64) for values in (bce, nll)]
        return sure._replace(friendly_bce=sums[0], unit_type_ce=sums[1])

    @classmethod
    def of_images(cls, image: Image, targets: Sequence[Tensor], mask: Tensor) -> Self:
        """The same of an image without chances: classes (B, T, Q, I, J), not logits, and no likelihood."""
        friendly, unit_type, hecs = image
        true_friendly, true_type, true_hecs = targets
        where = mask[..., None, None]
        square = (hecs - true_hecs.float()).square().mean(-3)
        none = torch.zeros((), dtype=torch.float64, device=square.device)
        return cls(
            friendly=BinaryCounts.of(friendly, true_friendly, where),
            unit_type=ClassCounts.of(unit_type, true_type, where, UNIT_CLASSES),
            friendly_bce=none,
            unit_type_ce=none,
            squared_error=torch.where(where, square, 0.0).sum(dtype=torch.float64),
            cells=where.expand(square.shape).sum(),
        )

    @classmethod
    def zero(cls, device: torch.device | str = "cpu") -> Self:
        bce, ce, square = torch.zeros(3, dtype=torch.float64, device=device)
        cells = torch.zeros((), dtype=torch.int64, device=device)
        return cls(BinaryCounts.zero(device), ClassCounts.zero(UNIT_CLASSES, device), bce, ce, square, cells)

    def plus(self, other: PolarCounts) -> Self:
        return type(self)(
            self.friendly.plus(other.friendly),
            self.unit_type.plus(other.unit_type),
            *(a + b for a, b in zip(self[2:], other[2:], strict=True)),
        )

    def scores(self) -> dict[str, float]:
        """Names as in the paper's table: FM-F1, UT-F1, NMSE (the negative error, not a normalised one), LL."""
        cells = max(int(self.cells), 1)
        bce, ce, square = (float(value) / cells for value in (self.friendly_bce, self.unit_type_ce, self.squared_error))
        return {
            "fm_f1": self.friendly.f1,
            "fm_balanced_accuracy": self.friendly.balanced_accuracy,
            "ut_f1": self.unit_type.macro_f1(background=True),
            "ut_f1_units": self.unit_type.macro_f1(background=False),
            "nmse": -square,
            "ll": -(bce + ce + square),
        }


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
