"""StarCraft II: friendly-marker F1, unit-type macro F1, negative mean squared error of HECS, log likelihood.

References: a copy of the last image that the asked agent itself supplied, and nothing at all. A copy is sure of itself,
so that the likelihood of the slightest change would be zero. Its likelihood is therefore given at the best confidence
it could have: the entropy of the truth given the copied value, counted on the very data it is scored on. No
calibration of a copy does better.
"""

# B episodes, T steps, N agents (views and queries), I x J polar cells

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from s2rm_data.evaluation.runs import Run
from s2rm_data.evaluation.streaming import Encoded, Piece, pieces
from s2rm_data.metrics import BinaryCounts, ClassCounts, PolarCounts
from s2rm_data.models import Batch, PolarTargets
from s2rm_data.models.batch import HECS, UNIT_CLASSES, UNIT_TYPE_COUNT
from s2rm_data.progress import Progress
from s2rm_data.store import Group

REFERENCES = {"copy_last": "copy of the last observation", "always_off": "nothing there"}
# The paper's names; its table does not say whether UT-F1 counts the class `nothing there`: both are given.
METRICS = {
    "ut_f1": "UT-F1",
    "ut_f1_units": "UT-F1, units only",
    "fm_f1": "FM-F1",
    "nmse": "NMSE",
    "ll": "LL",
}
Scores = dict[str, float]
Add = Callable[[float, str, PolarCounts], None]
Image = tuple[Tensor, Tensor, Tensor]  # friendly (..., I, J), unit type (..., I, J), HECS (..., 4, I, J)


def one_step(
    groups: Sequence[Group],
    runs: Sequence[Run],
    fractions: Sequence[float],
    *,
    limit: int | None,
    device: torch.device,
    progress: Progress,
) -> dict[float, dict[str, dict[str, Scores]]]:
    """{fraction of agents dropped: {"runs": {name: scores}, "references": ...}}, pooled over the groups.

    `limit` is of each group; `progress` is advanced by episodes, runs and fractions.
    """
    counts: dict[tuple[float, str], PolarCounts] = {}

    def add(fraction: float, name: str, found: PolarCounts) -> None:
        key = (fraction, name)
        counts[key] = counts[key].plus(found) if key in counts else found

    with torch.inference_mode():
        for group in groups:
            for piece in pieces(group, limit=limit, device=device):
                for fraction in fractions:
                    for name, image in reference_images(piece.dropped(fraction)).items():
                        add(fraction, name, _image_counts(image, piece.batch))
                for run in runs:
                    _count_run(piece, run, fractions, add, progress)
    return {
        fraction: {
            "runs": {run.name: counts[fraction, run.name].scores() for run in runs},
            "references": {name: _reference_scores(counts[fraction, name]) for name in REFERENCES},
        }
        for fraction in fractions
    }


def _count_run(piece: Piece, run: Run, fractions: Sequence[float], add: Add, progress: Progress) -> None:
    encoded = Encoded(run.model, piece.batch)
    targets = piece.batch.targets
    assert isinstance(targets, PolarTargets)
    for fraction in fractions:
        prediction = encoded.predict(piece.dropped(fraction))
        add(fraction, run.name, PolarCounts.of(prediction, targets, piece.batch.query_mask))
        progress.advance(len(piece.requests))


def reference_images(batch: Batch) -> dict[str, Image]:
    """What each reference says of frame t + 1, (B, T, N, ...); agents are views and queries in the same order."""
    copied = _last_supplied(batch)
    return {"copy_last": copied, "always_off": (*(torch.zeros_like(part) for part in copied),)}  # type: ignore[dict-item]


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
    unit_type = torch.einsum("...cij,c->...ij", views[..., 1 : 1 + UNIT_TYPE_COUNT, :, :], types).to(torch.uint8)
    hecs = [held(views[..., 1 + UNIT_TYPE_COUNT + channel, :, :]) for channel in range(HECS)]
    return held(views[..., 0, :, :]), held(unit_type), torch.stack(hecs, -3)


def _image_counts(image: Image, batch: Batch) -> PolarCounts:
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


def _reference_scores(counts: PolarCounts) -> Scores:
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
