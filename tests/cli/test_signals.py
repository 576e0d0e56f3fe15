"""Signals at any moment, one or many, end a command with status 130, without a traceback and without a hang."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from forking import Forked
from patience import finish, wait_until
from program import run, start

from s2rm_data.store import Store, verify

BALLS = ["bballs", "--balls", "3", "--train", "40000", "--val", "0", "--test", "0", "--shard-size", "50", "-j", "2"]


def wait_for_handlers(process: subprocess.Popen[str]) -> None:
    """Until the program, rather than Python alone, catches signals: SIGTERM is in the mask of those that it catches."""
    status = Path(f"/proc/{process.pid}/status")
    while process.poll() is None:
        caught = next(line for line in status.read_text().splitlines() if line.startswith("SigCgt"))
        if int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1:
            return
        time.sleep(0.001)


def end_of(process: subprocess.Popen[str] | Forked) -> tuple[int, str]:
    _, err = finish(process)
    assert "Traceback" not in err and "Exception ignored" not in err, err
    return process.wait(), err


@pytest.mark.sample(1, each="number")
@pytest.mark.parametrize(
    ("delay", "number"),
    [
        (0.0, signal.SIGINT),
        (0.0, signal.SIGTERM),
        (0.05, signal.SIGTERM),
        (0.2, signal.SIGINT),
        (0.4, signal.SIGTERM),
        (0.8, signal.SIGINT),
    ],
)
def test_a_signal_while_the_program_starts_ends_it(tmp_path: Path, delay: float, number: signal.Signals) -> None:
    process = start(*BALLS, cwd=tmp_path)
    wait_for_handlers(process)
    time.sleep(delay)
    process.send_signal(number)
    status, err = end_of(process)
    assert status == 130
    assert "interrupted" in err


@pytest.mark.sample(1, each="program")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("program", ["s2rm_data", "s2rm_data.cli.train", "s2rm_data.cli.eval"])
def test_a_signal_while_the_program_imports_ends_it(tmp_path: Path, program: str, number: signal.Signals) -> None:
    """It comes with the first import of a library."""
    (tmp_path / "click.py").write_text(f"import os\nos.kill(os.getpid(), {number:d})\nimport nowhere\n")
    paths = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    process = subprocess.Popen(
        [sys.executable, "-m", program],
        text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": paths},
    )  # fmt: skip
    status, err = end_of(process)
    assert status == 130
    assert "interrupted" in err


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", range(6))
def test_a_burst_of_signals_is_one_interrupt(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    process = Forked("s2rm-data", *BALLS, "-q", cwd=tmp_path)
    wait_until(lambda: list((tmp_path / "data.zarr").glob("bballs/train/frames/c.*")), process)
    time.sleep(rng.random() * 0.1)
    for _ in range(rng.randint(2, 6)):
        process.send_signal(rng.choice([signal.SIGINT, signal.SIGTERM]))
        time.sleep(rng.random() * 0.02)
    status, err = end_of(process)
    assert status == 130
    assert "Run the same command again to resume" in err
    problems = verify(tmp_path / "data.zarr").problems
    assert len(problems) == 1 and "is unfinished" in problems[0]


def test_a_signal_in_another_command_ends_it(tmp_path: Path) -> None:
    assert run("bballs", "--balls", "3", "--train", "3000", "--val", "0", "--test", "0", "-q", cwd=tmp_path)[0] == 0
    process = Forked("s2rm-data", "export", "data.zarr", "bballs/train", "-q", cwd=tmp_path)
    wait_until(lambda: list(tmp_path.glob("exports/*")), process)
    for _ in range(3):
        process.send_signal(signal.SIGINT)
    assert end_of(process)[0] == 130
    assert not list(tmp_path.glob("exports/*"))
    assert Store(tmp_path / "data.zarr").groups == ["bballs/train"]


def test_a_background_command_ignores_the_interrupt_of_the_foreground(tmp_path: Path) -> None:
    process = start(
        "bballs", "--balls", "3", "--train", "400", "--val", "0", "--test", "0", cwd=tmp_path,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )  # fmt: skip
    wait_for_handlers(process)
    for _ in range(10):
        process.send_signal(signal.SIGINT)
        time.sleep(0.05)
    assert end_of(process)[0] == 0
