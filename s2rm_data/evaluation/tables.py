"""Results as tables: one row per model (mean over its seeds, with an interval), one per reference, the paper's beside.

A model is compared with every reference in every column; where it does not beat one, the row says so."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from s2rm_data.core.errors import UnknownNameError, did_you_mean
from s2rm_data.evaluation.candidates import Entry
from s2rm_data.evaluation.runs import look_of

Scores = Mapping[str, float]
LEAST_RANGE = 0.05  # between a copy and a ceiling, for a share of it to mean something


@dataclass(frozen=True, kw_only=True)
class Reference:
    """`direction`: a model should beat what stands `below`; what stands `above` is told more than a model is. `share`:
    of what is attainable that its score stands for, from 0 (a copy) to 1 (a ceiling); None for neither."""

    title: str
    direction: str = "below"
    share: float | None = None


@dataclass(frozen=True, kw_only=True)
class Column:
    """One number of each run and of each reference, by name, and the paper's by model."""

    runs: Mapping[str, float]
    references: Mapping[str, float]
    paper: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """All scores of runs and of references, by name, on the same data."""

    runs: Mapping[str, Scores]
    references: Mapping[str, Scores]

    def column(self, score: str, paper: Mapping[str, float] | None = None) -> Column:
        runs, references = ({n: s[score] for n, s in of.items() if score in s} for of in (self.runs, self.references))
        return Column(runs=runs, references=references, paper=paper or {})

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Cell:
    """`values`: one per seed. `paper`: the paper's number. `against`: of the seeds whose mean the values are less."""

    values: tuple[float, ...] = ()
    paper: float | None = None
    against: tuple[float, ...] = ()

    @property
    def mean(self) -> float | None:
        return sum(self.values) / len(self.values) if self.values else None

    @property
    def half_width(self) -> float | None:
        """Of the 95% interval of the mean over seeds (Student's t; of a gain, Welch's); None with a single one."""
        from scipy.stats import sem, t

        samples = [values for values in (self.values, self.against) if len(values) > 1]
        if len(self.values) < 2:
            return None
        squares = [float(sem(values)) ** 2 for values in samples]
        if not sum(squares):
            return 0.0
        freedom = sum(squares) ** 2 / sum(s**2 / (len(v) - 1) for s, v in zip(squares, samples, strict=True))
        return float(t.ppf(0.975, freedom) * sum(squares) ** 0.5)


