"""Figures of the ball models: heat maps over ball count and views, roll-outs as curves, strips and animations."""

# H steps of the horizon, G side of a stitched picture in pixels

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from s2rm_data.evaluation.balls import REFERENCES
from s2rm_data.evaluation.figures.canvas import (
    MARKERS,
    REFERENCE_COLOUR,
    REFERENCE_STYLES,
    colour_of,
    new_figure,
)
from s2rm_data.evaluation.rollouts import REFERENCES as HELD
from s2rm_data.evaluation.rollouts import RollOuts
from s2rm_data.evaluation.tables import BALL_METRICS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_RIGHT, _FALSE, _MISSED, _GROUND = (255, 255, 255), (230, 120, 20), (60, 130, 220), (25, 25, 30)
_KEY = "white: ball, right; orange: ball predicted where there is none; blue: ball missed"
_COLUMNS = 9  # of a strip
_HELD_IN_HEAT_MAPS = "last_seen"  # the reference that depends on the views


def draw_heat_maps(results: dict[str, Any], metric: str) -> Figure:
    """Ball count by share of views left; a panel a label and one for a reference, one colour scale for all."""
    section = results["bballs"]["dropped_views"]
    splits = list(section)
    fractions = sorted(section[splits[0]], key=float)
    panels = {
        label: _grid(section, splits, fractions, "runs", names, metric) for label, names in _labels(results).items()
    }
    reference = _grid(section, splits, fractions, "references", [_HELD_IN_HEAT_MAPS], metric)
    panels[f"reference: {REFERENCES[_HELD_IN_HEAT_MAPS]}"] = reference
    low, high = min(grid.min() for grid in panels.values()), max(grid.max() for grid in panels.values())
    across = min(3, len(panels))
    down = -(-len(panels) // across)
    figure = new_figure(4.4 * across + 1.0, 2.9 * down + 0.3)
    axes = figure.subplots(down, across, squeeze=False)
    for panel in axes.flat[len(panels) :]:
        panel.remove()
    for panel, (title, grid) in zip(axes.flat, panels.items(), strict=False):
        picture = panel.imshow(grid, vmin=low, vmax=high, cmap="viridis", aspect="auto", origin="lower")
        panel.set_title(title, fontsize=10)
        panel.set_xticks(range(len(fractions)), [f"{100 * (1 - float(f)):.0f}" for f in fractions], fontsize=8)
        panel.set_yticks(range(len(splits)), [str(results["bballs"]["balls"][s]) for s in splits], fontsize=8)
        panel.set_xlabel("views left, %", fontsize=9)
        panel.set_ylabel("balls", fontsize=9)
        for (row, column), value in np.ndenumerate(grid):
            dark = value < (low + high) / 2
            panel.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=6.5, color="w" if dark else "k")
    figure.colorbar(picture, ax=axes[axes != None].ravel().tolist()[: len(panels)], label=BALL_METRICS[metric])  # noqa: E711
    return figure


def _labels(results: dict[str, Any], task: str = "bballs") -> dict[str, list[str]]:
    labels: dict[str, list[str]] = {}
    for name, run in results["runs"].items():
        if run["task"] == task:
            labels.setdefault(run["label"], []).append(name)
    return labels


def _grid(
    section: dict[str, Any],
    splits: Sequence[str],
    fractions: Sequence[str],
    kind: str,
    names: Sequence[str],
    metric: str,
) -> NDArray[np.float64]:
    """(splits, fractions), mean over the names."""
    return np.array(
        [[np.mean([section[s][f][kind][name][metric] for name in names]) for f in fractions] for s in splits]
    )


