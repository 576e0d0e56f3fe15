"""What a run says of one sequence of balls, for the viewer: whole frames one step ahead, or rolled out."""

# T steps (T + 1 frames), V views, S side of the arena in pixels

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from s2rm_data.evaluation.runs import Run
from s2rm_data.evaluation.streaming import Piece
from s2rm_data.generators.bballs.crops import CROP, REACH
from s2rm_data.generators.bballs.learning import predicted_frames
from s2rm_data.generators.bballs.loading import BallSource
from s2rm_data.generators.bballs.rollouts import grid_positions, roll_out
from s2rm_data.generators.bballs.scene import PIXELS, view_colours
from s2rm_data.generators.bballs.scores import BallCounts, seen_pixels
from s2rm_data.scene import Addition, Boxes, Curve, Curves, Palette, Picture, Pictures

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
    """With the first `views` of the views, then with as many of its own answers; see rollouts.py."""
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
