"""Learning curves of runs that are evaluated together: read from their logs, which are not trusted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from s2rm_data.core.errors import S2RMWarning
from s2rm_data.core.registry import WORLDS
from s2rm_data.evaluation.candidates import entries_of
from s2rm_data.evaluation.curves import learning_curve_section, learning_curves
from s2rm_data.evaluation.report import Page
from s2rm_data.evaluation.runs import Look, Run

REFERENCES = {"kind": "references", "last_seen": {"f1": 0.5}, "copy_previous": {"f1": 0.67}}


def run(folder: Path | None, records: list[Any] = (), *, seed: int = 0, label: str = "S2GRU") -> Run:
    name = f"{label}-{seed}"
    if folder is not None:
        folder = folder / name
        folder.mkdir()
        (folder / "log.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    look = Look(title=label, colour="#d55e00")
    return Run(name=name, label=label, model_name=label, world="bballs", model=None, look=look, seed=seed, path=folder)


def validated(step: Any, f1: Any) -> dict[str, Any]:
    return {"kind": "validation", "step": step, "loss": 0.3, "f1": f1}


def drawn(runs: list[Run], folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The figure that the section gets, or None."""
    figures: list[Any] = []
    page = Page(folder=folder, store=None, entries=entries_of(runs), drawn={})
    monkeypatch.setattr(Page, "add_figure", lambda self, section, name, figure: figures.append((name, figure)))
    section = learning_curve_section(page.entries, WORLDS.load("bballs").learning(), "bballs", page)
    assert (section is None) == (not figures)
    return figures[0] if figures else None


def test_a_line_is_the_mean_of_the_seeds_at_the_steps_they_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [
        run(tmp_path, [REFERENCES, validated(10, 0.2), validated(20, 0.4)], seed=0),
        run(tmp_path, [REFERENCES, validated(10, 0.4), validated(20, 0.5), validated(30, 0.9)], seed=1),
    ]
    name, figure = drawn(runs, tmp_path, monkeypatch)
    assert name == "bballs_learning_curves"
    loss, f1 = figure.axes[:2]
    assert loss.get_title() == "loss" and loss.get_yscale() == "log"
    lines = {line.get_label(): line for line in f1.lines}
    assert list(lines["S2GRU"].get_xdata()) == [10, 20]
    assert list(lines["S2GRU"].get_ydata()) == pytest.approx([0.3, 0.45])
    levels = sorted(line.get_ydata()[0] for label, line in lines.items() if label != "S2GRU")
    assert levels == [0.5, 0.67]
    assert f1.get_ylim()[1] < 1, "the interval of two seeds must not stretch the axis"


def test_every_line_is_within_the_axes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [
        run(tmp_path, [validated(10, 0.5), validated(20, 0.6)], seed=0),
        run(tmp_path, [validated(10, 0.55), validated(20, 0.65)], seed=1),
        run(tmp_path, [validated(10, 0.2), validated(20, 0.9)], label="TTO"),
    ]
    _, figure = drawn(runs, tmp_path, monkeypatch)
    bottom, top = figure.axes[1].get_ylim()
    assert bottom < 0.2 and top > 0.9


def test_one_validation_makes_no_curve_and_models_from_outside_have_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert drawn([run(tmp_path, [validated(10, 0.2)])], tmp_path, monkeypatch) is None
    assert drawn([run(None)], tmp_path, monkeypatch) is None
    assert learning_curves(run(None), ["f1"]) == {}


@pytest.mark.parametrize(
    "strange", [7, None, [], {"kind": []}, validated("x", 0.5), validated(-1, 0.5), validated(5, "x")]
)
def test_records_that_make_no_sense_are_left_out(tmp_path: Path, strange: Any) -> None:
    found = learning_curves(run(tmp_path, [strange, validated(10, 0.25), validated(20, True)]), ["f1"])
    assert found["f1"] == {10: 0.25}


def test_numbers_that_are_not_finite_are_left_out(tmp_path: Path) -> None:
    assert learning_curves(run(tmp_path, [validated(1, float("nan")), validated(2, float("inf"))]), ["f1"]).keys() == {
        "loss"
    }


def test_a_damaged_log_costs_the_curve_only_and_is_named(tmp_path: Path) -> None:
    damaged = run(tmp_path, [validated(10, 0.2)])
    assert damaged.path is not None
    (damaged.path / "log.jsonl").write_text('{"kind": \n')
    with pytest.warns(S2RMWarning, match=r"no learning curve of S2GRU-0: .*log\.jsonl is damaged"):
        assert learning_curves(damaged, ["f1"]) == {}
