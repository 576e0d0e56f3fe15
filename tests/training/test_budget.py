"""Runs that are trained longer than they were started for."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from killed_runs import KillAt, Killed
from same_runs import assert_same_run

from s2rm_data.core.errors import ConflictError, DamagedStoreError
from s2rm_data.training import folder as folder_module
from s2rm_data.training.folder import read_log, read_run

STEPS = frozenset({"steps"})


@pytest.fixture(scope="module")
def eight(tiny, train, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of eight steps from the start."""
    out = tmp_path_factory.mktemp("eight") / "run"
    train(tiny(steps=8, validate_every=4, schedule="plateau"), out)
    return out


def test_with_plateau_a_finished_run_that_is_trained_longer_is_the_longer_run(
    tiny, train, eight: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    train(tiny(steps=4, validate_every=4, schedule="plateau"), out)
    longer = tiny(steps=8, validate_every=4, schedule="plateau")
    with pytest.raises(Killed):
        train(longer, out, KillAt(6), resume=True, given=STEPS)
    train(tiny(), out, resume=True)  # the new budget is the run's own by now
    assert_same_run(eight, out)
    document = read_run(out)
    assert (document["config"]["steps"], document["earlier_budgets"]) == (8, [{"steps": 4, "epochs": 100}])


def test_with_cosine_the_rate_goes_on_as_in_a_run_of_the_new_budget(tiny, train, tmp_path: Path) -> None:
    out, whole = tmp_path / "run", tmp_path / "whole"
    train(tiny(steps=3), out)
    train(tiny(steps=6), out, resume=True, given=STEPS)
    train(tiny(steps=6), whole)
    rates = [[r["lr"] for r in read_log(path / "log.jsonl") if r["kind"] == "step"] for path in (out, whole)]
    assert rates[0][3:] == rates[1][3:]
    assert rates[0][:3] != rates[1][:3]


def test_epochs_are_a_longer_budget_too(tiny, train, tmp_path: Path) -> None:
    train(tiny(steps=2), tmp_path / "run")
    longer = dataclasses.replace(tiny(), steps=None, epochs=1)  # 24 sequences, 4 per step
    summary = train(longer, tmp_path / "run", resume=True, given=frozenset({"epochs"}))
    assert (summary["steps"], summary["epochs"]) == (6, 1.0)


def test_a_shorter_budget_is_refused_and_changes_nothing(tiny, train, eight: Path) -> None:
    before = (eight / "config.json").read_bytes()
    with pytest.raises(ConflictError, match=r"was started for 8 steps, and 3 were asked for"):
        train(tiny(steps=3), eight, resume=True, given=STEPS)
    assert (eight / "config.json").read_bytes() == before
    assert train(tiny(steps=8), eight, resume=True, given=STEPS) == json.loads((eight / "summary.json").read_text())


@pytest.mark.parametrize("written", [0, 1, 2])
def test_a_kill_while_the_budget_is_written_leaves_a_run_that_can_be_resumed(
    tiny, train, eight: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: int
) -> None:
    out = tmp_path / "run"
    train(tiny(steps=4, validate_every=4, schedule="plateau"), out)
    write, left = folder_module.write.write_whole, [written]

    def killed(*arguments) -> None:
        if not left[0]:
            raise Killed
        left[0] -= 1
        write(*arguments)

    monkeypatch.setattr(folder_module.write, "write_whole", killed)
    longer = tiny(steps=8, validate_every=4, schedule="plateau")
    with pytest.raises(Killed):
        train(longer, out, resume=True, given=STEPS)
    monkeypatch.undo()
    train(longer, out, resume=True, given=STEPS)
    assert_same_run(eight, out)


def test_several_seeds_are_not_trained_longer(tiny, train, tmp_path: Path) -> None:
    train(tiny(steps=1), tmp_path / "run", runs=2)
    with pytest.raises(ConflictError, match="was started with steps = 1, not 2"):
        train(tiny(steps=2), tmp_path / "run", runs=2, resume=True, given=STEPS)


def test_earlier_budgets_that_make_no_sense_are_refused(tiny, train, tmp_path: Path) -> None:
    out = tmp_path / "run"
    train(tiny(steps=1), out)
    folder = folder_module.RunFolder(out)
    folder.replace_config(read_run(out) | {"earlier_budgets": [{"steps": -1, "epochs": 1}]})
    with pytest.raises(DamagedStoreError, match="earlier_budgets make no sense"):
        train(tiny(steps=1), out, resume=True)
