"""Results of battle models, and their tables, after the paper's tables 4 to 7 and 1.

The paper's own StarCraft II numbers, copied from its tables into `paper.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from s2rm_data.evaluation.candidates import Entry
from s2rm_data.evaluation.tables import Comparison, Reference, Table, compare
from s2rm_data.generators.sc2.evaluation.example_images import PolarExample


@cache
def paper_tables() -> dict[str, Any]:
    text = resources.files("s2rm_data.generators.sc2.evaluation").joinpath("paper.json").read_text("utf-8")
    tables: dict[str, Any] = json.loads(text)
    return tables


def paper_robustness(score: str, active_percent: int) -> Mapping[str, float]:
    """By model, on the validation set of the training scenarios; empty where the paper gives no number."""
    table = paper_tables()["robustness"].get(score, {"scores": {}})
    return table["scores"].get(str(active_percent), {})


def paper_models() -> list[str]:
    return list(paper_tables()["ood"]["scores"]["1s2z"])


# The paper's names.
SCORES = {
    "ut_f1": "UT-F1",
    "ut_f1_units": "UT-F1, units only",
    "fm_f1": "FM-F1",
    "nmse": "NMSE",
    "ll": "LL",
}
MEANINGS = (
    "UT-F1 is the F1 score of the unit types, a mean over the types that occur; the paper does not say whether it "
    "counts ‘nothing there’ as a type, so it is given with and without (units only). FM-F1 is the F1 score of the "
    "friendly markers, NMSE the negative mean squared error of health, energy, cooldown and shield, and LL the "
    "log-likelihood of the whole image."
)
_MAIN = "fm_f1"


@dataclass(frozen=True, kw_only=True)
class BattleResults:
    """`robustness` by percent of active agents, over all `val_groups`; `unseen` by test scenario, all agents active;
    `episodes` by group, and `test_groups` by scenario; `examples` by group."""

    val_groups: Sequence[str]
    test_groups: Mapping[str, str]
    episodes: Mapping[str, int]
    robustness: Mapping[int, Comparison]
    unseen: Mapping[str, Comparison]
    examples: Mapping[str, PolarExample]

    def to_json(self) -> dict[str, Any]:
        return {
            "val_groups": list(self.val_groups),
            "episodes": dict(self.episodes),
            "robustness": {str(percent): found.to_json() for percent, found in self.robustness.items()},
            "unseen": {scenario: found.to_json() for scenario, found in self.unseen.items()},
        }


def robustness_tables(
    results: BattleResults, entries: Sequence[Entry], references: Mapping[str, Reference], world: str
) -> list[Table]:
    scenarios = ", ".join(path.split("/")[1] for path in results.val_groups)
    episodes = sum(results.episodes[path] for path in results.val_groups)
    everyone = all(_trained(entries, path) == (True,) for path in results.val_groups)
    which = "the training scenarios" if everyone else "scenarios that not every model was trained on"
    tables = []
    for score, title in SCORES.items():
        columns = {f"{p}%": found.column(score, paper_robustness(score, p)) for p, found in results.robustness.items()}
        table = Table(
            name=f"{world}_robustness_{score}",
            title=f"{title} by share of active agents",
            caption=f"Validation episodes of {which} ({scenarios}), {episodes} in all, pooled.",
            corner="active agents",
            columns=tuple(columns),
            rows=compare(entries, columns, references, paper_models()),
            digits=4,
            world=world,
            short=("one_step", "robustness") if score == _MAIN else (),
        )
        tables.append(table)
    return tables


def unseen_tables(
    results: BattleResults, entries: Sequence[Entry], references: Mapping[str, Reference], world: str
) -> list[Table]:
    """Test scenarios, which no model should have been trained on, one table each."""
    tables = []
    for scenario, found in results.unseen.items():
        paper = paper_tables()["ood"]["scores"].get(scenario, {})
        numbers = {score: {model: x[score] for model, x in paper.items() if score in x} for score in SCORES}
        columns = {title: found.column(score, numbers[score]) for score, title in SCORES.items()}
        table = Table(
            name=f"{world}_unseen_{scenario}",
            title=_scenario_title(scenario, entries, f"{world}/{scenario}/train"),
            caption=f"{results.episodes[results.test_groups[scenario]]} test episodes, all agents active.",
            corner="metric",
            columns=tuple(columns),
            rows=compare(entries, columns, references, paper_models()),
            digits=4,
            world=world,
        )
        tables.append(table)
    return tables


def _trained(entries: Sequence[Entry], path: str) -> tuple[bool, ...]:
    """Whether the runs were trained on a group: (True,), (False,), or both."""
    return tuple(sorted({path in run.groups for entry in entries for run in entry.runs}))


def _scenario_title(scenario: str, entries: Sequence[Entry], path: str) -> str:
    trained = _trained(entries, path)
    if True not in trained:
        return f"Unseen scenario {scenario}"
    return f"Scenario {scenario}, which {'some' if False in trained else 'the'} models were trained on"
