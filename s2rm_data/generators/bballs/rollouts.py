"""Roll-outs of ball models, as in the paper's appendix 'Rollouts'.

For P prompt steps every model is shown the same crops around random positions of the true frames. From then on it is
queried at random positions, the same for all models and new at each step; what it answers, thresholded at 0.5, is all
it is shown for the next step. At each step the arena is also read off on a grid of crops that touch one another: 4 x 4
crops of 11 x 11 pixels for an arena of 48, which cover its 44 x 44 central pixels. The 2 pixels left over at each edge
are neither drawn nor scored, for truth and models alike.
"""

# B sequences, V views, H steps of the horizon, G side of the stitched picture in pixels, K = (G / 11)^2 crops of it

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from s2rm_data.evaluation.runs import Run
from s2rm_data.evaluation.streaming import Piece, pieces
from s2rm_data.generators.bballs.crops import CROP, REACH, BallPrediction
from s2rm_data.generators.bballs.loading import BallSource
from s2rm_data.generators.bballs.scores import BallCounts, last_seen_canvas, seen_pixels
from s2rm_data.models import WorldModel
from s2rm_data.progress import Progress
from s2rm_data.store import Group

PROMPT_STEPS, HORIZON = 20, 25  # appendix 'Rollouts'
REFERENCES = {
    "always_off": "always off",
    "centre_only": "centre ball only",
    "last_seen": "last seen canvas, held",
    "copy_previous": "last true frame, held",
}


@dataclass(frozen=True, kw_only=True)
class Horizon:
    """Scores at each of H steps; `area` is how many pixels are on relative to the truth: 1 if balls stay balls."""

    f1: list[float]
    f1_moving: list[float]
    balanced_accuracy: list[float]
    area: list[float]


@dataclass(frozen=True, kw_only=True)
class RollOuts:
    """`pictures` are the first sequences' stitched pictures, (n, H, G, G) bool, by run; `truth` the same."""

    prompt_steps: int
    sequences: int
    truth: Tensor
    pictures: Mapping[str, Tensor]
    runs: Mapping[str, Horizon]
    references: Mapping[str, Horizon]

    @property
    def horizon(self) -> int:
        return int(self.truth.shape[1])

    def to_json(self) -> dict[str, Any]:
        return {
            "prompt_steps": self.prompt_steps,
            "sequences": self.sequences,
            "runs": {name: dataclasses.asdict(horizon) for name, horizon in self.runs.items()},
            "references": {name: dataclasses.asdict(horizon) for name, horizon in self.references.items()},
        }