@dataclass(frozen=True, kw_only=True)
class Row:
    """`kind` is model, reference or paper. `model`: its title, which several configs, and the paper, share. `oracle`:
    it reads what it predicts, and is not called the best. `memoryless`: a trained reference, over which others gain.
    `above`, `share`: see `Reference`."""

    label: str
    kind: str
    cells: tuple[Cell, ...]
    model: str = ""
    colour: str = ""
    marker: str = "x"
    oracle: bool = False
    memoryless: bool = False
    above: bool = False
    share: float | None = None
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Table:
    """Larger is better in every column. `in_distribution`: the columns of what the models were trained on. `counts`:
    the columns of whole numbers. `short`: names under which it is found beside its own, if no other table evaluated
    with it has them."""

    name: str
    title: str
    caption: str
    corner: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    digits: int = 3
    in_distribution: tuple[str, ...] = ()
    counts: tuple[str, ...] = ()
    world: str = ""
    short: tuple[str, ...] = ()

    def __getitem__(self, at: tuple[str, str]) -> Cell:
        """The cell of (row, column), by their labels."""
        cells = {(row.label, name): row.cells[n] for row in self.rows for n, name in enumerate(self.columns)}
        if at not in cells:
            rows = ", ".join(row.label for row in self.rows)
            raise UnknownNameError(f"{self.name} has no cell {at}; rows: {rows}; columns: {', '.join(self.columns)}")
        return cells[at]

    def best(self, column: int) -> float | None:
        """Of our models, oracles left out, as the paper prints in bold; None if there are not two to compare."""
        found = [row.cells[column].mean for row in self.rows if row.kind == "model" and not row.oracle]
        means = [mean for mean in found if mean is not None]
        return max(means) if len(means) > 1 else None

    def is_best(self, row: Row, column: int) -> bool:
        best, compared = self.best(column), row.kind == "model" and not row.oracle and bool(row.note)
        return compared and best is not None and row.cells[column].mean == best

    def ahead(self, row: Row) -> tuple[int, int]:
        """In how many columns the row beats every reference from below, and in how many it was compared."""
        won = compared = 0
        for column, cell in enumerate(row.cells):
            limits = [r.cells[column].mean for r in self.rows if r.kind == "reference" and not r.above]
            known = [limit for limit in limits if limit is not None]
            if cell.mean is not None and known:
                compared += 1
                won += cell.mean > max(known)
        return won, compared

    def to_csv(self) -> str:
        """One line per cell."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["row", "kind", "column", "mean", "interval_half_width", "runs", "values", "paper", "note"])
        for row in self.rows:
            for column, cell in zip(self.columns, row.cells, strict=True):
                numbers = (cell.mean, cell.half_width, cell.paper)
                mean, half, paper = ("" if number is None else repr(number) for number in numbers)
                values = (len(cell.values), ";".join(map(repr, cell.values)))
                writer.writerow([row.label, row.kind, column, mean, half, *values, paper, row.note])
        return text.getvalue()

    def to_markdown(self) -> str:
        """Title, caption and rows; the best model in bold, the paper's number in brackets."""
        rows = [[row.label, *(self._cell_text(row, n) for n in range(len(self.columns)))] for row in self.rows]
        lines = map(markdown_line, ([self.corner, *self.columns], ["---"] * (1 + len(self.columns)), *rows))
        return "\n".join([f"### {self.title}", "", self.caption, "", *lines, ""])

    def _cell_text(self, row: Row, column: int) -> str:
        cell, digits = row.cells[column], 0 if self.columns[column] in self.counts else self.digits
        words = [] if cell.mean is None else [f"{cell.mean:.{digits}f}"]
        if self.is_best(row, column):
            words = [f"**{words[0]}**"]
        if cell.half_width is not None:
            words.append(f"± {cell.half_width:.{digits}f}")
        if cell.paper is not None:
            words.append(f"({cell.paper:.{digits}f})")
        return " ".join(words) or "–"

    def _repr_html_(self) -> str:
        from s2rm_data.evaluation.report import table_html

        return table_html(self)


def markdown_line(words: Sequence[str]) -> str:
    """One row of a table in Markdown."""
    return "| " + " | ".join(word.replace("|", r"\|") for word in words) + " |"


class Tables(Mapping[str, Table]):
    """Tables by name, and the main ones also by a short name that no other has (`one_step`, or `WORLD_one_step`)."""

    def __init__(self, tables: Sequence[Table]) -> None:
        self._tables = {table.name: table for table in tables}
        short = [(name, table) for table in tables for name in table.short]
        alone = [name for name, _ in short]
        self._short = {name: table for name, table in short if alone.count(name) == 1}
        self._short |= {f"{table.world}_{name}": table for name, table in short}

    def __getitem__(self, name: str) -> Table:
        found = self._tables.get(name) or self._short.get(name)
        if found is None:
            names = [*self._tables, *self._short]
            others = did_you_mean(name, names, f"there are {', '.join(names)}")
            raise UnknownNameError(f"there is no table {name!r}{others}")
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)

    def _repr_html_(self) -> str:
        return "".join(table._repr_html_() for table in self._tables.values())


