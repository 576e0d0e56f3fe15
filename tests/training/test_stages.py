"""Runs whose windows grow late: which steps read which windows, and that interruptions change nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from same_runs import assert_same_run

from s2rm_data.store import Store
from s2rm_data.training.data import RunData
from s2rm_data.training.folder import read_log
from s2rm_data.training.listener import Listener, Pace
from s2rm_data.training.resolve import Overrides, resolve
from s2rm_data.training.schedule import stages_of

LATE = {"late_window": 7, "late_batch_size": 2, "late_from": 0.5}


class KillAt(Listener):
    def __init__(self, step: int) -> None:
        self.at = step

    def pace(self, pace: Pace) -> None:
        if pace.step == self.at:
            raise KeyboardInterrupt


def test_late_steps_read_fewer_and_longer_windows_and_epochs_go_on(store: Store, tiny) -> None:
    config = tiny(steps=14, **LATE)
    early, late = stages_of(config, RunData(store, config))
    assert (early.begin, early.end, late.begin, late.end) == (0, 7, 7, 14)
    assert early.batches.batch(*early.place(6)).views.shape[:2] == (4, 4)
    assert late.batches.batch(*late.place(7)).views.shape[:2] == (2, 7)
    assert early.place(6) == (1, 0)  # 24 sequences are six batches of four
    assert late.place(7) == (2, 0)
    assert late.place(13) == (2, 6)


@pytest.mark.parametrize("kill", [2, 3, 5])
def test_a_run_with_late_windows_is_resumed_exactly_from_either_stage(
    tiny, train, tmp_path: Path, kill: int, whole: Path
) -> None:
    out = tmp_path / "run"
    config = tiny(steps=6, validate_every=6, checkpoint_seconds=1e-9, **LATE)
    with pytest.raises(KeyboardInterrupt):
        train(config, out, KillAt(kill))
    train(config, out, resume=True)
    assert_same_run(whole, out)


@pytest.fixture(scope="module")
def whole(tiny, train, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("whole") / "run"
    train(tiny(steps=6, validate_every=6, checkpoint_seconds=1e-9, **LATE), out)
    assert [record["epoch"] for record in read_log(out / "log.jsonl") if record["kind"] == "step"] == [0] * 3 + [1] * 3
    return out


def test_windows_that_a_user_chooses_stay_the_same_to_the_end(store: Store) -> None:
    def late(**fields) -> int | None:
        overrides = Overrides(task="bballs", preset="laptop", device="cpu", fields=fields)
        return resolve(store, overrides, lambda text: None).late_window

    assert late() == 11  # the preset's 20, but a sequence of the small store has 11 steps
    assert late(window=5) is None
    assert late(batch_size=5) is None
    assert late(window=5, late_window=9) == 9
