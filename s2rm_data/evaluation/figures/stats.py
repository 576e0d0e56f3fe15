"""Figures of `s2rm-data stats`: one for the balls, one for the battles."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from s2rm_data.errors import DiskError
from s2rm_data.evaluation.figures.canvas import new_figure, save_figure
from s2rm_data.evaluation.stats import GroupStats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_OUTCOME_COLOURS = {
    "win": "#009e73",
    "loss": "#d55e00",
    "draw": "#999999",
    "limit": "#e69f00",
    "running": "#56b4e9",
}
_LENGTH_BIN = 4  # steps
_SIDES = {"agents": ("Blues", "#0072b2"), "enemies": ("Reds", "#d55e00")}


def save_stats(found: Sequence[GroupStats], folder: Path) -> list[Path]:
    """stats.json, and a PNG and an SVG a task."""
    paths = [folder / "stats.json"]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        paths[0].write_text(json.dumps({entry.group: entry.to_json() for entry in found}, indent=1) + "\n")
    except OSError as error:
        raise DiskError(f"cannot write to {folder}: {error.strerror or error}; choose another --out") from None
    for generator, draw in (("bballs", draw_balls), ("sc2", draw_battles)):
        if entries := [entry for entry in found if entry.generator == generator]:
            paths += save_figure(draw(entries), folder / generator)
    return paths


def draw_balls(entries: Sequence[GroupStats]) -> Figure:
    """A column a group: where pixels are on, and how fast the balls are."""
    columns = len(entries)
    figure = new_figure(1.9 * columns + 1.2, 4.4)
    axes = figure.subplots(2, columns, squeeze=False, sharex="row")
    moving = max(
        float(density[density < 1].max(initial=0.01)) for density in (entry.maps["density"] for entry in entries)
    )
    for column, entry in enumerate(entries):
        side = len(entry.maps["density"])
        picture = axes[0, column].imshow(
            entry.maps["density"], vmin=0, vmax=moving, cmap="magma", extent=(0, side, side, 0), interpolation="nearest"
        )
        name = entry.group.removeprefix("bballs/")
        axes[0, column].set_title(f"{name}: {entry.row['balls']} ball{'s' * (entry.row['balls'] > 1)}", fontsize=9)
        axes[0, column].tick_params(labelsize=7)
        edges, counts = entry.histograms["speed"]
        axes[1, column].stairs(counts / max(counts.sum(), 1), edges, fill=True, color="#0072b2")
        axes[1, column].axvline(entry.row["speed_mean_px_per_frame"], color="black", lw=0.8, ls="--")
        axes[1, column].set_xlabel("speed, px/frame", fontsize=8)
        axes[1, column].tick_params(labelsize=7)
    axes[0, 0].set_ylabel("row, px", fontsize=8)
    axes[1, 0].set_ylabel("share of balls and frames\n(dashed: mean)", fontsize=8)
    bar = figure.colorbar(picture, ax=axes[0].tolist(), shrink=0.9, extend="max")
    bar.set_label("share of frames in which\nthe pixel is on (fixed ball: 1)", fontsize=8)
    bar.ax.tick_params(labelsize=7)
    return figure


def draw_battles(entries: Sequence[GroupStats]) -> Figure:
    """A row a group: where each side stands, how long episodes last, who is left, and how each policy fares."""
    figure = new_figure(15.5, 2.7 * len(entries) + 0.4)
    axes = figure.subplots(len(entries), 5, squeeze=False, width_ratios=(1, 1, 1.5, 1.3, 1.5))
    for row, entry in zip(axes, entries, strict=True):
        for panel, side in zip(row[:2], _SIDES, strict=True):
            _draw_density(figure, panel, entry, side)
        _draw_lengths(row[2], entry)
        _draw_alive(row[3], entry)
        _draw_outcomes(row[4], entry)
        for panel in row:
            panel.tick_params(labelsize=7)
    return figure


def _draw_density(figure: Any, axes: Any, entry: GroupStats, side: str) -> None:
    """The colour scale is a square root, so that where few units come is seen, too."""
    from matplotlib.colors import PowerNorm

    density = 100 * entry.maps[side]
    picture = axes.imshow(
        np.ma.masked_equal(density, 0),
        origin="lower",
        extent=(0, len(density), 0, len(density)),
        cmap=_SIDES[side][0],
        norm=PowerNorm(0.5, vmin=0),
    )
    axes.set_title(f"{entry.group.removeprefix('sc2/')}\n{side}: {entry.row[side]}", fontsize=8)
    axes.set_xlabel("x, map units", fontsize=7)
    axes.set_ylabel("y, map units", fontsize=7)
    bar = figure.colorbar(picture, ax=axes, shrink=0.8)
    bar.set_label("% of unit-steps", fontsize=7)
    bar.ax.tick_params(labelsize=6)


def _draw_lengths(axes: Any, entry: GroupStats) -> None:
    """Stacked by outcome."""
    base = None
    for name, (_, single) in entry.histograms.items():
        outcome = name.removeprefix("length, ")
        edges = np.arange(0, len(single) + _LENGTH_BIN, _LENGTH_BIN)
        counts = np.histogram(np.arange(len(single)), edges, weights=single)[0]
        top = counts if base is None else base + counts
        colour = _OUTCOME_COLOURS.get(outcome, "#444444")
        axes.stairs(top, edges, baseline=0 if base is None else base, fill=True, color=colour, label=outcome)
        base = top
    axes.set_title("length of episodes", fontsize=8)
    axes.set_xlabel("steps", fontsize=8)
    axes.set_ylabel("episodes", fontsize=8)
    axes.yaxis.get_major_locator().set_params(integer=True)
    axes.legend(fontsize=7, frameon=False)


def _draw_alive(axes: Any, entry: GroupStats) -> None:
    for side, (_, colour) in _SIDES.items():
        alive = entry.curves[f"{side} alive"][: entry.row["length_90_percent_steps"]]
        axes.plot(np.arange(len(alive)), alive, color=colour, label=side)
    axes.set_title("units alive in episodes still running\n(until a tenth of them is left)", fontsize=8)
    axes.set_xlabel("step", fontsize=8)
    axes.set_ylim(0)
    axes.legend(fontsize=7, frameon=False)


def _draw_outcomes(axes: Any, entry: GroupStats) -> None:
    table = entry.shares["outcome by policy"]
    low, high = entry.row["win_share_interval"]
    labels = [f"{policy} (n = {int(shares['episodes'])})" for policy, shares in table.items()]
    left = np.zeros(len(labels))
    for outcome, colour in _OUTCOME_COLOURS.items():
        values = np.array([shares.get(outcome, 0.0) for shares in table.values()])
        if values.any():
            axes.barh(labels, values, left=left, color=colour, label=outcome)
            left += values
    axes.set_title(f"outcome by policy; wins in all {entry.row['win_share']:.0%} ({low:.0%} to {high:.0%})", fontsize=8)
    axes.set_xlabel("share of episodes", fontsize=8)
    axes.set_xlim(0, 1)
    axes.invert_yaxis()
    axes.legend(fontsize=7, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
