"""Curves, one line per model with its interval over seeds, and references in grey: of tables, and of validations.

The paper's numbers are drawn dashed, in panels of their own: they come from other data, and on a common axis a model
that has learned nothing can look better than them. Whether a comparison is fair depends on the validations in the runs'
logs: a model whose curve still rises was stopped, not beaten."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

from s2rm_data.core.errors import DamagedStoreError, S2RMWarning
from s2rm_data.core.paint import legend_below, new_figure, panels
from s2rm_data.core.registry import WORLDS
from s2rm_data.evaluation.candidates import Entry
from s2rm_data.evaluation.report import Page, Section
from s2rm_data.evaluation.runs import Run
from s2rm_data.evaluation.tables import Cell, Table
from s2rm_data.learning.world_learning import Learning
from s2rm_data.training.folder import LOG, read_log

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REFERENCE_COLOUR, CEILING_COLOUR = "#777777", "#111111"
REFERENCE_STYLES = ((0, (1, 1)), (0, (4, 2)), (0, (6, 2, 1, 2)), (0, (2, 3)))


def draw_tables(tables: Sequence[Table], *, xlabel: str, titles: Sequence[str], columns: int | None = None) -> Figure:
    """One panel per table, below it one where the paper has numbers; one legend for all."""
    across, wanted = columns or len(tables), [*zip(titles, tables, strict=True)]
    rows: list[list[Any]] = []
    for pairs in (wanted[start : start + across] for start in range(0, len(wanted), across)):
        rows.append([(title, table, _draw) for title, table in pairs])
        paper = [_paper_values(table) and (f"{title}: the paper", table, _draw_paper) for title, table in pairs]
        rows += [paper] if any(paper) else []
    figure, drawn = _panels(len(rows) * across, across)
    places = [found for row in rows for found in [*row, *[None] * (across - len(row))]]
    for panel, found in zip(drawn, places, strict=True):
        if not found:
            panel.remove()
            continue
        title, table, draw = found
        panel.set_xticks(range(len(table.columns)), table.columns)
        panel.set(xlim=(-0.5, len(table.columns) - 0.5), title=title, xlabel=xlabel)
        draw(panel, table)
    legend_below(figure, figure.axes)
    return figure


def _panels(count: int, across: int) -> tuple[Figure, list[Any]]:
    figure = new_figure(4.1 * across, 3.2 * -(-count // across) + 0.6)
    drawn = panels(figure, count, across)
    for panel in drawn:
        panel.grid(axis="y")
    return figure, drawn


def _draw(axes: Any, table: Table) -> None:
    for column in table.in_distribution:
        place = table.columns.index(column)
        axes.axvspan(place - 0.5, place + 0.5, color="#f1eee0", zorder=0, label="trained on")
    styles = itertools.cycle(REFERENCE_STYLES)
    for row in table.rows:
        style: dict[str, Any] = {"color": row.colour, "marker": row.marker, "ms": 5, "lw": 1.6, "zorder": 3}
        if row.above:
            style = {"color": CEILING_COLOUR, "marker": ".", "lw": 1.2, "zorder": 1}
        elif row.kind == "reference":
            style = {"color": REFERENCE_COLOUR, "ls": next(styles), "lw": 1.2, "zorder": 1}
        known = [(place, cell) for place, cell in enumerate(row.cells) if cell.mean is not None]
        if known and row.kind != "paper":
            _plot(axes, *zip(*known, strict=True), label=row.label, **style)
    _fit(axes, _means(table, "model"), _means(table, "reference"))


def _draw_paper(axes: Any, table: Table) -> None:
    for row in {row.model: row for row in table.rows}.values():  # once, however many configs of a model were run
        points = [(place, cell.paper) for place, cell in enumerate(row.cells) if cell.paper is not None]
        style: dict[str, Any] = {"ls": "--", "lw": 1.0, "alpha": 0.8, "zorder": 2, "label": f"paper: {row.model}"}
        if points:
            axes.plot(*zip(*points, strict=True), color=row.colour or REFERENCE_COLOUR, **style)
    _fit(axes, [_paper_values(table)])


def _paper_values(table: Table) -> list[float]:
    return [cell.paper for row in table.rows for cell in row.cells if cell.paper is not None]


def _means(table: Table, kind: str) -> list[list[float]]:
    rows = [[cell.mean for cell in row.cells if cell.mean is not None] for row in table.rows if row.kind == kind]
    return [row for row in rows if row]


def _fit(axes: Any, lines: Sequence[Sequence[float]], references: Sequence[Sequence[float]] = ()) -> None:
    """To the lines of models, and to references no farther from them than they are from one another: nothing at all,
    at zero, would press six models into one line, and so would the interval of two seeds."""
    values = [value for line in lines or references for value in line]
    if values and axes.get_yscale() == "log":
        axes.set_ylim(0.96 * min(values), 1.04 * max(values))
    elif values:
        low, high = min(values), max(values)
        reach = (high - low) or 0.1 * abs(high) or 0.01
        near = [line for line in references if max(line) > low - reach and min(line) < high + reach]
        shown = [min(max(value, low - reach), high + reach) for line in (values, *near) for value in line]
        axes.set_ylim(min(shown) - 0.06 * reach, max(shown) + 0.06 * reach)
        if off := len(references) - len(near):
            words = f"{off} of {len(references)} references off this axis"
            axes.text(0.99, 0.01, words, transform=axes.transAxes, ha="right", fontsize=7, color=REFERENCE_COLOUR)


def _plot(axes: Any, places: Sequence[int], cells: Sequence[Cell], **style: Any) -> None:
    """A line through the means, and a band of their intervals where there are any."""
    means, halves = [cell.mean or 0.0 for cell in cells], [cell.half_width for cell in cells]
    axes.plot(places, means, **style)
    if any(half is not None for half in halves):
        low, high = ([mean + sign * (half or 0) for mean, half in zip(means, halves, strict=True)] for sign in (-1, 1))
        axes.fill_between(places, low, high, color=style["color"], alpha=0.15, lw=0)


Scores = Mapping[str, Mapping[int, float]]  # by name, then by the step at which it was validated


def learning_curves(run: Run, scores: Sequence[str]) -> dict[str, dict[int, float]]:
    """Of each score that the run's log has, and the loss; empty for a model from outside. A damaged log costs the run
    its curve and is named; the scores, which may have taken hours, do not depend on it."""
    found: dict[str, dict[int, float]] = {}
    records = [r for r in _records(run, "validation") if type(r.get("step")) is int and r["step"] >= 0]
    for record, name in itertools.product(records, ("loss", *scores)):
        if _is_number(value := record.get(name)):
            found.setdefault(name, {})[record["step"]] = value
    return found


def learning_curve_section(entries: Sequence[Entry], learning: Learning, world: str, page: Page) -> Section | None:
    """None where no run has more than one validation to draw a line through."""
    titles = {"loss": "loss", **learning.scores}
    curves = {run.name: learning_curves(run, list(learning.scores)) for entry in entries for run in entry.runs}
    shown = {name: titles[name] for name in titles if any(len(own.get(name, ())) > 1 for own in curves.values())}
    if not shown:
        return None
    section = Section(
        title=f"{WORLDS.load(world).title}: learning curves",
        text="Validation scores during the training of each run, on the sequences that it was validated on; these are "
        "few, and other ones than those of the tables. With several seeds, the line is their mean and the band its "
        "95% interval. A curve that still rises says that the budget ended the training.",
    )
    page.add_figure(section, f"{world}_learning_curves", _drawn(entries, curves, shown, learning))
    return section


def _drawn(
    entries: Sequence[Entry], curves: Mapping[str, Scores], titles: Mapping[str, str], learning: Learning
) -> Figure:
    figure, drawn = _panels(len(titles), min(3, len(titles)))
    # Of the first run that has them: runs that are compared were validated on the same data, or say little.
    logged = (record for entry in entries for run in entry.runs for record in _records(run, "references"))
    references = {name: found for name, found in next(logged, {}).items() if isinstance(found, dict)}
    for panel, (score, title) in zip(drawn, titles.items(), strict=True):
        limits = []
        for (name, label), style in zip(learning.references.items(), itertools.cycle(REFERENCE_STYLES), strict=False):
            if _is_number(value := references.get(name, {}).get(score)):
                panel.axhline(value, color=REFERENCE_COLOUR, ls=style, lw=1.2, label=label, zorder=1)
                limits.append([value])
        if score == "loss":
            panel.set_yscale("log")
        lines = []
        for entry in entries:  # through the steps at which all seeds that have this score were validated
            seeds = [points for run in entry.runs if (points := curves[run.name].get(score))]
            steps = sorted(set.intersection(*map(set, seeds))) if seeds else []
            if cells := [Cell(values=tuple(points[step] for points in seeds)) for step in steps]:
                _plot(panel, steps, cells, color=entry.colour, lw=1.6, label=entry.label, zorder=3)
                lines.append([cell.mean or 0.0 for cell in cells])
        _fit(panel, lines, limits)
        panel.set(title=title, xlabel="step")
    legend_below(figure, drawn)
    return figure


def _records(run: Run, kind: str) -> list[dict[str, Any]]:
    if run.path is None:
        return []
    try:
        records = read_log(run.path / LOG)
    except DamagedStoreError as error:
        warnings.warn(f"no learning curve of {run.name}: {error}", S2RMWarning, stacklevel=2)
        return []
    return [found for found in records if isinstance(found, dict) and found.get("kind") == kind]


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