def spans(frames: int) -> tuple[int, int]:
    """(prompt steps, horizon): the paper's, or as much in the same proportion as shorter sequences allow."""
    if frames >= PROMPT_STEPS + HORIZON:
        return PROMPT_STEPS, HORIZON
    prompt = max(1, frames * PROMPT_STEPS // (PROMPT_STEPS + HORIZON))
    return prompt, max(1, frames - prompt)


def grid_positions(size: int) -> tuple[Tensor, int]:
    """((K, 2) centres (x, y) of the crops, row by row; first pixel they cover)."""
    count = size // CROP
    first = (size - count * CROP) // 2
    line = first + REACH + CROP * torch.arange(count)
    rows, columns = torch.meshgrid(line, line, indexing="ij")
    return torch.stack([columns.flatten(), rows.flatten()], -1).float(), first


def stitch(crops: Tensor) -> Tensor:
    """(B, K, 11, 11), row by row -> (B, G, G)."""
    batch, total = crops.shape[:2]
    count = round(total**0.5)
    return crops.view(batch, count, count, CROP, CROP).transpose(2, 3).reshape(batch, count * CROP, count * CROP)


def roll_out(model: WorldModel, views: Tensor, position: Tensor, prompt: int, horizon: int, size: int) -> Tensor:
    """(B, H, G, G) bool: what the model says of the frames prompt, ..., prompt + horizon - 1.

    views (B, prompt, V, 1, 11, 11) of the true frames; position (B, prompt + horizon, V, 2): where it is shown them and
    later asked.
    """
    batch, seen = views.shape[0], views.shape[2]
    grid = grid_positions(size)[0].to(views.device).expand(batch, -1, -1)
    everything = torch.ones((batch, prompt, seen), dtype=torch.bool, device=views.device)
    encoded = model.encode(views, position[:, :prompt], everything)
    _, state = model.unroll(encoded, model.initial_state(batch))
    pictures = []
    for step in range(horizon):
        asked = position[:, prompt + step]
        prediction = model.decode(state, torch.cat([grid, asked], 1))
        assert isinstance(prediction, BallPrediction)
        on = prediction.crop > 0
        pictures.append(stitch(on[:, : grid.shape[1], 0]))
        fed_back = on[:, None, grid.shape[1] :].to(torch.uint8)
        (following,) = model.encode(fed_back, asked[:, None], everything[:, :1])
        state = model.step(following, state)
    return torch.stack(pictures, 1)


class _Tally:
    """Counts of one run or reference, step by step."""

    def __init__(self, horizon: int) -> None:
        self.counts: list[BallCounts | None] = [None] * horizon

    def add(self, predicted: Tensor, true: Tensor, fixed: Tensor) -> None:
        """(B, H, G, G) and (G, G)."""
        for step, before in enumerate(self.counts):
            now = BallCounts.of(predicted[:, step], true[:, step], fixed.expand(true[:, step].shape))
            self.counts[step] = now if before is None else before.plus(now)

    def horizon(self) -> Horizon:
        counts = [c for c in self.counts if c is not None]
        area = [float((c.all[0] + c.all[1]) / (c.all[0] + c.all[2]).clamp(min=1)) for c in counts]
        scores = [c.scores() for c in counts]
        return Horizon(
            f1=[s["f1"] for s in scores],
            f1_moving=[s["f1_moving"] for s in scores],
            balanced_accuracy=[s["balanced_accuracy"] for s in scores],
            area=area,
        )


def roll_outs(
    group: Group, runs: Sequence[Run], *, limit: int | None, shown: int, device: torch.device, progress: Progress
) -> RollOuts:
    """`progress` is advanced by sequences and runs."""
    prompt, horizon = spans(group["frames"].shape[1])
    tallies = {name: _Tally(horizon) for name in (*REFERENCES, *(run.name for run in runs))}
    truths: list[Tensor] = []
    pictures: dict[str, list[Tensor]] = {run.name: [] for run in runs}
    count = 0
    with torch.inference_mode():
        for piece in pieces(group, limit=limit, device=device):
            source = piece.source
            assert isinstance(source, BallSource)
            first = grid_positions(source.size)[1]
            inside = slice(first, first + source.size // CROP * CROP)
            frames = source.whole_frames(piece.request)[..., inside, inside].bool()
            true, fixed = frames[:, prompt : prompt + horizon], source.fixed_ball[inside, inside]
            for name, drawn in _references(piece, prompt, horizon, inside).items():
                tallies[name].add(drawn, true, fixed)
            position = torch.from_numpy(piece.request.view).float().to(device)
            for run in runs:
                views = piece.batch.views[:, :prompt]
                made = roll_out(run.model, views, position[:, : prompt + horizon], prompt, horizon, source.size)
                tallies[run.name].add(made, true, fixed)
                pictures[run.name].append(made[: max(0, shown - count)].cpu())
                progress.advance(len(piece.requests))
            truths.append(true[: max(0, shown - count)].cpu())
            count += len(piece.requests)
    return RollOuts(
        prompt_steps=prompt,
        sequences=count,
        truth=torch.cat(truths),
        pictures={name: torch.cat(parts) for name, parts in pictures.items()},
        runs={run.name: tallies[run.name].horizon() for run in runs},
        references={name: tallies[name].horizon() for name in REFERENCES},
    )


def _references(piece: Piece, prompt: int, horizon: int, inside: slice) -> dict[str, Tensor]:
    """(B, H, G, G) each; nothing in them changes once the prompt is over."""
    source = piece.source
    assert isinstance(source, BallSource)
    frames = source.whole_frames(piece.request)[:, :prompt]
    batch = piece.batch
    seen = seen_pixels(batch.view_position[:, :prompt], batch.view_mask[:, :prompt], source.size, REACH)
    held = {
        "always_off": torch.zeros_like(frames[:, -1]).bool(),
        "centre_only": source.fixed_ball.expand(frames[:, -1].shape),
        "last_seen": last_seen_canvas(frames, seen)[:, -1],
        "copy_previous": frames[:, -1].bool(),
    }
    return {name: p[:, None, inside, inside].expand(-1, horizon, -1, -1) for name, p in held.items()}
