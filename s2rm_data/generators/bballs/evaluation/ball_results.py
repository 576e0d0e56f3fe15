"""Results of the ball models, their tables and their figures: one step ahead, with fewer views, and rolled out."""

# H steps of the horizon, G side of a stitched picture in pixels

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from s2rm_data.core.paint import grey_image, legend_below, new_figure, panels
from s2rm_data.evaluation.candidates import Entry
from s2rm_data.evaluation.curves import CEILING_COLOUR, REFERENCE_COLOUR, REFERENCE_STYLES
from s2rm_data.evaluation.tables import Column, Comparison, Reference, Table, compare, shares
from s2rm_data.generators.bballs.evaluation.ball_ceiling import NOISY
from s2rm_data.generators.bballs.evaluation.ball_probe import Probed
from s2rm_data.generators.bballs.evaluation.ball_rollouts import REFERENCES as HELD
from s2rm_data.generators.bballs.evaluation.ball_rollouts import RollOuts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCORES = {
    "f1": "F1",
    "balanced_accuracy": "Balanced accuracy",
    "f1_moving": "F1 without the fixed ball",
    "balanced_accuracy_moving": "Balanced accuracy without the fixed ball",
}
_SHOWN_STEPS = (1, 3, 5, 10, 15, 20, 25)  # of a roll-out, and its last
Entries = Sequence[Entry]
References = Mapping[str, Reference]

FILTER = Reference(title="exact filter", direction="above", share=1.0)
ROLLED = {
    **{name: Reference(title=title, share=0.0 if name == "copy_previous" else None) for name, title in HELD.items()},
    "filter": FILTER,
    **{name: Reference(title=title, direction="above") for name, title in NOISY.items()},
}
_CEILINGS: dict[str, dict[str, Any]] = {  # how lines are drawn: the filter, then the least noise darkest
    "filter": {"color": CEILING_COLOUR, "lw": 1.8},
    **{name: {"color": f"{0.35 + 0.15 * n:.2f}", "lw": 0.9, "marker": "+", "ms": 3} for n, name in enumerate(NOISY)},
}


def _table(
    world: str, name: str, title: str, caption: str, corner: str, columns: Mapping[str, Column], *rows: Any, **more: Any
) -> Table:
    """`rows`: entries and references, see `compare`."""
    told: dict[str, Any] = {"title": title, "caption": caption, "corner": corner, "world": world, **more}
    return Table(name=f"{world}_{name}", columns=tuple(columns), rows=compare(rows[0], columns, rows[1]), **told)


@dataclass(frozen=True, kw_only=True)
class BallResults:
    """All by split (`test_3`); `dropped_views` also by the fraction left out. `balls`: how many there are. `sequences`,
    `dropped_sequences`: how many were looked at. `attainable`, `attainable_rollouts`: the first `filtered` sequences
    only, where the exact filter was asked, too. `probed`: errors of what is read off a state, by run."""

    balls: Mapping[str, int]
    sequences: Mapping[str, int]
    dropped_sequences: Mapping[str, int]
    one_step: Mapping[str, Comparison]
    dropped_views: Mapping[str, Mapping[float, Comparison]]
    rollouts: Mapping[str, RollOuts]
    filtered: int = 0
    attainable: Mapping[str, Comparison] = field(default_factory=dict)
    attainable_rollouts: Mapping[str, RollOuts] = field(default_factory=dict)
    probed: Probed = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        def of_all(found: Mapping[Any, Any]) -> dict[Any, Any]:
            return {key: own.to_json() for key, own in found.items()}

        dropped = {s: {f"{f:g}": own for f, own in of_all(found).items()} for s, found in self.dropped_views.items()}
        scores = {"one_step": of_all(self.one_step), "dropped_views": dropped, "rollouts": of_all(self.rollouts)}
        told = {"attainable": of_all(self.attainable), "attainable_rollouts": of_all(self.attainable_rollouts)}
        told["probed"] = {name: dict(found) for name, found in self.probed.items()}
        counts = {"balls": dict(self.balls), "sequences": dict(self.sequences)}
        return {**scores, "filtered": self.filtered, **told, **counts}


