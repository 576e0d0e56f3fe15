"""Roll-outs of ball models, as in the paper's appendix 'Rollouts', and what a run says of one sequence.

For P prompt steps every model is shown the same crops around random positions of the true frames. From then on it is
queried at random positions, the same for all models and new at each step; what it answers, thresholded at 0.5, is all
it is shown for the next step. At each step the arena is also read off on a grid of crops that touch one another: 4 x 4
crops of 11 x 11 pixels for an arena of 48, which cover its 44 x 44 central pixels. The 2 pixels left over at each edge
are neither drawn nor scored, for truth and models alike.

The viewer shows what a run says of one sequence: whole frames one step ahead, or rolled out.
"""

# B sequences, T steps (T + 1 frames), V views, S side of the arena in pixels, H steps of the horizon, G side of the
# stitched picture in pixels, K = (G / 11)^2 crops of it

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from s2rm_data.core.progress import Progress
from s2rm_data.evaluation.blocks import Piece, pieces
from s2rm_data.evaluation.runs import Run
from s2rm_data.generators.bballs.evaluation.ball_ceiling import NOISY, Filtered, can_filter, noisy_roll_outs
from s2rm_data.generators.bballs.inspection.ball_scene import PIXELS, view_colours
from s2rm_data.generators.bballs.learning.ball_batches import BallSource
from s2rm_data.generators.bballs.learning.ball_crops import CROP, REACH, BallPrediction
from s2rm_data.generators.bballs.learning.ball_learning import (
    BallCounts,
    last_seen_canvas,
    predicted_frames,
    seen_pixels,
)
from s2rm_data.generators.bballs.making.ball_config import config_of
from s2rm_data.inspection.scene import Addition, Boxes, Curve, Curves, Palette, Picture, Pictures
from s2rm_data.models import WorldModel
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
    group: Group,
    runs: Sequence[Run],
    *,
    limit: int | None,
    shown: int,
    device: torch.device,
    progress: Progress,
    ceiling: Sequence[Filtered] = (),
) -> RollOuts:
    """`progress` is advanced by sequences and runs; `ceiling`: what the filter says of the sequences, if it was asked.

    In plain worlds the exact simulator from states with noise is among the references.
    """
    prompt, horizon = spans(group["frames"].shape[1])
    noisy = can_filter(config_of(group.settings))
    references = [*REFERENCES, *(NOISY if noisy else ()), *(("filter",) if ceiling else ())]
    tallies = {name: _Tally(horizon) for name in (*references, *(run.name for run in runs))}
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
            drawings = _references(piece, prompt, horizon, inside)
            told = noisy_roll_outs(group, piece, prompt, horizon) if noisy else {}
            if ceiling:
                told["filter"] = torch.from_numpy(
                    np.stack([f.rolled for f in ceiling[count : count + len(true)]]) > 127
                )
            drawings |= {name: drawn[..., inside, inside].to(device) for name, drawn in told.items()}
            for name, drawn in drawings.items():
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
        references={name: tallies[name].horizon() for name in references},
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


_PROBABILITY = Palette(colours=("#101010", "#7a2d8c", "#f0803c", "#fcfdbf"))
_DRAWN = Palette(colours=("#282828", "#ffffff", "#6b6b78"), names=("off", "on", "not drawn"))
_SEEN = Palette(colours=("#282828", "#ffffff", "#6b6b78"), names=("off", "on", "not seen"))


@dataclass(frozen=True, kw_only=True)
class BallForesight:
    """`frames` (n, S, S) of the frames `first`, first + 1, ...: probabilities, or 0, 1 and 2 (not drawn)."""

    first: int
    rolled_out: bool
    frames: NDArray[np.float32]
    kept: NDArray[np.bool_]  # (T + 1, V)


