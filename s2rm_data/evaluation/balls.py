"""Bouncing balls: balanced accuracy and F1 of one-step predictions, per ball count and fraction of dropped views.

Counts are pooled over sequences, steps, queries and the 121 pixels of a crop, at a threshold of 0.5. Pixels of a crop
that lie outside the arena count, too (they are off). `moving` leaves out the pixels of the fixed ball, which is always
there: without that, F1 rewards remembering a constant.
"""

# B sequences, T steps, Q queries, S side of the arena in pixels

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

import torch
from torch import Tensor

from s2rm_data.evaluation.runs import Run
from s2rm_data.evaluation.streaming import Encoded, Piece, pieces
from s2rm_data.loading import BallSource
from s2rm_data.loading.crops import REACH, cut_pixels
from s2rm_data.metrics import BinaryCounts, last_seen_canvas, seen_pixels
from s2rm_data.models import BallPrediction, BallTargets, Batch
from s2rm_data.progress import Progress
from s2rm_data.store import Group

REFERENCES = {
    "always_off": "always off",
    "centre_only": "centre ball only",
    "last_seen": "last seen canvas",
    "copy_previous": "copy of the whole previous frame",
}
METRICS = ("f1", "balanced_accuracy", "f1_moving", "balanced_accuracy_moving")
Scores = dict[str, float]


class BallCounts(NamedTuple):
    all: BinaryCounts
    moving: BinaryCounts

    @classmethod
    def of(cls, predicted: Tensor, true: Tensor, moving: Tensor) -> Self:
        """predicted, true, moving: 0/1 or bool, of one shape."""
        return cls(BinaryCounts.of(predicted, true), BinaryCounts.of(predicted, true, moving))

    def plus(self, other: BallCounts) -> Self:
        return type(self)(self.all.plus(other.all), self.moving.plus(other.moving))

    def scores(self) -> Scores:
        values = (self.all.f1, self.all.balanced_accuracy, self.moving.f1, self.moving.balanced_accuracy)
        return dict(zip(METRICS, values, strict=True))


class BallTally:
    """Counts of runs and references by fraction of dropped views: {fraction: {name: counts}}."""

    def __init__(self) -> None:
        self.counts: dict[float, dict[str, BallCounts]] = {}

    def add(self, fraction: float, name: str, counts: BallCounts) -> None:
        there = self.counts.setdefault(fraction, {})
        there[name] = there[name].plus(counts) if name in there else counts

    def scores(self, fraction: float, names: Sequence[str]) -> dict[str, Scores]:
        return {name: self.counts[fraction][name].scores() for name in names}


def one_step(
    group: Group,
    runs: Sequence[Run],
    fractions: Sequence[float],
    *,
    limit: int | None,
    device: torch.device,
    progress: Progress,
) -> dict[float, dict[str, dict[str, Scores]]]:
    """{fraction: {"runs": {name: scores}, "references": ...}}; `progress` advances by sequences, runs and fractions."""
    tally = BallTally()
    with torch.inference_mode():
        for piece in pieces(group, limit=limit, device=device):
            _count_references(piece, fractions, tally)
            for run in runs:
                _count_run(piece, run, fractions, tally, progress)
    return {
        fraction: {
            "runs": tally.scores(fraction, [run.name for run in runs]),
            "references": tally.scores(fraction, list(REFERENCES)),
        }
        for fraction in fractions
    }


def _count_run(piece: Piece, run: Run, fractions: Sequence[float], tally: BallTally, progress: Progress) -> None:
    encoded = Encoded(run.model, piece.batch)
    true, moving = _truth(piece)
    for fraction in fractions:
        prediction = encoded.predict(piece.dropped(fraction))
        assert isinstance(prediction, BallPrediction)
        tally.add(fraction, run.name, BallCounts.of(prediction.crop.squeeze(-3) > 0, true, moving))
        progress.advance(len(piece.requests))


def _truth(piece: Piece) -> tuple[Tensor, Tensor]:
    """Target crops (B, T, Q, 11, 11) as bool, and where they are not of the fixed ball."""
    assert isinstance(piece.source, BallSource)
    assert isinstance(piece.batch.targets, BallTargets)
    return piece.batch.targets.crop.squeeze(-3).bool(), ~crops_of_one(piece.source.fixed_ball(), piece.batch)


def crops_of_one(picture: Tensor, batch: Batch) -> Tensor:
    """One picture (S, S) at the batch's queries: (B, T, Q, 11, 11)."""
    position = batch.query_position
    return cut_pixels(picture.expand(*position.shape[:2], -1, -1), position)


def _count_references(piece: Piece, fractions: Sequence[float], tally: BallTally) -> None:
    source = piece.source
    assert isinstance(source, BallSource)
    true, moving = _truth(piece)
    frames = source.whole_frames(piece.request)[:, :-1].bool()
    fixed = crops_of_one(source.fixed_ball(), piece.batch)
    same = {  # whatever the views
        "always_off": BallCounts.of(torch.zeros_like(true), true, moving),
        "centre_only": BallCounts.of(fixed, true, moving),
        "copy_previous": BallCounts.of(cut_pixels(frames, piece.batch.query_position), true, moving),
    }
    for fraction in fractions:
        batch = piece.dropped(fraction)
        seen = seen_pixels(batch.view_position, batch.view_mask, source.size, REACH)
        canvas = cut_pixels(last_seen_canvas(frames, seen), batch.query_position)
        for name, counts in (*same.items(), ("last_seen", BallCounts.of(canvas, true, moving))):
            tally.add(fraction, name, counts)