def one_step_tables(
    results: BallResults, entries: Sequence[Entry], references: References, trained_on: int | None, world: str
) -> list[Table]:
    """Scores by number of balls, one table per score."""
    splits = {str(results.balls[split]): found for split, found in results.one_step.items()}
    caption = (
        f"Pooled over {next(iter(results.sequences.values()))} sequences per number of balls, all steps, queries and "
        f"pixels; all views given.{_asked(results)}"
    )
    tables = []
    for score, name in SCORES.items():
        columns, title = _columns(splits, score), f"{name} one step ahead, by number of balls"
        own: dict[str, Any] = {"in_distribution": (str(trained_on),) if str(trained_on) in splits else ()}
        own["short"] = ("one_step",) if score == "f1" else ()
        tables.append(_table(world, f"one_step_{score}", title, caption, "balls", columns, entries, references, **own))
    return tables


def _columns(found: Mapping[str, Comparison], score: str) -> dict[str, Column]:
    return {name: comparison.column(score) for name, comparison in found.items()}


def dropped_view_tables(results: BallResults, entries: Entries, references: References, world: str) -> list[Table]:
    """F1 by share of the views, one table per number of balls."""
    tables = []
    for split, by_fraction in results.dropped_views.items():
        columns = {f"{100 * (1 - fraction):.0f}%": found.column("f1") for fraction, found in by_fraction.items()}
        title = f"F1 by share of the views that is left: {number_of(results.balls[split])}"
        looked_at = f"The first {results.dropped_sequences[split]} sequences"
        caption = f"{looked_at}; an exact share of the views of every frame.{_asked(results)}"
        name = f"views_f1_{split}"
        tables.append(_table(world, name, title, caption, "views left", columns, entries, references))
    return tables


def _asked(results: BallResults) -> str:
    return f" Sequences that the exact filter was asked for: {results.filtered}." if results.filtered else ""


def attainable_tables(results: BallResults, entries: Entries, references: References, world: str) -> list[Table]:
    """Models and the filter on the same sequences, one step ahead and rolled out; then shares of what is attainable."""
    splits = {str(results.balls[split]): found for split, found in results.attainable.items()}
    caption = f"The first {results.filtered} sequences of each number of balls; all views given."
    tables = []
    for score in ("f1", "f1_moving") if splits else ():
        columns, title = _columns(splits, score), f"{SCORES[score]} one step ahead, beside the exact filter"
        tables.append(_table(world, f"attainable_{score}", title, caption, "balls", columns, entries, references))
    rolled = replace(results, rollouts=results.attainable_rollouts)
    tables += rollout_tables(rolled, entries, f"{world}_attainable")
    return [replace(table, world=world) for table in (*tables, *shares(tables))]


def rollout_tables(results: BallResults, entries: Sequence[Entry], world: str) -> list[Table]:
    """F1 at some steps of the horizon, one table per number of balls."""
    rolling = [entry for entry in entries if entry.runs[0].rolls_out]
    tables = []
    for split, rolled in results.rollouts.items():
        columns = {}
        for step in (step for step in sorted({*_SHOWN_STEPS, rolled.horizon}) if step <= rolled.horizon):
            both = (rolled.runs, rolled.references)
            runs, references = ({name: horizon.f1[step - 1] for name, horizon in of.items()} for of in both)
            columns[str(step)] = Column(runs=runs, references=references)
        title = f"F1 of roll-outs by steps fed back: {number_of(results.balls[split])}"
        caption = f"{rolled.sequences} sequences, {rolled.prompt_steps} prompt steps; stitched pictures."
        name, corner = f"rollout_f1_{split}", "step of the roll-out"
        tables.append(_table(world, name, title, caption, corner, columns, rolling, ROLLED))
    return tables


_RIGHT, _FALSE, _MISSED, _GROUND = (255, 255, 255), (230, 120, 20), (60, 130, 220), (25, 25, 30)
KEY = "white: ball, right; orange: ball predicted where there is none; blue: ball missed"
_COLUMNS = 9  # of a strip
Dropped = Mapping[int, Mapping[float, Comparison]]  # by number of balls and fraction of the views dropped


