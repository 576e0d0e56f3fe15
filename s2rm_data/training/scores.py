"""Validation: loss, scores, and the scores of the references beside them, on windows that are always the same.

Legend: B sequences, T steps, Q queries, S size of the arena.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from s2rm_data.loading import BallSource, BattleSource, FixedBatches
from s2rm_data.loading.crops import REACH, crops_of_one, cut_pixels
from s2rm_data.metrics import BallCounts, BinaryCounts, ClassCounts, PolarCounts, last_seen_canvas, seen_pixels
from s2rm_data.models import WorldModel
from s2rm_data.training.processes import Processes


@dataclass(frozen=True, kw_only=True)
class Validation:
    loss: float
    scores: dict[str, float]


def _of_all(counts: BallCounts, processes: Processes) -> dict[str, float]:
    """Scores of the counts of all processes together."""
    return BallCounts(*(BinaryCounts(*processes.total(torch.stack(part))) for part in counts)).scores()


class _PolarTotal:
    def __init__(self, device: torch.device) -> None:
        self.counts: PolarCounts | None = None
        self._device = device

    def add(self, counts: PolarCounts) -> None:
        self.counts = counts if self.counts is None else self.counts.plus(counts)

    def scores(self, processes: Processes, classes: int = 10) -> dict[str, float]:
        flat = torch.zeros(4 + classes * classes + 4, dtype=torch.float64, device=self._device)
        if self.counts is not None:
            c = self.counts
            parts = [torch.stack(c.friendly), c.unit_type.confusion.flatten(), torch.stack([x.double() for x in c[2:]])]
            flat = torch.cat([part.double() for part in parts])
        flat = processes.total(flat)
        friendly, confusion, sums = flat.split([4, classes * classes, 4])
        whole = PolarCounts(
            BinaryCounts(*friendly.long()),
            ClassCounts(confusion.long().view(classes, classes)),
            *sums,
        )
        return whole.scores()


def validate(model: WorldModel, batches: FixedBatches, processes: Processes, *, autocast: Any = None) -> Validation:
    """Loss and scores of one-step-ahead predictions; every process takes its share and gets the whole result."""
    source = batches.source
    device = source.device
    balls = BallCounts.zero(device)
    polar = _PolarTotal(device)
    loss_sum = torch.zeros(2, dtype=torch.float64, device=device)
    fixed = source.fixed_ball() if isinstance(source, BallSource) else None
    with torch.no_grad():
        for batch in batches:
            with autocast() if autocast else torch.autocast(device.type, enabled=False):
                prediction = model(batch)
                loss = model.loss(prediction, batch)
            count = batch.query_mask.sum()
            loss_sum += torch.stack([loss.double() * count, count.double()])
            assert batch.targets is not None
            if fixed is not None:
                predicted, true = prediction.crop.squeeze(-3) > 0, batch.targets[0].squeeze(-3)
                balls = balls.plus(BallCounts.of(predicted, true, crops_of_one(fixed, batch.query_position)))
            else:
                polar.add(PolarCounts.of(prediction, batch.targets, batch.query_mask))
    total, count = processes.total(loss_sum).tolist()
    scores = _of_all(balls, processes) if fixed is not None else polar.scores(processes)
    return Validation(loss=total / max(count, 1), scores=scores)


def reference_scores(batches: FixedBatches, processes: Processes) -> dict[str, dict[str, float]]:
    """Scores of what needs no model, by name."""
    if isinstance(batches.source, BallSource):
        return _ball_references(batches, batches.source, processes)
    assert isinstance(batches.source, BattleSource)
    return _battle_references(batches, processes)


def _ball_references(batches: FixedBatches, source: BallSource, processes: Processes) -> dict[str, dict[str, float]]:
    fixed = source.fixed_ball()
    names = ("last_seen", "copy_previous", "centre_only", "always_off")
    counts = {name: BallCounts.zero(source.device) for name in names}
    for request in batches.requests():
        batch, frames = source.batch(request), source.whole_frames(request)
        seen = seen_pixels(batch.view_position, batch.view_mask, source.size, REACH)
        drawings = {
            "last_seen": last_seen_canvas(frames[:, :-1], seen),
            "copy_previous": frames[:, :-1].bool(),
            "centre_only": fixed.expand(*seen.shape),
            "always_off": torch.zeros_like(seen),
        }
        assert batch.targets is not None
        true = batch.targets[0].squeeze(-3)
        there = crops_of_one(fixed, batch.query_position)
        for name, drawing in drawings.items():
            drawn = cut_pixels(drawing, batch.query_position)
            counts[name] = counts[name].plus(BallCounts.of(drawn, true, there))
    return {name: _of_all(found, processes) for name, found in counts.items()}


def _battle_references(batches: FixedBatches, processes: Processes) -> dict[str, dict[str, float]]:
    """A copy of the same agent's image now, and nothing at all."""
    counts = {name: _PolarTotal(batches.source.device) for name in ("copy_previous", "always_off")}
    for batch in batches:
        copied = batch.views * batch.view_mask[..., None, None, None]
        for name, views in (("copy_previous", copied), ("always_off", torch.zeros_like(copied))):
            assert batch.targets is not None
            counts[name].add(PolarCounts.of(_as_logits(views), batch.targets, batch.query_mask))
    scores = {name: c.scores(processes) for name, c in counts.items()}
    return {name: {key: v for key, v in found.items() if key != "ll"} for name, found in scores.items()}


def _as_logits(views: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Views (B, T, Q, 24, I, J) as a prediction that is sure of itself; its likelihood means nothing."""
    friendly, types, hecs = views[..., 0, :, :], views[..., 1:10, :, :], views[..., 10:14, :, :]
    nothing = 1 - types.sum(-3, keepdim=True)
    return 20 * friendly - 10, 20 * torch.cat([nothing, types], -3), hecs
