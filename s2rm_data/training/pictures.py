"""Pictures of a run: its learning curves, and predictions beside the truth.

Legend: T steps, S size of the arena, I x J polar cells.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from s2rm_data.files import replaced
from s2rm_data.loading import BallSource, FixedBatches
from s2rm_data.loading.crops import CROP, REACH
from s2rm_data.metrics import seen_pixels
from s2rm_data.models import Batch, WorldModel

MAIN_SCORE = {"bballs": "f1", "sc2": "fm_f1"}
SCORE_TITLES = {"f1": "F1", "fm_f1": "friendly-marker F1"}
SHOWN_STEPS = 8


def draw_curves(records: list[dict[str, Any]], references: dict[str, dict[str, float]], path: Path) -> None:
    """Losses on the left, the main score and its references on the right."""
    from matplotlib.figure import Figure

    steps = [r for r in records if r["kind"] == "step"]
    validations = [r for r in records if r["kind"] == "validation"]
    if not validations:
        return
    score = next(name for name in MAIN_SCORE.values() if name in validations[0])
    figure = Figure(figsize=(10, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    stride = max(len(steps) // 1000, 1)
    left.plot([r["step"] for r in steps[::stride]], [r["loss"] for r in steps[::stride]], lw=0.6, label="training")
    left.plot([r["step"] for r in validations], [r["loss"] for r in validations], marker=".", label="validation")
    left.set(xlabel="step", ylabel="loss", yscale="log")
    left.legend()
    right.plot([r["step"] for r in validations], [r[score] for r in validations], marker=".", label="model")
    for style, (name, scores) in zip(("--", ":", "-.", (0, (1, 4))), references.items(), strict=False):
        right.axhline(scores[score], color="0.4", ls=style, lw=1, label=name.replace("_", " "))
    right.set(xlabel="step", ylabel=f"{SCORE_TITLES[score]}, validation", ylim=(0, 1))
    right.legend(fontsize="small")
    _save(figure, path)


def draw_predictions(model: WorldModel, batches: FixedBatches, path: Path) -> None:
    """The last steps of the first validation sequence."""
    source = batches.source
    request = batches.request(0).rows(slice(0, 1))
    batch = source.batch(request)
    if isinstance(source, BallSource):
        frames = source.whole_frames(request)[0].cpu().numpy()
        _draw_balls(model, batch, frames, path)
    else:
        _draw_battle(model, batch, path)


def stitch_grid(size: int) -> list[int]:
    """Centres of crops that together cover `size` pixels."""
    count = -(-size // CROP)
    return [round(c) for c in np.linspace(min(REACH, size - 1), max(size - 1 - REACH, 0), count)]


@torch.no_grad()
def predicted_frames(model: WorldModel, batch: Batch, size: int) -> Tensor:
    """(T, S, S) probabilities of whole frames, stitched from crops; the batch holds one sequence."""
    centres = stitch_grid(size)
    grid = torch.tensor([[x, y] for y in centres for x in centres], dtype=torch.float32, device=batch.views.device)
    hidden, _ = model.unroll(model.encode_batch(batch), model.initial_state(1))
    steps = batch.views.shape[1]
    crops = model.decode_hidden(hidden, grid.expand(1, steps, -1, 2)).probability()[0, :, :, 0].float()  # type: ignore[union-attr]
    frames = torch.zeros(steps, size + 2 * REACH, size + 2 * REACH, device=crops.device)
    for k, (x, y) in enumerate(grid.long().tolist()):
        frames[:, y : y + CROP, x : x + CROP] = crops[:, k]
    return frames[:, REACH : REACH + size, REACH : REACH + size].cpu()


def _draw_balls(model: WorldModel, batch: Batch, frames: NDArray[np.uint8], path: Path) -> None:
    size = frames.shape[-1]
    predicted = predicted_frames(model, batch, size).numpy()
    seen = seen_pixels(batch.view_position, batch.view_mask, size, REACH)[0].cpu().numpy()
    shown = range(max(len(predicted) - SHOWN_STEPS, 0), len(predicted))
    rows = {
        "seen at t": [np.where(seen[t], frames[t].astype(np.float64), 0.4) for t in shown],
        "true at t + 1": [frames[t + 1] for t in shown],
        "predicted": [predicted[t] for t in shown],
    }
    _draw_rows(rows, [f"t = {t}" for t in shown], path)


@torch.no_grad()
def _draw_battle(model: WorldModel, batch: Batch, path: Path) -> None:
    """One agent that lives long: unit types, friendly markers and health, radius downwards, angle to the right."""
    prediction = model(batch)
    assert batch.targets is not None
    agent = int(batch.query_mask[0].sum(0).argmax())
    alive = torch.nonzero(batch.query_mask[0, :, agent]).flatten().tolist()
    shown = alive[-SHOWN_STEPS:]
    friendly, unit_type, hecs = (part[0, :, agent].float().cpu() for part in batch.targets)
    guess = [part[0, :, agent].float().cpu() for part in prediction]
    rows = {
        "true friendly": [friendly[t] for t in shown],
        "predicted": [guess[0][t].sigmoid() for t in shown],
        "true unit type": [unit_type[t] / 9 for t in shown],
        "predicted type": [guess[1][t].argmax(0) / 9 for t in shown],
        "true health": [hecs[t, 0] for t in shown],
        "predicted health": [guess[2][t, 0] for t in shown],
    }
    _draw_rows(rows, [f"t + 1 = {t + 1}" for t in shown], path)


def _draw_rows(rows: dict[str, list[Any]], titles: list[str], path: Path) -> None:
    """All images in one, with labels as ticks: an axis for each would take ten times as long to draw."""
    from matplotlib.figure import Figure

    if not titles:
        return
    tiles = [
        [np.pad(np.asarray(image, np.float64), 1, constant_values=0.6) for image in line] for line in rows.values()
    ]
    height, width = tiles[0][0].shape
    picture = np.concatenate([np.concatenate(line, axis=1) for line in tiles])
    figure = Figure(figsize=(1.3 * len(titles) + 1.6, 1.3 * height / width * len(rows) + 0.5))
    axis = figure.add_axes((1.5 / figure.get_figwidth(), 0.02, 1 - 1.6 / figure.get_figwidth(), 0.86))
    axis.imshow(picture, cmap="gray", vmin=0, vmax=1, interpolation="nearest", aspect="auto")
    axis.set_xticks((np.arange(len(titles)) + 0.5) * width - 0.5, titles, fontsize="small")
    axis.set_yticks((np.arange(len(rows)) + 0.5) * height - 0.5, list(rows), fontsize="small")
    axis.tick_params(length=0, labeltop=True, labelbottom=False)
    _save(figure, path)


def _save(figure: Any, path: Path) -> None:
    with replaced(path) as partial:
        figure.savefig(partial, format="png", dpi=90)
