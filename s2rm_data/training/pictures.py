"""Pictures of a run: its learning curves, and predictions beside the truth."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from s2rm_data.files import replaced
from s2rm_data.learning import Learning
from s2rm_data.loading import FixedBatches
from s2rm_data.models import WorldModel
from s2rm_data.painting import captioned, grey_image

SHOWN_STEPS = 8
ANIMATION_PIXELS = 120  # high


def draw_curves(
    records: list[dict[str, Any]], references: dict[str, dict[str, float]], learning: Learning, path: Path
) -> None:
    """Losses on the left, the main score and its references on the right."""
    from matplotlib.figure import Figure

    steps = [r for r in records if r["kind"] == "step"]
    validations = [r for r in records if r["kind"] == "validation"]
    if not validations:
        return
    score, title = next(iter(learning.scores.items()))
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
    right.set(xlabel="step", ylabel=f"{title}, validation", ylim=(0, 1))
    right.legend(fontsize="small")
    _save(figure, path)


def draw_predictions(model: WorldModel, batches: FixedBatches, path: Path) -> bytes:
    """The last steps of the first validation sequence, beside one another; returns them one after the other, a GIF."""
    rows, titles = model.config.learning.pictures(model, batches.source, batches.request(0), SHOWN_STEPS)
    _draw_rows(rows, titles, path)
    return _animation(rows, titles)


def _animation(rows: dict[str, list[Any]], titles: list[str]) -> bytes:
    images = []
    for step, title in enumerate(titles):
        tiles = [np.pad(np.clip(np.nan_to_num(np.asarray(line[step], np.float64)), 0, 1), 1) for line in rows.values()]
        levels = (255 * np.concatenate(tiles, axis=1)).astype(np.uint8)
        shown = grey_image(levels, max(1, ANIMATION_PIXELS // levels.shape[0])).convert("RGB")
        images.append(captioned(shown, f"{title}: {', '.join(rows)}"))
    data = io.BytesIO()
    if images:
        images[0].save(data, "gif", save_all=True, append_images=images[1:], duration=300, loop=0)
    return data.getvalue()


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
