"""Real processes: kill -9, and two of them sharing a batch through torchrun."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from same_runs import assert_same_run

from s2rm_data.store import Store
from s2rm_data.training.folder import read_log

COMMAND = ["--preset", "smoke", "--device", "cpu", "-q", "--set", "threads=1", "--set", "width=2"]


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1"}


def kill_after(process: subprocess.Popen[bytes], state: Path, checkpoints: int, seconds: float) -> bool:
    """SIGKILL some time after so many new checkpoints; False if the process ended before."""
    seen, known = 0, None
    while seen < checkpoints:
        if process.poll() is not None:
            return False
        now = state.stat().st_mtime_ns if state.exists() else None
        seen, known = seen + (known is not None and now != known), now
        time.sleep(0.002)
    time.sleep(seconds)
    process.send_signal(signal.SIGKILL)
    return process.wait() == -signal.SIGKILL


@pytest.mark.slow
def test_killing_the_process_at_twenty_random_moments_changes_nothing(store: Store, tmp_path: Path) -> None:
    def command(out: Path) -> list[str]:
        options = [*COMMAND, "--steps", "100", "--set", "validate_every=8", "--set", "checkpoint_seconds=1e-9"]
        head = [sys.executable, "-m", "s2rm_data.cli.train", "--store", str(store.path)]
        return [*head, *options, "--out", str(out), "--resume"]

    subprocess.run(command(tmp_path / "whole"), check=True, env=environment())
    chance = random.Random(0)
    kills = 0
    while kills < 20:
        process = subprocess.Popen(command(tmp_path / "killed"), env=environment())
        state = tmp_path / "killed" / "state.safetensors"
        assert kill_after(process, state, chance.randint(0, 5), chance.uniform(0, 0.1))
        kills += 1
    subprocess.run(command(tmp_path / "killed"), check=True, env=environment())
    assert_same_run(tmp_path / "whole", tmp_path / "killed")


@pytest.mark.slow
@pytest.mark.parametrize("task", ["bballs", "sc2"])
def test_two_processes_have_the_losses_of_one_to_rounding(store: Store, tmp_path: Path, task: str) -> None:
    options = [*COMMAND, "--store", str(store.path), "--task", task, "--steps", "8", "--set", "validate_every=4"]
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    one = [sys.executable, "-m", "s2rm_data.cli.train", *options, "--out", str(tmp_path / "one")]
    two = [*torchrun, "-m", "s2rm_data.cli.train", *options, "--out", str(tmp_path / "two")]
    for command in (one, two):
        subprocess.run(command, check=True, env=environment())
    logs = [
        [r for r in read_log(tmp_path / name / "log.jsonl") if r["kind"] != "references"] for name in ("one", "two")
    ]
    assert len(logs[0]) == len(logs[1]) == 10
    for a, b in zip(*logs, strict=True):
        assert a.keys() == b.keys()
        assert b["loss"] == pytest.approx(a["loss"], rel=1e-4)
