"""Real processes: kill -9, and two of them sharing a batch, as torchrun starts and restarts them."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from forked import Forker, forker, pid_of
from same_runs import assert_same_run

from s2rm_data.store import Store
from s2rm_data.training.folder import read_log

STEPS = 60
SMALL = {"threads": 1, "width": 2, "window": 4, "views": 5, "queries": 3, "batch_size": 4, "held_out_sequences": 2}


@pytest.fixture(scope="module")
def forks() -> Iterator[Forker]:
    with forker() as found:
        yield found


@pytest.fixture(scope="module")
def command(store: Store) -> Callable[..., list[str]]:
    """The options of a training that saves as often as it can; steps=60 and so on."""

    def options(out: Path, task: str = "bballs", steps: int = STEPS, **fields: Any) -> list[str]:
        chosen = {**SMALL, "validate_every": 30, "checkpoint_seconds": 1e-9, **fields}
        sets = [word for name, value in chosen.items() for word in ("--set", f"{name}={value}")]
        head = ["--store", str(store.path), "--task", task, "--preset", "smoke", "--device", "cpu", "-q", "--resume"]
        return [*head, "--steps", str(steps), *sets, "--out", str(out)]

    return options


@pytest.fixture(scope="module")
def one(command: Callable[..., list[str]], forks: Forker, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of one process."""
    out = Path(tmp_path_factory.mktemp("one")) / "run"
    assert forks.run(*command(out)) == 0
    return out


@pytest.fixture(scope="module")
def two(command: Callable[..., list[str]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of two processes, by the command that users give."""
    out = Path(tmp_path_factory.mktemp("two")) / "run"
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run([*torchrun, "-m", "s2rm_data.cli.train", *command(out)], check=True, env=environment)
    return out


def wait_until(done: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + 300
    while not (found := done()):
        assert time.monotonic() < deadline
        time.sleep(0.002)
    return found


def lines(out: Path) -> int:
    log = out / "log.jsonl"
    return log.read_bytes().count(b"\n") if log.exists() else 0


def kill(out: Path, rank: int = 0) -> int:
    victim: int = wait_until(lambda: pid_of(out, rank))
    os.kill(victim, signal.SIGKILL)
    return victim


def assert_same_to_rounding(a: Path, b: Path) -> None:
    logs = [[record for record in read_log(run / "log.jsonl") if record["kind"] != "references"] for run in (a, b)]
    assert len(logs[0]) == len(logs[1]) > 0
    for x, y in zip(*logs, strict=True):
        assert (x.keys(), x["kind"], x["step"], x["epoch"]) == (y.keys(), y["kind"], y["step"], y["epoch"])
        assert y["loss"] == pytest.approx(x["loss"], rel=1e-4)


def checkpoints_seen(out: Path) -> Callable[[], int]:
    """Counts, whenever it is called, how often the checkpoint was found replaced."""
    state, seen = out / "state.safetensors", {0}

    def count() -> int:
        seen.add(state.stat().st_mtime_ns if state.exists() else 0)
        return len(seen) - 1

    return count


@pytest.mark.slow
def test_killing_the_process_at_twenty_random_moments_changes_nothing(
    command: Callable[..., list[str]], forks: Forker, one: Path, tmp_path: Path
) -> None:
    killed = tmp_path / "run"
    chance = random.Random(0)
    for _ in range(20):
        forks.start(*command(killed))
        wait_until(lambda: pid_of(killed))
        count, wanted = checkpoints_seen(killed), chance.randint(0, 3)
        wait_until(lambda count=count, wanted=wanted: count() >= wanted)
        time.sleep(chance.uniform(0, 0.02))
        kill(killed)
        assert forks.wait() == -signal.SIGKILL
    assert forks.run(*command(killed)) == 0
    assert_same_run(one, killed)


@pytest.mark.slow
def test_two_processes_have_the_losses_of_one_to_rounding(one: Path, two: Path) -> None:
    assert_same_to_rounding(one, two)


@pytest.mark.slow
def test_two_processes_have_the_losses_of_one_to_rounding_where_they_have_unequal_shares(
    command: Callable[..., list[str]], forks: Forker, tmp_path: Path
) -> None:
    """Battles end early: a process may have fewer targets than the other."""
    for processes in (1, 2):
        options = command(tmp_path / str(processes), "sc2", 8, validate_every=4)
        assert forks.run(*options, processes=processes) == 0
    assert_same_to_rounding(tmp_path / "1", tmp_path / "2")


@pytest.mark.slow
def test_torchrun_restarts_a_run_that_lost_a_process_and_it_learns_the_same(
    command: Callable[..., list[str]], forks: Forker, two: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    forks.start(*command(out), processes=2, restarts=2)
    victims = []
    for rank, moment in ((1, 25), (0, 45)):
        wait_until(lambda moment=moment: lines(out) >= moment)
        others = {pid_of(out, 0), pid_of(out, 1)}
        victims.append(kill(out, rank))
        wait_until(lambda others=others: not others & {pid_of(out, 0), pid_of(out, 1)})
    assert forks.wait() == 0
    assert len({*victims}) == 2
    assert_same_run(two, out)


@pytest.mark.slow
@pytest.mark.parametrize(("first", "then"), [(1, 2), (2, 1)])
def test_a_run_is_resumed_by_another_number_of_processes(
    command: Callable[..., list[str]], forks: Forker, one: Path, two: Path, tmp_path: Path, first: int, then: int
) -> None:
    """Up to the checkpoint it is the run of the first number, bit for bit; after it, that of the other to rounding."""
    out = tmp_path / "run"
    forks.start(*command(out), processes=first)
    wait_until(lambda: lines(out) >= 25)
    for rank in range(first):
        kill(out, rank)
    assert forks.wait() != 0
    assert forks.run(*command(out), processes=then) == 0
    before = (one, two)[first - 1] / "log.jsonl"
    assert out.joinpath("log.jsonl").read_bytes().splitlines()[:20] == before.read_bytes().splitlines()[:20]
    assert_same_to_rounding((one, two)[then - 1], out)