def compare(
    entries: Sequence[Entry],
    columns: Mapping[str, Column],
    references: Mapping[str, str | Reference],
    paper_models: Sequence[str] = (),
) -> tuple[Row, ...]:
    """Rows: models in the paper's order, then references (by name; a title alone stands below; trained ones last), then
    `paper_models` not run."""
    described = {name: Reference(title=r) if isinstance(r, str) else r for name, r in references.items()}
    values = {name: [column.references.get(name) for column in columns.values()] for name in described}
    trained = {entry.label: _cells(entry, columns) for entry in entries if entry.look.reference}
    limits = [(r.title, values[name]) for name, r in described.items() if r.direction == "below"]
    limits += [(label, [cell.mean for cell in cells]) for label, cells in trained.items()]
    rows = []
    for entry in (entry for entry in entries if not entry.look.reference):
        cells, look = _cells(entry, columns), entry.look
        shown: dict[str, Any] = {"colour": entry.colour, "marker": look.marker, "oracle": look.oracle}
        note = _note(cells, columns, limits)
        rows.append(Row(label=entry.label, model=look.title, kind="model", cells=cells, note=note, **shown))
    for name, r in described.items():
        cells = tuple(Cell(values=() if value is None else (value,)) for value in values[name])
        if r.direction == "below" or any(cell.values for cell in cells):
            above = r.direction == "above"
            rows.append(Row(label=r.title, kind="reference", cells=cells, above=above, share=r.share))
    rows += [Row(label=label, kind="reference", cells=cells, memoryless=True) for label, cells in trained.items()]
    for model in (m for m in paper_models if m not in [entry.paper_name for entry in entries]):
        cells = tuple(Cell(paper=column.paper.get(model)) for column in columns.values())
        if any(cell.paper is not None for cell in cells):
            look = look_of(model)
            label = f"{look.title} (not run here)"
            rows.append(Row(label=label, model=look.title, kind="paper", cells=cells, colour=look.colour))
    return tuple(rows)


def _cells(entry: Entry, columns: Mapping[str, Column]) -> tuple[Cell, ...]:
    found = [[column.runs.get(run.name) for run in entry.runs] for column in columns.values()]
    papers = [column.paper.get(entry.paper_name) for column in columns.values()]
    values = [tuple(v for v in own if v is not None) for own in found]
    return tuple(Cell(values=own, paper=paper) for own, paper in zip(values, papers, strict=True))


def gains(tables: Sequence[Table]) -> list[Table]:
    """Of each table that has a trained model without memory: what every other one adds to it."""
    found = []
    for table in tables:
        rows = [row for row in table.rows if row.kind == "model"]
        if rows and (without := next((row for row in table.rows if row.memoryless), None)):
            caption = f"Scores less the mean of {without.label}, with intervals over the seeds of both."
            found.append(_changed(table, "gain", "gain over no memory", caption, rows, _gain, without))
    return found


def shares(tables: Sequence[Table]) -> list[Table]:
    """Of each table that has both: how far each model comes from what stands for 0 to what stands for 1."""
    found = []
    for table in tables:
        rows = [row for row in table.rows if row.kind == "model" or row.memoryless]
        low, high = (next((row for row in table.rows if row.share == end), None) for end in (0.0, 1.0))
        if low and high:
            caption = f"(model - low) / (high - low), where low is: {low.label}; high: {high.label}."
            found.append(_changed(table, "share", "share of what is attainable", caption, rows, _share, low, high))
    return found


def _changed(
    table: Table, name: str, title: str, caption: str, rows: Sequence[Row], change: Callable[..., Cell], *others: Row
) -> Table:
    """A table of some of the rows, each cell changed by those of `others` in its column."""
    cells = [tuple(map(change, row.cells, *(other.cells for other in others))) for row in rows]
    changed = tuple(replace(row, note="", cells=own) for row, own in zip(rows, cells, strict=True))
    described: dict[str, Any] = {"name": f"{table.name}_{name}", "title": f"{table.title}: {title}", "caption": caption}
    return replace(table, **described, rows=changed, short=())


def _share(cell: Cell, low: Cell, high: Cell) -> Cell:
    if low.mean is None or high.mean is None or high.mean - low.mean < LEAST_RANGE:
        return Cell()
    return Cell(values=tuple((value - low.mean) / (high.mean - low.mean) for value in cell.values))


def _gain(cell: Cell, without: Cell) -> Cell:
    mean = without.mean
    return Cell() if mean is None else Cell(values=tuple(v - mean for v in cell.values), against=without.values)


def _note(cells: Sequence[Cell], columns: Iterable[str], limits: Sequence[tuple[str, Sequence[float | None]]]) -> str:
    """Which references (title, values) the model does not beat, and in which columns."""
    failures = []
    for title, values in limits:
        known = [(c, cell.mean, v) for c, cell, v in zip(columns, cells, values, strict=True) if v is not None]
        lost = {c: mean <= v for c, mean, v in known if mean is not None}
        if any(lost.values()):
            where = "everywhere" if all(lost.values()) else "at " + ", ".join(c for c in lost if lost[c])
            failures.append(f"{title} ({where})")
    return f"does not beat: {'; '.join(failures)}" if failures else "beats every reference"
