from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from s2rm_data.evaluation import paper
from s2rm_data.evaluation.balls import REFERENCES
from s2rm_data.evaluation.report import Section, page
from s2rm_data.evaluation.tables import Cell, ball_tables, robustness_tables, unseen_tables


def results(**f1: list[float]) -> dict[str, Any]:
    """Two test sets; runs of the labels given with these scores on the second, and 0.3 on the first."""
    runs, scores = {}, {}
    for label, values in f1.items():
        for seed, value in enumerate(values):
            run = {"label": label.upper(), "model": label, "task": "bballs", "seed": seed, "parameters": 1}
            runs[f"{label}-{seed}"] = {**run, "groups": ["bballs/train"], "training": {"steps": 10}}
            scores[f"{label}-{seed}"] = value
    flat = dict.fromkeys(REFERENCES, 0.4)
    section = {
        "balls": {"test_1": 1, "test_3": 3},
        "sequences": {"test_1": 7, "test_3": 7},
        "one_step": {
            split: {
                "runs": {name: {"f1": value if split == "test_3" else 0.3} for name, value in scores.items()},
                "references": {name: {"f1": value} for name, value in flat.items()},
            }
            for split in ("test_1", "test_3")
        },
    }
    return {"runs": runs, "bballs": section, "package": "p", "store": "s"}


def test_intervals_are_student_s() -> None:
    values = (0.51, 0.58, 0.55)
    low, high = stats.t.interval(0.95, 2, loc=np.mean(values), scale=stats.sem(values))
    cell = Cell(values=values)
    assert cell.mean == pytest.approx(np.mean(values))
    assert cell.half_width == pytest.approx((high - low) / 2, rel=1e-3)
    assert Cell(values=(0.5,)).half_width is None
    assert Cell(values=tuple(range(40))).half_width == pytest.approx(1.96 * np.std(range(40), ddof=1) / 40**0.5)


def test_a_model_that_does_not_beat_a_reference_is_shown_as_such() -> None:
    table = ball_tables(results(lstm=[0.5, 0.6], s2gru=[0.2]), 3)[0]
    rows = {row.label: row for row in table.rows}
    assert rows["LSTM"].cells[1].values == (0.5, 0.6)
    assert "always off (at 1)" in rows["LSTM"].note
    assert "always off (everywhere)" in rows["S2GRU"].note
    assert (table.ahead(rows["LSTM"]), table.ahead(rows["S2GRU"])) == ((1, 2), (0, 2))
    assert table.best(1) == pytest.approx(0.55)
    assert [row.label for row in table.rows][:2] == ["S2GRU", "LSTM"]  # the paper's order
    assert table.in_distribution == ("3",)


def test_csv_holds_every_value() -> None:
    table = ball_tables(results(lstm=[0.5, 0.6]), None)[0]
    rows = list(csv.DictReader(io.StringIO(table.to_csv())))
    (cell,) = [row for row in rows if row["row"] == "LSTM" and row["column"] == "3"]
    assert cell["values"] == "0.5;0.6"
    assert float(cell["mean"]) == pytest.approx(0.55)
    assert len(rows) == 2 * (1 + len(REFERENCES))


def test_the_paper_s_numbers_stand_beside_ours() -> None:
    made = {
        "runs": {"a": {"label": "RMC", "model": "rmc", "task": "sc2", "seed": 0, "groups": []}},
        "sc2": {
            "unseen": {"1s2z": {"runs": {"a": {"ut_f1": 0.5}}, "references": {}}},
            "episodes": {"sc2/1s2z/test": 20},
        },
    }
    (table,) = unseen_tables(made)
    cells = {row.label: dict(zip(table.columns, row.cells, strict=True)) for row in table.rows}
    assert cells["RMC"]["UT-F1"].paper == 0.6839
    assert cells["RMC"]["UT-F1"].values == (0.5,)
    assert cells["S2GRU (not run here)"]["LL"].paper == -0.0233
    assert cells["RMC"]["UT-F1, units only"].paper is None
    assert table.best(0) is None  # nothing to compare it with


def test_the_paper_s_numbers_are_complete() -> None:
    assert paper.robustness("ll", 20, "tto") == -0.434099
    assert paper.robustness("ll", 25, "tto") is None
    for metric in ("fm_f1", "ut_f1", "nmse", "ll"):
        for percent in range(20, 101, 10):
            assert all(paper.robustness(metric, percent, model) is not None for model in paper.models())


def test_a_scenario_that_was_trained_on_is_not_called_unseen() -> None:
    made: dict[str, Any] = {
        "runs": {"a": {"task": "sc2", "model": "rmc", "label": "RMC", "groups": ["sc2/2s3z/train", "sc2/2s3z/val"]}},
        "sc2": {
            "unseen": {s: {"runs": {}, "references": {}} for s in ("2s3z", "1s2z")},
            "episodes": {"sc2/2s3z/test": 2, "sc2/1s2z/test": 2, "sc2/2s3z/val": 1, "sc2/3m/val": 1},
            "val_groups": ["sc2/2s3z/val"],
            "robustness": {"100": {"runs": {}, "references": {}}},
        },
    }
    titles = [table.title for table in unseen_tables(made)]
    assert titles == ["Scenario 2s3z, which the models were trained on", "Unseen scenario 1s2z"]
    assert "of the training scenarios (2s3z)" in robustness_tables(made)[0].caption
    made["sc2"]["val_groups"].append("sc2/3m/val")
    assert "not every model was trained on (2s3z, 3m)" in robustness_tables(made)[0].caption


def test_the_page_needs_nothing_else_and_escapes_what_it_is_given(tmp_path: Path) -> None:
    picture = tmp_path / "a.png"
    picture.write_bytes(b"\x89PNG")
    made = results(lstm=[0.5, 0.6])
    made["runs"]["lstm-0"]["label"] = made["runs"]["lstm-1"]["label"] = "<b>LSTM"
    section = Section(title="T", text="a < b", tables=ball_tables(made, 3))
    section.add_figure(picture, "caption")
    text = page(made, [section])
    assert "<b>LSTM" not in text and "&lt;b&gt;LSTM" in text
    assert "data:image/png;base64,iVBORw==" in text
    for outside in ("http://", "https://", "<script", 'src="/', "url("):
        assert outside not in text
    assert "does not beat" in text and "±" in text
    won = sum(table.ahead(row)[0] for table in section.tables for row in table.rows if row.kind == "model")
    compared = sum(table.ahead(row)[1] for table in section.tables for row in table.rows if row.kind == "model")
    assert f"in {won} of {compared} columns" in text
    json.dumps(made)
