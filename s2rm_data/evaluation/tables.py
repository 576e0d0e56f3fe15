"""Results as tables: a row a model (mean over its seeds, with an interval) and a row a reference, the paper's beside.

A model is compared with every reference in every column; where it does not beat one, the row says so.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from s2rm_data.evaluation import balls, battles, paper, rollouts
from s2rm_data.evaluation.runs import TITLES

# 97.5% quantiles of Student's t for 1, 2, ... degrees of freedom; beyond the last the normal's.
_STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131)
BALL_METRICS = {
    "f1": "F1",
    "balanced_accuracy": "Balanced accuracy",
    "f1_moving": "F1 without the fixed ball",
    "balanced_accuracy_moving": "Balanced accuracy without the fixed ball",
}


@dataclass(frozen=True, kw_only=True)
class Cell:
    """`low` and `high`: 95% interval of the mean over seeds, None with a single one. `paper`: the paper's number."""

    values: tuple[float, ...] = ()
    paper: float | None = None

    @property
    def mean(self) -> float | None:
        return sum(self.values) / len(self.values) if self.values else None

    @property
    def half_width(self) -> float | None:
        count = len(self.values)
        if count < 2 or self.mean is None:
            return None
        variance = sum((value - self.mean) ** 2 for value in self.values) / (count - 1)
        quantile = _STUDENT[count - 2] if count - 2 < len(_STUDENT) else 1.96
        return quantile * math.sqrt(variance / count)