def foresee(run: Run, piece: Piece, *, start: int, dropped: float) -> BallForesight:
    source = piece.source
    assert isinstance(source, BallSource)
    kept = piece.dropped_request(dropped).view_mask[0]
    if not start:
        made = predicted_frames(run.model, piece.dropped(dropped), source.size).float().numpy()
        return BallForesight(first=1, rolled_out=False, frames=made, kept=kept)
    frames = _rolled(run, piece, source.size, start, int(kept[0].sum()))
    return BallForesight(first=start, rolled_out=True, frames=frames, kept=kept)


def _rolled(run: Run, piece: Piece, size: int, start: int, views: int) -> NDArray[np.float32]:
    """With the first `views` of the views, then with as many of its own answers."""
    position = torch.from_numpy(piece.request.view).float().to(piece.batch.views.device)[:, :, :views]
    shown = piece.batch.views[:, :start, :views]
    horizon = position.shape[1] - start
    made = roll_out(run.model, shown, position, start, horizon, size)[0].cpu().numpy()
    frames = np.full((horizon, size, size), 2, np.float32)
    first = grid_positions(size)[1]
    inside = slice(first, first + size // CROP * CROP)
    frames[:, inside, inside] = made
    return frames


def shown(piece: Piece, result: BallForesight, *, start: int) -> Addition:
    source = piece.source
    assert isinstance(source, BallSource)
    true = source.whole_frames(piece.request)[0]
    first, frames = result.first, result.frames
    batch = piece.batch
    kept = torch.from_numpy(result.kept[None, : batch.view_mask.shape[1]]).to(batch.view_mask.device)
    seen = seen_pixels(batch.view_position, kept, source.size, REACH)[0].cpu().numpy()
    seen = seen[:start] if start else seen
    what = np.where(seen, true[: len(seen)].cpu().numpy(), 2)
    predicted = (
        Picture(title="rolled out", values=frames.astype(np.uint8), palette=_DRAWN, first=first)
        if start
        else Picture(title="predicted, probability", values=_levels(frames), divisor=255, palette=_PROBABILITY, first=1)
    )
    pictures = (
        Picture(title="shown to the model at this frame", values=what, palette=_SEEN),
        Picture(title="true frame", values=true.cpu().numpy(), palette=PIXELS),
        predicted,
    )
    title = f"rolled out from frame {start}" if start else "one step ahead: each frame from the views before it"
    return Addition(
        layers=(_views(piece, result.kept),),
        panels=(Pictures(title=title, pictures=pictures), _scores(source, true, result)),
        note="" if not start else f"From frame {start} on the model is shown nothing but its own answers.",
    )


def _levels(frames: NDArray[np.float32]) -> NDArray[np.uint8]:
    return np.rint(255 * np.clip(frames, 0, 1)).astype(np.uint8)


def _views(piece: Piece, kept: NDArray[np.bool_]) -> Boxes:
    centre = piece.request.view[0] + 0.5
    title = "views that the model gets"
    return Boxes(title=title, centre=centre, side=CROP, colours=view_colours(centre.shape[1]), there=kept, shown=False)


def _scores(source: BallSource, true: Tensor, result: BallForesight) -> Curves:
    """F1 of every frame, beside a copy of the frame before (one step ahead) or of the last one shown."""
    frames, first = torch.from_numpy(result.frames).to(true.device), result.first
    drawn = frames < 2
    copied = true[first - 1].expand(frames.shape) if result.rolled_out else true[: len(frames)]
    fixed = source.fixed_ball

    def f1(guess: Tensor) -> NDArray[np.float64]:
        found = []
        for step, (one, where) in enumerate(zip(guess, drawn, strict=True)):
            counts = BallCounts.of(one[where] > 0.5, true[first + step][where], fixed[where])
            found.append(counts.scores()["f1_moving"])
        return np.array(found)

    curves = (
        Curve(title="model", values=f1(frames), colour="#d55e00", first=first),
        Curve(title="copy of the last frame", values=f1(copied.float()), colour="#888888", first=first),
    )
    return Curves(title="F1 without the fixed ball", curves=curves, low=0.0, high=1.0)
