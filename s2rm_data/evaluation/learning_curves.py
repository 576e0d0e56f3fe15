"""How the runs got to their scores: the validations in their logs, one line per model with its interval over seeds.

Whether a comparison is fair depends on it: a model whose curve still rises was stopped, not beaten.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

from s2rm_data.errors import DamagedStoreError, S2RMWarning
from s2rm_data.evaluation.curves import REFERENCE_COLOUR, REFERENCE_STYLES
from s2rm_data.evaluation.entrants import Entry
from s2rm_data.evaluation.report import Page, Section
from s2rm_data.evaluation.runs import Run
from s2rm_data.evaluation.tables import Cell
from s2rm_data.learning import Learning
from s2rm_data.painting import new_figure, panels
from s2rm_data.sealing import LOG, read_log

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ACROSS = 3

Points = Mapping[int, float]  # a score by the step at which it was validated
Scores = Mapping[str, Points]  # by name


def learning_curves(run: Run, scores: Sequence[str]) -> dict[str, dict[int, float]]:
    """Of each score that the run's log has, and the loss; empty for a model from outside.

    A damaged log costs the run its curve and is named; the scores, which may have taken hours, do not depend on it.
    """
    found: dict[str, dict[int, float]] = {}
    for record in _records(run, "validation"):
        step = record.get("step")
        if type(step) is int and step >= 0:
            for name in ("loss", *scores):
                if _is_number(value := record.get(name)):
                    found.setdefault(name, {})[step] = value
    return found


def learning_curve_section(entries: Sequence[Entry], learning: Learning, world: str, page: Page) -> Section | None:
    """None where no run has more than one validation to draw a line through."""
    titles = {"loss": "loss", **learning.scores}
    curves = {run.name: learning_curves(run, list(learning.scores)) for entry in entries for run in entry.runs}
    shown = {
        name: title for name, title in titles.items() if any(len(own.get(name, ())) > 1 for own in curves.values())
    }
    if not shown:
        return None
    section = Section(
        title="Learning curves",
        text="Validation scores during the training of each run, on the sequences that it was validated on; these are "
        "few, and other ones than those of the tables. With several seeds, the line is their mean and the band its "
        "95% interval. A curve that still rises says that the budget ended the training.",
    )
    page.add_figure(section, f"{world}_learning_curves", _drawn(entries, curves, shown, learning))
    return section


def _drawn(
    entries: Sequence[Entry], curves: Mapping[str, Scores], titles: Mapping[str, str], learning: Learning
) -> Figure:
    across = min(_ACROSS, len(titles))
    figure = new_figure(4.1 * across + 2.4, 3.3 * -(-len(titles) // across) + 0.2)
    handles: dict[str, Any] = {}
    references = _references(entries)
    for panel, (score, title) in zip(panels(figure, len(titles), across), titles.items(), strict=True):
        styles = itertools.cycle(REFERENCE_STYLES)
        for name, label in learning.references.items():
            style = next(styles)
            if _is_number(value := references.get(name, {}).get(score)):
                panel.axhline(value, color=REFERENCE_COLOUR, ls=style, lw=1.2, label=label, zorder=1)
        if score == "loss":
            panel.set_yscale("log")
        lines = [_line(panel, entry, [curves[run.name].get(score, {}) for run in entry.runs]) for entry in entries]
        _fit(panel, [value for line in lines for value in line])
        panel.set_title(title, fontsize=10)
        panel.set_xlabel("step", fontsize=9)
        panel.tick_params(which="both", labelsize=8)
        panel.grid(axis="y", lw=0.3, color="#cccccc")
        handles |= {label: handle for handle, label in zip(*panel.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside right upper", fontsize=8, frameon=False)
    return figure


def _line(panel: Any, entry: Entry, seeds: Sequence[Points]) -> list[float]:
    """Through the steps at which all seeds that have this score were validated; returns what it goes through."""
    seeds = [points for points in seeds if points]
    steps = sorted(set.intersection(*(set(points) for points in seeds))) if seeds else []
    if not steps:
        return []
    cells = [Cell(values=tuple(points[step] for points in seeds)) for step in steps]
    means = [cell.mean or 0.0 for cell in cells]
    panel.plot(steps, means, color=entry.colour, lw=1.6, label=entry.label, zorder=3)
    if len(seeds) > 1:
        halves = [cell.half_width or 0.0 for cell in cells]
        low = [mean - half for mean, half in zip(means, halves, strict=True)]
        high = [mean + half for mean, half in zip(means, halves, strict=True)]
        panel.fill_between(steps, low, high, color=entry.colour, alpha=0.15, lw=0)
    return means


def _fit(panel: Any, values: Sequence[float]) -> None:
    """To the lines, and what is not far from them: the interval of two seeds can be so wide that nothing else is seen,
    and a reference so far off.
    """
    if values and panel.get_yscale() == "log":
        panel.set_ylim(0.96 * min(values), 1.04 * max(values))
    elif values:
        margin = 0.25 * (max(values) - min(values)) or 0.01
        panel.set_ylim(min(values) - margin, max(values) + margin)


def _references(entries: Sequence[Entry]) -> Mapping[str, Any]:
    """Of the first run that has them: runs that are compared were validated on the same data, or say little."""
    for run in (run for entry in entries for run in entry.runs):
        for record in _records(run, "references"):
            return {name: found for name, found in record.items() if isinstance(found, dict)}
    return {}


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
