"""Figures of the ball models: heat maps over numbers of balls and views, roll-outs as curves, strips and animations."""

# H steps of the horizon, G side of a stitched picture in pixels

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from s2rm_data.evaluation.curves import REFERENCE_COLOUR, REFERENCE_STYLES
from s2rm_data.evaluation.entrants import Entry
from s2rm_data.evaluation.tables import Comparison
from s2rm_data.generators.bballs.rollouts import REFERENCES as HELD
from s2rm_data.generators.bballs.rollouts import RollOuts
from s2rm_data.painting import grey_image, new_figure, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_RIGHT, _FALSE, _MISSED, _GROUND = (255, 255, 255), (230, 120, 20), (60, 130, 220), (25, 25, 30)
_KEY = "white: ball, right; orange: ball predicted where there is none; blue: ball missed"
_COLUMNS = 9  # of a strip


Dropped = Mapping[int, Mapping[float, Comparison]]  # by number of balls and fraction of the views dropped


def draw_heat_maps(dropped: Dropped, entries: Sequence[Entry], score: str, title: str, reference: str) -> Figure:
    """Number of balls by share of views left; one panel per model and one for the reference that depends on views."""
    fractions = sorted(next(iter(dropped.values())))
    grids = {entry.label: _grid(dropped, fractions, score, [run.name for run in entry.runs]) for entry in entries}
    grids[f"reference: {reference}"] = _grid(dropped, fractions, score, [])
    low, high = min(grid.min() for grid in grids.values()), max(grid.max() for grid in grids.values())
    across = min(3, len(grids))
    figure = new_figure(4.4 * across + 1.0, 2.9 * -(-len(grids) // across) + 0.3)
    axes = panels(figure, len(grids), across)
    for panel, (name, grid) in zip(axes, grids.items(), strict=True):
        picture = panel.imshow(grid, vmin=low, vmax=high, cmap="viridis", aspect="auto", origin="lower")
        panel.set_title(name, fontsize=10)
        panel.set_xticks(range(len(fractions)), [f"{100 * (1 - fraction):.0f}" for fraction in fractions], fontsize=8)
        panel.set_yticks(range(len(dropped)), [str(balls) for balls in dropped], fontsize=8)
        panel.set_xlabel("views left, %", fontsize=9)
        panel.set_ylabel("balls", fontsize=9)
        for (row, column), value in np.ndenumerate(grid):
            dark = value < (low + high) / 2
            panel.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=6.5, color="w" if dark else "k")
    figure.colorbar(picture, ax=axes, label=title)
    return figure


def _grid(dropped: Dropped, fractions: Sequence[float], score: str, names: Sequence[str]) -> NDArray[np.float64]:
    """(numbers of balls, fractions), mean over the runs named; without any, of the last seen canvas."""

    def value(found: Comparison) -> float:
        values = [found.runs[name][score] for name in names] or [found.references["last_seen"][score]]
        return float(np.mean(values))

    return np.array([[value(by_fraction[fraction]) for fraction in fractions] for by_fraction in dropped.values()])


def draw_horizons(rolled: Mapping[int, RollOuts], entries: Sequence[Entry], score: str, ylabel: str) -> Figure:
    """A score over the steps fed back, one panel per number of balls."""
    across = min(3, len(rolled))
    figure = new_figure(3.8 * across + 2.4, 2.7 * -(-len(rolled) // across) + 0.2)
    axes = panels(figure, len(rolled), across, sharex=True, sharey=True)
    for panel, (balls, found) in zip(axes, rolled.items(), strict=True):
        _draw_horizon(panel, found, entries, score)
        panel.set_title(number_of(balls), fontsize=10)
        panel.set_xlabel("step of the roll-out", fontsize=9)
        panel.set_ylabel(ylabel, fontsize=9)
        panel.tick_params(labelsize=8, labelbottom=True)
        panel.grid(axis="y", lw=0.3, color="#cccccc")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", fontsize=8, frameon=False)
    return figure


def number_of(balls: int) -> str:
    return f"{balls} ball{'s' * (balls > 1)}"


def _draw_horizon(axes: Any, rolled: RollOuts, entries: Sequence[Entry], score: str) -> None:
    steps = np.arange(1, rolled.horizon + 1)
    for (name, title), style in zip(HELD.items(), REFERENCE_STYLES, strict=True):
        values = getattr(rolled.references[name], score)
        axes.plot(steps, values, color=REFERENCE_COLOUR, ls=style, lw=1.2, label=title)
    for entry in entries:
        there = [getattr(rolled.runs[run.name], score) for run in entry.runs if run.name in rolled.runs]
        if there:
            found = np.array(there)
            drawn = {"color": entry.colour, "marker": entry.look.marker, "ms": 3, "lw": 1.5, "zorder": 3}
            axes.plot(steps, found.mean(0), label=entry.label, **drawn)
            if len(found) > 1:
                axes.fill_between(steps, found.min(0), found.max(0), color=entry.colour, alpha=0.15, lw=0)


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
    steps = np.unique(np.linspace(0, rolled.horizon - 1, _COLUMNS).round().astype(int))
    side, gap = int(rolled.truth.shape[-1]), 3
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


def rollout_animation(rolled: RollOuts, titles: Mapping[str, str], *, scale: int = 4, number: int = 0) -> list[Any]:
    """Pillow images: one column per model, the truth above it."""
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
                canvas.paste(grey_image(frame, scale), (left, upper + top - 2))
        pen.text((10, canvas.height - 14), f"step {step + 1} of {len(true)}", fill=(30, 30, 30))
        pictures.append(canvas.quantize(16))
    return pictures
