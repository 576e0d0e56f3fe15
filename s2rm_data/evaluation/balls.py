"""Bouncing balls: balanced accuracy and F1 of one-step predictions, per ball count and fraction of dropped views.

Counts are pooled over sequences, steps, queries and the 121 pixels of a crop, at a threshold of 0.5. Pixels of a crop
that lie outside the arena count, too (they are off). `moving` leaves out the pixels of the fixed ball, which is always
there: without that, F1 rewards remembering a constant.
"""

# B sequences, T steps, Q queries, S side of the arena in pixels

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from s2rm_data.evaluation.runs import Run
from s2rm_data.evaluation.streaming import Encoded, Piece, pieces
from s2rm_data.generators.bballs.crops import REACH, BallPrediction, BallTargets, crops_of_one, cut_pixels
from s2rm_data.generators.bballs.loading import BallSource
from s2rm_data.generators.bballs.scores import BallCounts, last_seen_canvas, seen_pixels
from s2rm_data.progress import Progress
from s2rm_data.store import Group

REFERENCES = {
    "always_off": "always off",
    "centre_only": "centre ball only",
    "last_seen": "last seen canvas",
    "copy_previous": "copy of the whole previous frame",
}
Scores = dict[str, float]


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
    true, fixed = _truth(piece)
    for fraction in fractions:
        prediction = encoded.predict(piece.dropped(fraction))
        assert isinstance(prediction, BallPrediction)
        tally.add(fraction, run.name, BallCounts.of(prediction.crop.squeeze(-3) > 0, true, fixed))
        progress.advance(len(piece.requests))


def _truth(piece: Piece) -> tuple[Tensor, Tensor]:
    """Target crops (B, T, Q, 11, 11) as bool, and where in them the fixed ball is."""
    assert isinstance(piece.source, BallSource)
    assert isinstance(piece.batch.targets, BallTargets)
    fixed = crops_of_one(piece.source.fixed_ball, piece.batch.query_position)
    return piece.batch.targets.crop.squeeze(-3).bool(), fixed


def _count_references(piece: Piece, fractions: Sequence[float], tally: BallTally) -> None:
    source = piece.source
    assert isinstance(source, BallSource)
    true, fixed = _truth(piece)
    frames = source.whole_frames(piece.request)[:, :-1].bool()
    same = {  # whatever the views
        "always_off": BallCounts.of(torch.zeros_like(true), true, fixed),
        "centre_only": BallCounts.of(fixed, true, fixed),
        "copy_previous": BallCounts.of(cut_pixels(frames, piece.batch.query_position), true, fixed),
    }
    for fraction in fractions:
        batch = piece.dropped(fraction)
        seen = seen_pixels(batch.view_position, batch.view_mask, source.size, REACH)
        canvas = cut_pixels(last_seen_canvas(frames, seen), batch.query_position)
        for name, counts in (*same.items(), ("last_seen", BallCounts.of(canvas, true, fixed))):
            tally.add(fraction, name, counts)