def draw_heat_maps(dropped: Dropped, entries: Sequence[Entry], score: str, title: str, reference: str) -> Figure:
    """Number of balls by share of views left; one panel per model and one for the reference that depends on views."""
    fractions = sorted(next(iter(dropped.values())))

    def grid_of(names: Sequence[str]) -> NDArray[np.float64]:
        """(numbers of balls, fractions), mean over the runs named; without any, of the last seen canvas."""
        cells = [[by_fraction[f] for f in fractions] for by_fraction in dropped.values()]
        values = [[[c.runs[n][score] for n in names] or [c.references["last_seen"][score]] for c in r] for r in cells]
        return np.array(values, np.float64).mean(-1)

    grids = {entry.label: grid_of([run.name for run in entry.runs]) for entry in entries}
    grids[f"reference: {reference}"] = grid_of([])
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


def draw_horizons(rolled: Mapping[int, RollOuts], entries: Sequence[Entry], score: str, ylabel: str) -> Figure:
    """A score over the steps fed back, one panel per number of balls."""
    across = min(3, len(rolled))
    figure = new_figure(4.1 * across, 2.7 * -(-len(rolled) // across) + 0.6)
    axes = panels(figure, len(rolled), across, sharex=True, sharey=True)
    for panel, (balls, found) in zip(axes, rolled.items(), strict=True):
        _draw_horizon(panel, found, entries, score)
        panel.set(title=number_of(balls), xlabel="step of the roll-out", ylabel=ylabel)
        panel.tick_params(labelbottom=True)
        panel.grid(axis="y")
    legend_below(figure, axes)
    return figure


def number_of(balls: int) -> str:
    return f"{balls} ball{'s' * (balls > 1)}"


def _draw_horizon(axes: Any, rolled: RollOuts, entries: Sequence[Entry], score: str) -> None:
    steps = np.arange(1, rolled.horizon + 1)
    for (name, title), style in zip(HELD.items(), REFERENCE_STYLES, strict=True):
        values = getattr(rolled.references[name], score)
        axes.plot(steps, values, color=REFERENCE_COLOUR, ls=style, lw=1.2, label=title)
    for name, look in _CEILINGS.items():
        if name in rolled.references:
            axes.plot(steps, getattr(rolled.references[name], score), label=ROLLED[name].title, zorder=2, **look)
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
    return np.array([[_GROUND, _MISSED], [_FALSE, _RIGHT]], np.uint8)[predicted.astype(int), true.astype(int)]


def _rows_of(rolled: RollOuts, titles: Mapping[str, str]) -> dict[str, NDArray[np.uint8]]:
    """Title -> (H, G, G, 3) of the first sequence, the truth first."""
    true = rolled.truth[0].numpy()
    made = {titles[name]: pictures[0].numpy() for name, pictures in rolled.pictures.items() if name in titles}
    return {title: coloured(picture, true) for title, picture in {"truth": true, **made}.items()}


def draw_strip(rolled: RollOuts, titles: Mapping[str, str], heading: str) -> Figure:
    """The truth above the models, some steps of the horizon as columns."""
    rows = _rows_of(rolled, titles)
    steps = np.unique(np.linspace(0, rolled.horizon - 1, _COLUMNS).round().astype(int))
    side, gap = int(rolled.truth.shape[-1]), 3
    margins = ((0, 0), (0, 0), (0, gap), (0, gap), (0, 0))
    tiles = np.pad(np.stack([pictures[steps] for pictures in rows.values()]), margins, constant_values=255)
    canvas = tiles.swapaxes(1, 2).reshape(len(rows) * (side + gap), len(steps) * (side + gap), 3)
    figure = new_figure(1.15 * len(steps) + 1.6, 1.15 * len(rows) + 0.9)
    axes = figure.subplots()
    axes.imshow(canvas, interpolation="nearest")
    axes.set_yticks((np.arange(len(rows)) + 0.5) * (side + gap), list(rows), fontsize=9)
    axes.set_xticks((np.arange(len(steps)) + 0.5) * (side + gap), [f"step {step + 1}" for step in steps], fontsize=9)
    axes.tick_params(length=0, labeltop=True, labelbottom=False)
    axes.set_frame_on(False)
    figure.suptitle(f"{heading}\n{KEY}", fontsize=9)
    return figure


def rollout_animation(rolled: RollOuts, titles: Mapping[str, str]) -> list[Any]:
    """Pillow images: one column per model, the truth above it."""
    from PIL import Image, ImageDraw

    rows, scale, top, pictures = _rows_of(rolled, titles), 4, 16, []
    true = rows.pop("truth")
    side = true.shape[1] * scale
    pitch = side + 10
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
