"""Real processes: kill -9; two that share batches through torchrun, are started again, or resume as one."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import elastic
import pytest
from forking import Forked
from killed_runs import KillAt, Killed
from program import run_forked
from same_runs import assert_same_run

from s2rm_data.store import Store
from s2rm_data.training.folder import read_log
from s2rm_data.training.protocol import RunOptions, Session
from s2rm_data.training.resolve import Overrides, resolve

UNDRAWN = ("undrawn:install",)
COMMAND = ["--preset", "smoke", "--device", "cpu", "-q", "--set", "threads=1", "--set", "width=2"]


def kill_after(process: Forked, state: Path, checkpoints: int, seconds: float) -> bool:
    """SIGKILL some time after so many new checkpoints; False if the process ended before."""
    seen, known = 0, None
    while seen < checkpoints:
        if process.poll() is not None:
            return False
        now = state.stat().st_mtime_ns if state.exists() else None
        seen, known = seen + (known is not None and now != known), now
        time.sleep(0.002)
    time.sleep(seconds)
    process.kill()
    return process.wait() == -9


@pytest.mark.costs(20)
@pytest.mark.parametrize("kills", [5, pytest.param(20, marks=pytest.mark.whole)])
def test_killing_the_process_at_random_moments_changes_nothing(store: Store, tmp_path: Path, kills: int) -> None:
    def command(out: Path) -> list[str]:
        options = [*COMMAND, "--steps", "100", "--set", "validate_every=8", "--set", "checkpoint_seconds=1e-9"]
        options += ["--batch-size", "2", "--set", "window=4", "--set", "views=4", "--set", "held_out_sequences=2"]
        return ["s2rm-train", "--store", str(store.path), *options, "--out", str(out), "--resume"]

    assert Forked(*command(tmp_path / "whole"), before=UNDRAWN).wait() == 0
    chance = random.Random(0)
    for _ in range(kills):
        process = Forked(*command(tmp_path / "killed"), before=UNDRAWN)
        state = tmp_path / "killed" / "state.safetensors"
        assert kill_after(process, state, chance.randint(0, 5), chance.uniform(0, 0.02))
    assert Forked(*command(tmp_path / "killed"), before=UNDRAWN).wait() == 0
    assert_same_run(tmp_path / "whole", tmp_path / "killed")


def by_torchrun(options: list[str]) -> None:
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run([*torchrun, "-m", "s2rm_data.cli.train", *options], check=True, env=environment)


def by_its_agent(options: list[str]) -> None:
    status, said = elastic.run(*options)
    assert status == 0, said


@pytest.mark.parametrize(
    ("task", "two"), [pytest.param("bballs", by_torchrun, marks=pytest.mark.whole), ("sc2", by_its_agent)]
)
def test_two_processes_have_the_losses_of_one_to_rounding(store: Store, tmp_path: Path, task: str, two: object) -> None:
    options = [*COMMAND, "--store", str(store.path), "--task", task, "--steps", "4", "--set", "validate_every=2"]
    assert run_forked("s2rm-train", *options, "--out", str(tmp_path / "one"))[0] == 0
    two([*options, "--out", str(tmp_path / "two")])  # type: ignore[operator]
    logs = [
        [r for r in read_log(tmp_path / name / "log.jsonl") if r["kind"] != "references"] for name in ("one", "two")
    ]
    assert len(logs[0]) == len(logs[1]) == 6
    for a, b in zip(*logs, strict=True):
        assert a.keys() == b.keys()
        assert b["loss"] == pytest.approx(a["loss"], rel=1e-4)


SHORT = {"threads": 1, "width": 2, "steps": 8, "validate_every": 4, "held_out_sequences": 4}


def two(store: Store, out: Path, **how: Any) -> tuple[int, str]:
    """A run of eight steps in two processes, saved after the fourth; resumed if it was begun. Status and errors."""
    fields = [word for name, value in SHORT.items() for word in ("--set", f"{name}={value}")]
    own = ["--store", str(store.path), "--task", "bballs", "--preset", "smoke", "--device", "cpu", "-q", *fields]
    return elastic.run(*own, "--resume", "--out", str(out), **how)


def one(store: Store, out: Path, *, kill: int | None = None) -> None:
    """The same in this process."""
    overrides = Overrides(task="bballs", preset="smoke", device="cpu", fields=SHORT)
    session = Session(KillAt(kill) if kill else None)
    session.train(resolve(store, overrides, lambda text: None), store, RunOptions(out=out, resume=True))


@pytest.fixture(scope="module")
def undisturbed(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two run folders: `one` and `two`, by the number of processes."""
    folder = Path(tmp_path_factory.mktemp("undisturbed"))
    one(store, folder / "one")
    status, said = two(store, folder / "two")
    assert status == 0, said
    return folder


def records(folder: Path) -> list[dict[str, Any]]:
    return [record for record in read_log(folder / "log.jsonl") if record["kind"] != "references"]


def assert_same_to_rounding(found: Path, expected: Path) -> None:
    """The order of the data, the rates and the steps are equal; sums over sequences are, but for their last bits."""
    pairs = list(zip(records(found), records(expected), strict=True))
    assert len(pairs) == 10
    for a, b in pairs:
        assert a.keys() == b.keys()
        assert all(a.get(name) == b.get(name) for name in ("kind", "step", "epoch", "lr"))
        assert a["loss"] == pytest.approx(b["loss"], rel=1e-4)


@pytest.mark.sample(1)
@pytest.mark.parametrize("rank", [0, 1])
def test_a_lost_process_is_started_again_and_changes_nothing(
    store: Store, tmp_path: Path, undisturbed: Path, rank: int
) -> None:
    status, said = two(store, tmp_path / "killed", restarts=1, kill=f"{rank}:6")
    assert status == 0, said
    assert said.count("killed after 6 steps") == 1
    assert_same_run(undisturbed / "two", tmp_path / "killed")


def test_a_run_of_one_process_is_resumed_by_two(store: Store, tmp_path: Path, undisturbed: Path) -> None:
    with pytest.raises(Killed):
        one(store, tmp_path / "run", kill=6)
    status, said = two(store, tmp_path / "run")
    assert status == 0, said
    assert records(tmp_path / "run")[:5] == records(undisturbed / "one")[:5]  # four steps and a validation, to the bit
    assert_same_to_rounding(tmp_path / "run", undisturbed / "one")


def test_a_run_of_two_processes_is_resumed_by_one(store: Store, tmp_path: Path, undisturbed: Path) -> None:
    assert two(store, tmp_path / "run", kill="1:6")[0] == 1
    one(store, tmp_path / "run")
    assert records(tmp_path / "run")[:5] == records(undisturbed / "two")[:5]
    assert_same_to_rounding(tmp_path / "run", undisturbed / "two")