@dataclass(frozen=True, kw_only=True)
class Row:
    label: str
    kind: str  # model, reference or paper
    cells: tuple[Cell, ...]
    model: str = ""
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Table:
    """Larger is better in every column. `in_distribution`: the column of what the models were trained on."""

    name: str
    title: str
    caption: str
    corner: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    digits: int = 3
    in_distribution: tuple[str, ...] = field(default=())

    def best(self, column: int) -> float | None:
        """Of our models, the oracle left out, as the paper prints in bold; None if there are not two to compare."""
        found = [r.cells[column].mean for r in self.rows if r.kind == "model" and r.model != "tto"]
        means = [mean for mean in found if mean is not None]
        return max(means) if len(means) > 1 else None

    def ahead(self, row: Row) -> tuple[int, int]:
        """In how many columns the row is above every reference, and in how many it was compared."""
        won = compared = 0
        for column, cell in enumerate(row.cells):
            limits = [r.cells[column].mean for r in self.rows if r.kind == "reference"]
            known = [limit for limit in limits if limit is not None]
            if cell.mean is not None and known:
                compared += 1
                won += cell.mean > max(known)
        return won, compared

    def to_csv(self) -> str:
        """One line a cell."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["row", "kind", "column", "mean", "interval_half_width", "runs", "values", "paper", "note"])
        for row in self.rows:
            for column, cell in zip(self.columns, row.cells, strict=True):
                values = ";".join(repr(value) for value in cell.values)
                written = ["" if v is None else repr(v) for v in (cell.mean, cell.half_width)]
                shown = "" if cell.paper is None else repr(cell.paper)
                writer.writerow([row.label, row.kind, column, *written, len(cell.values), values, shown, row.note])
        return text.getvalue()


Getter = Callable[[str, str, str], float | None]  # (column, "runs" or "references", name) -> score


def _rows(
    results: dict[str, Any],
    task: str,
    columns: Sequence[str],
    get: Getter,
    references: Mapping[str, str],
    of_paper: Callable[[str, str], float | None] | None = None,
    skip: Sequence[str] = (),
) -> tuple[Row, ...]:
    """Models in the paper's order, then references, then the paper's models that were not run."""
    seeds: dict[str, list[str]] = {}
    for name, run in results["runs"].items():
        if run["task"] == task and run["model"] not in skip:
            seeds.setdefault(run["label"], []).append(name)
    models = {label: results["runs"][names[0]]["model"] for label, names in seeds.items()}
    order = list(TITLES)
    ordered = sorted(seeds, key=lambda label: (order.index(models[label]) if models[label] in order else 99, label))
    limits = {name: [get(column, "references", name) for column in columns] for name in references}
    rows = []
    for label in ordered:
        cells = []
        for column in columns:
            found = [get(column, "runs", name) for name in seeds[label]]
            number = of_paper(column, models[label]) if of_paper else None
            cells.append(Cell(values=tuple(v for v in found if v is not None), paper=number))
        note = _note(cells, columns, limits, references)
        rows.append(Row(label=label, kind="model", cells=tuple(cells), model=models[label], note=note))
    for name, title in references.items():
        cells = [Cell(values=() if value is None else (value,)) for value in limits[name]]
        rows.append(Row(label=title, kind="reference", cells=tuple(cells)))
    if of_paper:
        for model in (m for m in paper.models() if m not in models.values()):
            cells = [Cell(paper=of_paper(column, model)) for column in columns]
            if any(cell.paper is not None for cell in cells):
                rows.append(Row(label=f"{TITLES[model]} (not run here)", kind="paper", cells=tuple(cells), model=model))
    return tuple(rows)


def _note(
    cells: Sequence[Cell],
    columns: Sequence[str],
    limits: Mapping[str, Sequence[float | None]],
    references: Mapping[str, str],
) -> str:
    """Which references the model does not beat, and in which columns."""
    failures = []
    for name, values in limits.items():
        pairs = list(zip(columns, cells, values, strict=True))
        lost = [c for c, cell, v in pairs if v is not None and cell.mean is not None and cell.mean <= v]
        compared = [c for c, cell, v in pairs if v is not None and cell.mean is not None]
        if lost:
            where = "everywhere" if len(lost) == len(compared) else "at " + ", ".join(lost)
            failures.append(f"{references[name]} ({where})")
    return f"does not beat: {'; '.join(failures)}" if failures else "beats every reference"


def ball_tables(results: dict[str, Any], trained_on: int | None) -> list[Table]:
    """One-step scores by ball count, one table a metric."""
    section = results["bballs"]
    splits = {str(section["balls"][split]): split for split in section["one_step"]}
    count = next(iter(section["sequences"].values()))
    known = (str(trained_on),) if trained_on is not None and str(trained_on) in splits else ()

    def getter(metric: str) -> Getter:
        return lambda column, kind, name: section["one_step"][splits[column]][kind].get(name, {}).get(metric)

    return [
        Table(
            name=f"bballs_one_step_{metric}",
            title=f"{title} of one-step predictions, by number of balls",
            caption=f"Pooled over {count} sequences a ball count, all steps, queries and pixels; all views given.",
            corner="balls",
            columns=tuple(splits),
            rows=_rows(results, "bballs", tuple(splits), getter(metric), balls.REFERENCES),
            in_distribution=known,
        )
        for metric, title in BALL_METRICS.items()
    ]


def dropped_view_tables(results: dict[str, Any]) -> list[Table]:
    """F1 by fraction of views, a table a ball count."""
    section = results["bballs"]
    tables = []
    for split, by_fraction in section["dropped_views"].items():
        columns = {f"{100 * (1 - float(fraction)):.0f}%": fraction for fraction in by_fraction}

        def get(column: str, kind: str, name: str, split: str = split, columns: dict[str, str] = columns) -> Any:
            return section["dropped_views"][split][columns[column]][kind].get(name, {}).get("f1")

        number = section["balls"][split]
        tables.append(
            Table(
                name=f"bballs_views_f1_{split}",
                title=f"F1 by share of the views that is left: {number} ball{'s' * (number > 1)}",
                caption=f"The first {_smaller(results, split)} sequences; an exact share of the views of every frame.",
                corner="views left",
                columns=tuple(columns),
                rows=_rows(results, "bballs", tuple(columns), get, balls.REFERENCES),
            )
        )
    return tables


def _smaller(results: dict[str, Any], split: str) -> int:
    wanted = results["config"]["dropped_sequences"]
    there = results["bballs"]["sequences"][split]
    return int(there if wanted is None else min(wanted, there))


def rollout_tables(results: dict[str, Any]) -> list[Table]:
    """F1 at some steps of the horizon, a table a ball count."""
    section, tables = results["bballs"], []
    for split, rolled in section["rollouts"].items():
        horizon = len(next(iter(rolled["references"].values()))["f1"])
        steps = {str(step): step - 1 for step in sorted({1, 5, 10, 15, 20, 25, horizon}) if step <= horizon}

        def get(column: str, kind: str, name: str, rolled: Any = rolled, steps: dict[str, int] = steps) -> Any:
            found = rolled[kind].get(name)
            return None if found is None else found["f1"][steps[column]]

        number = section["balls"][split]
        tables.append(
            Table(
                name=f"bballs_rollout_f1_{split}",
                title=f"F1 of roll-outs by steps fed back: {number} ball{'s' * (number > 1)}",
                caption=f"{rolled['sequences']} sequences, {rolled['prompt_steps']} prompt steps; stitched pictures.",
                corner="step of the roll-out",
                columns=tuple(steps),
                rows=_rows(results, "bballs", tuple(steps), get, rollouts.REFERENCES, skip=("tto",)),
            )
        )
    return tables


def robustness_tables(results: dict[str, Any]) -> list[Table]:
    """The paper's tables sc2_fmf1 to sc2_loss: a metric by the share of active agents."""
    section = results["sc2"]
    columns = {f"{percent}%": percent for percent in section["robustness"]}
    scenarios = ", ".join(path.split("/")[1] for path in section["val_groups"])
    episodes = sum(section["episodes"][path] for path in section["val_groups"])
    runs = sum(run["task"] == "sc2" for run in results["runs"].values())
    same = all(_trained(results, path) == runs for path in section["val_groups"])
    which = "the training scenarios" if same else "scenarios that not every model was trained on"

    def getter(metric: str) -> Getter:
        return lambda column, kind, name: section["robustness"][columns[column]][kind].get(name, {}).get(metric)

    def of_paper(metric: str) -> Callable[[str, str], float | None]:
        return lambda column, model: paper.robustness(metric, int(columns[column]), model)

    return [
        Table(
            name=f"sc2_robustness_{metric}",
            title=f"{title} by share of active agents",
            caption=f"Validation episodes of {which} ({scenarios}), {episodes} in all, pooled.",
            corner="active agents",
            columns=tuple(columns),
            rows=_rows(results, "sc2", tuple(columns), getter(metric), battles.REFERENCES, of_paper(metric)),
            digits=4,
        )
        for metric, title in battles.METRICS.items()
    ]


