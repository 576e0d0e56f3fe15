"""Tables as curves: one line per model with its interval over seeds, and references in grey.

The paper's numbers are drawn dashed, in panels of their own: they come from other data, and on a common axis a model
that has learned nothing can look better than them.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from s2rm_data.evaluation.tables import Row, Table
from s2rm_data.painting import new_figure, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure


REFERENCE_COLOUR = "#777777"
REFERENCE_STYLES = ((0, (1, 1)), (0, (4, 2)), (0, (6, 2, 1, 2)), (0, (2, 3)))


def draw_tables(tables: Sequence[Table], *, xlabel: str, titles: Sequence[str], columns: int | None = None) -> Figure:
    """One panel per table, and one more where the paper has numbers; one legend for all."""
    wanted = [(title, table, _draw) for title, table in zip(titles, tables, strict=True)]
    wanted += [(f"{title}: the paper", table, _draw_paper) for title, table, _ in wanted if _paper_values(table)]
    across = columns or len(tables)
    figure = new_figure(4.1 * across + 2.4, 3.3 * -(-len(wanted) // across) + 0.2)
    drawn = panels(figure, len(wanted), across)
    handles: dict[str, Any] = {}
    for panel, (title, table, draw) in zip(drawn, wanted, strict=True):
        _set_up(panel, table)
        draw(panel, table)
        panel.set_title(title, fontsize=10)
        panel.set_xlabel(xlabel, fontsize=9)
        handles |= {label: handle for handle, label in zip(*panel.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside right upper", fontsize=8, frameon=False)
    return figure


def _set_up(axes: Any, table: Table) -> None:
    axes.set_xticks(range(len(table.columns)), table.columns, fontsize=8)
    axes.tick_params(axis="y", labelsize=8)
    axes.grid(axis="y", lw=0.3, color="#cccccc")
    axes.set_xlim(-0.5, len(table.columns) - 0.5)


def _draw(axes: Any, table: Table) -> None:
    places = list(range(len(table.columns)))
    for column in table.in_distribution:
        place = table.columns.index(column)
        axes.axvspan(place - 0.5, place + 0.5, color="#f1eee0", zorder=0, label="trained on")
    styles = itertools.cycle(REFERENCE_STYLES)
    for row in table.rows:
        if row.kind == "reference":
            _line(axes, row, places, color=REFERENCE_COLOUR, ls=next(styles), lw=1.2, zorder=1)
        elif row.kind == "model":
            _line(axes, row, places, color=row.colour, marker=row.marker, ms=5, lw=1.6, zorder=3)
    _fit(axes, [cell.mean for row in table.rows for cell in row.cells if cell.mean is not None])


def _draw_paper(axes: Any, table: Table) -> None:
    for row in {row.model: row for row in table.rows}.values():  # once, however many configs of a model were run
        _paper_line(axes, row, list(range(len(table.columns))))
    _fit(axes, _paper_values(table))


def _paper_values(table: Table) -> list[float]:
    return [cell.paper for row in table.rows for cell in row.cells if cell.paper is not None]


def _fit(axes: Any, values: Sequence[float]) -> None:
    """To the lines: the interval of two seeds can be so wide that nothing else would be seen."""
    if values:
        margin = 0.06 * (max(values) - min(values)) or 0.01
        axes.set_ylim(min(values) - margin, max(values) + margin)


def _line(axes: Any, row: Row, places: Sequence[int], **style: Any) -> None:
    points = [(x, cell.mean, cell.half_width) for x, cell in zip(places, row.cells, strict=True)]
    points = [point for point in points if point[1] is not None]
    if not points:
        return
    xs, means, halves = zip(*points, strict=True)
    axes.plot(xs, means, label=row.label, **style)
    if any(half is not None for half in halves):
        low = [mean - (half or 0) for mean, half in zip(means, halves, strict=True)]
        high = [mean + (half or 0) for mean, half in zip(means, halves, strict=True)]
        axes.fill_between(xs, low, high, color=style["color"], alpha=0.15, lw=0)


def _paper_line(axes: Any, row: Row, places: Sequence[int]) -> None:
    points = [(x, cell.paper) for x, cell in zip(places, row.cells, strict=True) if cell.paper is not None]
    if points:
        axes.plot(
            *zip(*points, strict=True),
            color=row.colour or REFERENCE_COLOUR,
            ls="--",
            lw=1.0,
            alpha=0.8,
            label=f"paper: {row.model}",
            zorder=2,
        )