def draw_horizons(results: dict[str, Any], score: str, ylabel: str) -> Figure:
    """A score over the steps fed back, a panel a ball count."""
    section = results["bballs"]["rollouts"]
    across = min(3, len(section))
    down = -(-len(section) // across)
    figure = new_figure(3.8 * across + 2.4, 2.7 * down + 0.2)
    axes = figure.subplots(down, across, squeeze=False, sharex=True, sharey=True)
    for panel in axes.flat[len(section) :]:
        panel.remove()
    for panel, (split, rolled) in zip(axes.flat, section.items(), strict=False):
        _draw_horizon(panel, results, rolled, score)
        number = results["bballs"]["balls"][split]
        panel.set_title(f"{number} ball{'s' * (number > 1)}", fontsize=10)
        panel.set_xlabel("step of the roll-out", fontsize=9)
        panel.set_ylabel(ylabel, fontsize=9)
        panel.tick_params(labelsize=8, labelbottom=True)
        panel.grid(axis="y", lw=0.3, color="#cccccc")
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", fontsize=8, frameon=False)
    return figure


def _draw_horizon(axes: Any, results: dict[str, Any], rolled: dict[str, Any], score: str) -> None:
    steps = np.arange(1, len(next(iter(rolled["references"].values()))[score]) + 1)
    for (name, title), style in zip(HELD.items(), REFERENCE_STYLES, strict=True):
        axes.plot(steps, rolled["references"][name][score], color=REFERENCE_COLOUR, ls=style, lw=1.2, label=title)
    for number, (label, names) in enumerate(_labels(results).items()):
        there = [rolled["runs"][name][score] for name in names if name in rolled["runs"]]
        if there:
            model = results["runs"][names[0]]["model"]
            colour = colour_of(model if "(" not in label else "", number)
            values = np.array(there)
            axes.plot(
                steps, values.mean(0), color=colour, marker=MARKERS.get(model, "x"), ms=3, lw=1.5, label=label, zorder=3
            )
            if len(values) > 1:
                axes.fill_between(steps, values.min(0), values.max(0), color=colour, alpha=0.15, lw=0)


def coloured(predicted: NDArray[np.bool_], true: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """(..., G, G) -> (..., G, G, 3): what is right, wrong and missed."""
    picture = np.empty((*true.shape, 3), np.uint8)
    for colour, where in (
        (_GROUND, ~predicted & ~true),
        (_RIGHT, predicted & true),
        (_FALSE, predicted & ~true),
        (_MISSED, ~predicted & true),
    ):
        picture[where] = colour
    return picture


def _rows_of(rolled: RollOuts, titles: Mapping[str, str], number: int) -> dict[str, NDArray[np.uint8]]:
    """Title -> (H, G, G, 3), the truth first."""
    true = rolled.truth[number].numpy()
    rows = {"truth": coloured(true, true)}
    for name, pictures in rolled.pictures.items():
        if name in titles:
            rows[titles[name]] = coloured(pictures[number].numpy(), true)
    return rows


def draw_strip(rolled: RollOuts, titles: Mapping[str, str], heading: str, number: int = 0) -> Figure:
    """The truth above the models, some steps of the horizon as columns."""
    rows = _rows_of(rolled, titles, number)
    horizon = rolled.truth.shape[1]
    steps = np.unique(np.linspace(0, horizon - 1, _COLUMNS).round().astype(int))
    side, gap = true_side(rolled), 3
    canvas = np.full((len(rows) * (side + gap), len(steps) * (side + gap), 3), 255, np.uint8)
    for row, pictures in enumerate(rows.values()):
        for column, step in enumerate(steps):
            top, left = row * (side + gap), column * (side + gap)
            canvas[top : top + side, left : left + side] = pictures[step]
    figure = new_figure(1.15 * len(steps) + 1.6, 1.15 * len(rows) + 0.9)
    axes = figure.subplots()
    axes.imshow(canvas, interpolation="nearest")
    axes.set_yticks((np.arange(len(rows)) + 0.5) * (side + gap), list(rows), fontsize=9)
    axes.set_xticks((np.arange(len(steps)) + 0.5) * (side + gap), [f"step {step + 1}" for step in steps], fontsize=9)
    axes.tick_params(length=0, labeltop=True, labelbottom=False)
    axes.set_frame_on(False)
    figure.suptitle(f"{heading}\n{_KEY}", fontsize=9)
    return figure


def true_side(rolled: RollOuts) -> int:
    return int(rolled.truth.shape[-1])


def rollout_animation(rolled: RollOuts, titles: Mapping[str, str], *, scale: int = 4, number: int = 0) -> list[Any]:
    """Pillow images: a column a model, the truth above it."""
    from PIL import Image, ImageDraw

    rows = _rows_of(rolled, titles, number)
    true = rows.pop("truth")
    side = true.shape[1] * scale
    pitch, top = side + 10, 16
    pictures = []
    for step in range(len(true)):
        canvas = Image.new("RGB", (pitch * len(rows) + 10, 2 * (side + top) + 26), (250, 250, 250))
        pen = ImageDraw.Draw(canvas)
        for column, (title, made) in enumerate(rows.items()):
            left = 10 + column * pitch
            for row, (caption, frame) in enumerate((("truth", true[step]), (title, made[step]))):
                upper = 4 + row * (side + top + 4)
                pen.text((left, upper), caption, fill=(30, 30, 30))
                canvas.paste(Image.fromarray(frame.repeat(scale, 0).repeat(scale, 1)), (left, upper + top - 2))
        pen.text((10, canvas.height - 14), f"step {step + 1} of {len(true)}", fill=(30, 30, 30))
        pictures.append(canvas.quantize(16))
    return pictures
