"""Roll-outs of ball models, as in the paper's appendix 'Rollouts', and what a run says of one sequence.

For P prompt steps every model is shown the same crops around random positions of the true frames. From then on it is
queried at random positions, the same for all models and new at each step; what it answers, thresholded at 0.5, is all
it is shown for the next step. At each step the arena is also read off on a grid of crops that touch one another: 4 x 4
crops of 11 x 11 pixels for an arena of 48, which cover its 44 x 44 central pixels. The 2 pixels left over at each edge
are neither drawn nor scored, for truth and models alike.

The viewer shows what a run says of one sequence: whole frames one step ahead, or rolled out."""

# B sequences, T steps (T + 1 frames), V views, S side of the arena in pixels, H steps of the horizon, G side of the
# stitched picture in pixels, K = (G / 11)^2 crops of it

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
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
from s2rm_data.generators.bballs.learning import ball_learning
from s2rm_data.generators.bballs.learning.ball_batches import BallSource
from s2rm_data.generators.bballs.learning.ball_crops import CROP, REACH, BallPrediction
from s2rm_data.generators.bballs.learning.ball_learning import BallCounts, seen_pixels
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
        runs, references = ({name: asdict(one) for name, one in of.items()} for of in (self.runs, self.references))
        counts = {"prompt_steps": self.prompt_steps, "sequences": self.sequences}
        return {**counts, "runs": runs, "references": references}