def unseen_tables(results: dict[str, Any]) -> list[Table]:
    """The paper's table sc2_1s2z: test scenarios, which no model should have been trained on, a table each."""
    section, tables = results["sc2"], []
    names = {title: metric for metric, title in battles.METRICS.items()}
    for scenario in section["unseen"]:

        def get(column: str, kind: str, name: str, scenario: str = scenario) -> Any:
            return section["unseen"][scenario][kind].get(name, {}).get(names[column])

        def of_paper(column: str, model: str, scenario: str = scenario) -> float | None:
            return paper.unseen_scenario(scenario, names[column], model)

        tables.append(
            Table(
                name=f"sc2_unseen_{scenario}",
                title=_scenario_title(results, scenario),
                caption=f"{section['episodes'][f'sc2/{scenario}/test']} test episodes, all agents active.",
                corner="metric",
                columns=tuple(names),
                rows=_rows(results, "sc2", tuple(names), get, battles.REFERENCES, of_paper),
                digits=4,
            )
        )
    return tables


def _trained(results: dict[str, Any], path: str) -> int:
    """How many of the StarCraft II runs had that group."""
    return sum(path in run["groups"] for run in results["runs"].values() if run["task"] == "sc2")


def _scenario_title(results: dict[str, Any], scenario: str) -> str:
    seen = _trained(results, f"sc2/{scenario}/train")
    if not seen:
        return f"Unseen scenario {scenario}"
    everyone = seen == sum(run["task"] == "sc2" for run in results["runs"].values())
    return f"Scenario {scenario}, which {'the' if everyone else 'some'} models were trained on"


def enclave_table(results: dict[str, Any]) -> Table | None:
    found = results["enclaves"]
    if not found:
        return None
    columns = {
        "modules": "modules",
        "arena covered by any": "covered_share",
        "modules at a position": "modules_per_position",
        "largest part of one": "largest_share_of_one_module",
        "modules that cover nothing": "idle_modules",
    }
    rows = [
        Row(
            label="{label} on {task}, seed {seed}".format(**results["runs"][name]),
            kind="model",
            cells=tuple(Cell(values=(scores[key],)) for key in columns.values()),
            model=results["runs"][name]["model"],
        )
        for name, scores in found.items()
    ]
    return Table(
        name="enclaves",
        title="How the modules share the arena",
        caption="A module covers a position where Z(P(x), p) > 0.",
        corner="",
        columns=tuple(columns),
        rows=tuple(rows),
        digits=2,
    )