def spans(frames: int) -> tuple[int, int]:
    """(prompt steps, horizon): the paper's, or as much in the same proportion as shorter sequences allow."""
    if frames >= PROMPT_STEPS + HORIZON:
        return PROMPT_STEPS, HORIZON
    prompt = max(1, frames * PROMPT_STEPS // (PROMPT_STEPS + HORIZON))
    return prompt, max(1, frames - prompt)


def grid_positions(size: float) -> tuple[Tensor, slice]:
    """((K, 2) centres (x, y) of the crops, row by row; the pixels that they cover along each axis)."""
    count = int(size) // CROP
    first = (int(size) - count * CROP) // 2
    line = first + REACH + CROP * torch.arange(count)
    rows, columns = torch.meshgrid(line, line, indexing="ij")
    return torch.stack([columns.flatten(), rows.flatten()], -1).float(), slice(first, first + count * CROP)


def stitch(crops: Tensor) -> Tensor:
    """(B, K, 11, 11), row by row -> (B, G, G)."""
    batch, total = crops.shape[:2]
    count = round(total**0.5)
    return crops.view(batch, count, count, CROP, CROP).transpose(2, 3).reshape(batch, count * CROP, count * CROP)


def roll_out(model: WorldModel, views: Tensor, position: Tensor, prompt: int, horizon: int, size: int) -> Tensor:
    """(B, H, G, G) bool: what the model says of the frames prompt, ..., prompt + horizon - 1. views (B, prompt, V, 1,
    11, 11) of the true frames; position (B, prompt + horizon, V, 2): where it is shown them and later asked."""
    batch, seen = views.shape[0], views.shape[2]
    grid = grid_positions(size)[0].to(views.device).expand(batch, -1, -1)
    everything = torch.ones((batch, prompt, seen), dtype=torch.bool, device=views.device)
    _, state = model.unroll(model.encode(views, position[:, :prompt], everything), model.initial_state(batch))
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


def _horizon(counts: Sequence[BallCounts]) -> Horizon:
    """Of the counts at each step."""
    area = [float((c.all[0] + c.all[1]) / (c.all[0] + c.all[2]).clamp(min=1)) for c in counts]
    scores = {name: [c.scores()[name] for c in counts] for name in ("f1", "f1_moving", "balanced_accuracy")}
    return Horizon(**scores, area=area)


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
    In plain worlds the exact simulator from states with noise is among the references."""
    prompt, horizon = spans(group["frames"].shape[1])
    noisy = can_filter(config_of(group.settings))
    references = [*REFERENCES, *(NOISY if noisy else ()), *(("filter",) if ceiling else ())]
    names = (*references, *(run.name for run in runs))
    counts = {name: [BallCounts.zero(device) for _ in range(horizon)] for name in names}
    truths, pictures, count = list[Tensor](), {run.name: list[Tensor]() for run in runs}, 0
    with torch.inference_mode():
        for piece in pieces(group, limit=limit, device=device):
            source, inside = _source_of(piece), grid_positions(piece.source.arena_size[0])[1]
            drawings = _references(piece, prompt, horizon)
            drawings |= noisy_roll_outs(group, piece, prompt, horizon) if noisy else {}
            if ceiling:
                rolled = np.stack([f.rolled for f in ceiling[count : count + len(piece.requests)]])
                drawings["filter"] = torch.from_numpy(rolled > 127)
            drawn = {name: drawing[..., inside, inside].to(device) for name, drawing in drawings.items()}
            position = torch.from_numpy(piece.request.view).float().to(device)
            for run in runs:
                views, places = piece.batch.views[:, :prompt], position[:, : prompt + horizon]
                drawn[run.name] = roll_out(run.model, views, places, prompt, horizon, source.size)
                pictures[run.name].append(drawn[run.name][: max(0, shown - count)].cpu())
                progress.advance(len(piece.requests))
            frames, fixed = source.whole_frames(piece.request).bool(), source.fixed_ball[inside, inside]
            true = frames[:, prompt : prompt + horizon, inside, inside]
            for name, made in drawn.items():
                each = zip(made.unbind(1), true.unbind(1), strict=True)
                now = [BallCounts.of(predicted, there, fixed.expand(there.shape)) for predicted, there in each]
                counts[name] = [before.plus(added) for before, added in zip(counts[name], now, strict=True)]
            truths.append(true[: max(0, shown - count)].cpu())
            count += len(piece.requests)
    drawn_first = {name: torch.cat(parts) for name, parts in pictures.items()}
    of_runs, of_references = ({n: _horizon(counts[n]) for n in names} for names in (pictures, references))
    told: dict[str, Any] = {"prompt_steps": prompt, "sequences": count, "truth": torch.cat(truths)}
    return RollOuts(**told, pictures=drawn_first, runs=of_runs, references=of_references)


def _source_of(piece: Piece) -> BallSource:
    assert isinstance(piece.source, BallSource)
    return piece.source


def _references(piece: Piece, prompt: int, horizon: int) -> dict[str, Tensor]:
    """(B, H, S, S) each; nothing in them changes once the prompt is over."""
    source, batch = _source_of(piece), piece.batch
    frames = source.whole_frames(piece.request)[:, :prompt]
    seen = seen_pixels(batch.view_position[:, :prompt], batch.view_mask[:, :prompt], source.size, REACH)
    held = {
        "always_off": torch.zeros_like(frames[:, -1]).bool(),
        "centre_only": source.fixed_ball.expand(frames[:, -1].shape),
        "last_seen": ball_learning.last_seen_canvas(frames, seen)[:, -1],
        "copy_previous": frames[:, -1].bool(),
    }
    return {name: picture[:, None].expand(-1, horizon, -1, -1) for name, picture in held.items()}


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
    """Rolled out with the first of the views, as many as are left, then with as many of the model's own answers."""
    size, kept = _source_of(piece).size, piece.dropped_request(dropped).view_mask[0]
    if not start:
        made = ball_learning.predicted_frames(run.model, piece.dropped(dropped), size).float().numpy()
        return BallForesight(first=1, rolled_out=False, frames=made, kept=kept)
    views, inside = int(kept[0].sum()), grid_positions(size)[1]
    position = torch.from_numpy(piece.request.view).float().to(piece.batch.views.device)[:, :, :views]
    horizon = position.shape[1] - start
    frames = np.full((horizon, size, size), 2, np.float32)
    rolled = roll_out(run.model, piece.batch.views[:, :start, :views], position, start, horizon, size)
    frames[:, inside, inside] = rolled[0].cpu().numpy()
    return BallForesight(first=start, rolled_out=True, frames=frames, kept=kept)


def shown(piece: Piece, result: BallForesight, *, start: int) -> Addition:
    source, batch, first, frames = _source_of(piece), piece.batch, result.first, result.frames
    true = source.whole_frames(piece.request)[0]
    kept = torch.from_numpy(result.kept[None, : batch.view_mask.shape[1]]).to(batch.view_mask.device)
    seen = seen_pixels(batch.view_position, kept, source.size, REACH)[0].cpu().numpy()
    seen = seen[:start] if start else seen
    what = np.where(seen, true[: len(seen)].cpu().numpy(), 2)
    levels = np.rint(255 * np.clip(frames, 0, 1)).astype(np.uint8)
    predicted = Picture(title="predicted, probability", values=levels, divisor=255, palette=_PROBABILITY, first=first)
    if start:
        predicted = Picture(title="rolled out", values=frames.astype(np.uint8), palette=_DRAWN, first=first)
    given = Picture(title="shown to the model at this frame", values=what, palette=_SEEN)
    pictures = (given, Picture(title="true frame", values=true.cpu().numpy(), palette=PIXELS), predicted)
    title = f"rolled out from frame {start}" if start else "one step ahead: each frame from the views before it"
    centre, title_of_views = piece.request.view[0] + 0.5, "views that the model gets"
    views: dict[str, Any] = {"side": CROP, "colours": view_colours(centre.shape[1]), "shown": False}
    return Addition(
        layers=(Boxes(title=title_of_views, centre=centre, there=result.kept, **views),),
        panels=(Pictures(title=title, pictures=pictures), _scores(source, true, result)),
        note="" if not start else f"From frame {start} on the model is shown nothing but its own answers.",
    )


def _scores(source: BallSource, true: Tensor, result: BallForesight) -> Curves:
    """F1 of every frame, beside a copy of the frame before (one step ahead) or of the last one shown."""
    frames, first, fixed = torch.from_numpy(result.frames).to(true.device), result.first, source.fixed_ball
    copied = true[first - 1].expand(frames.shape) if result.rolled_out else true[: len(frames)]

    def f1(guess: Tensor) -> NDArray[np.float64]:
        each = enumerate(zip(guess > 0.5, frames < 2, strict=True), first)
        counts = [BallCounts.of(one[where], true[step][where], fixed[where]) for step, (one, where) in each]
        return np.array([own.scores()["f1_moving"] for own in counts])

    curves = (
        Curve(title="model", values=f1(frames), colour="#d55e00", first=first),
        Curve(title="copy of the last frame", values=f1(copied.float()), colour="#888888", first=first),
    )
    return Curves(title="F1 without the fixed ball", curves=curves, low=0.0, high=1.0)
