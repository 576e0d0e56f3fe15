"""The reproduction's command: what it says beforehand, and that an interruption ends it and nothing runs on."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner
from patience import CLOCK_SECONDS, finish, wait_until

from s2rm_data.cli import reproduce
from s2rm_data.core import registry
from s2rm_data.core.errors import DiskError, S2RMError, UsageError
from s2rm_data.evaluation.reproduction import Job


def job(folder: Path, name: str, code: str) -> Job:
    """A job that runs a line of Python instead of one of the package's commands."""
    return Job(name=name, program=name, arguments=(code,), result=folder / name / "summary.json")


@pytest.fixture
def plain_python(monkeypatch: pytest.MonkeyPatch) -> None:
    real = subprocess.Popen
    monkeypatch.setattr(
        reproduce.subprocess, "Popen", lambda command, **rest: real([sys.executable, "-c", command[3]], **rest)
    )


@pytest.mark.usefixtures("plain_python")
def test_a_job_that_fails_stops_the_stage_with_its_message(tmp_path: Path) -> None:
    jobs = [
        job(tmp_path, "bad", "import sys; sys.exit('no such thing')"),
        *(job(tmp_path, f"later{n}", f"open({str(tmp_path / f'later{n}')!r}, 'w')") for n in range(5)),
    ]
    with pytest.raises(S2RMError, match="bad ended with exit status 1: no such thing"):
        reproduce._stage("stage", jobs, 1, tmp_path)
    assert not (tmp_path / "later4").exists()


@pytest.mark.usefixtures("plain_python")
def test_a_diverged_training_is_marked_and_not_repeated(tmp_path: Path) -> None:
    (tmp_path / "wild").mkdir()
    wild = job(tmp_path, "wild", "import sys; print('loss is nan', file=sys.stderr); sys.exit(7)")
    reproduce._stage("stage", [wild], 1, tmp_path)
    assert (tmp_path / "wild" / "diverged").read_text() == "loss is nan\n"
    assert reproduce._diverged(wild)


@pytest.mark.usefixtures("plain_python")
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the disk that is always full is Linux's")
def test_a_log_that_cannot_be_written_is_named_and_ends_the_job(tmp_path: Path) -> None:
    (tmp_path / "reproduce.log").symlink_to("/dev/full")
    slow = job(tmp_path, "slow", "import sys, time; print('hello', file=sys.stderr, flush=True); time.sleep(600)")
    with pytest.raises(DiskError, match=r"cannot write .*reproduce\.log: the disk is full"):
        reproduce._stage("stage", [slow], 1, tmp_path)
    assert not reproduce._RUNNING


@pytest.mark.usefixtures("plain_python")
def test_the_message_of_a_job_is_the_last_line_that_it_said(tmp_path: Path) -> None:
    code = "import sys; sys.stderr.buffer.write(b'drawing \\xff' + bytes([10]) + b's2rm-eval: no room'); sys.exit(6)"
    with pytest.raises(S2RMError, match=r"^bad ended with exit status 6: s2rm-eval: no room \(.*reproduce\.log has"):
        reproduce._stage("stage", [job(tmp_path, "bad", code)], 1, tmp_path)
    assert (tmp_path / "reproduce.log").read_text().startswith("drawing \ufffd\n")


def test_a_program_that_cannot_be_started_is_named_instead_of_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reproduce.sys, "executable", str(tmp_path / "none"))
    with pytest.raises(S2RMError, match=r"cannot start .*none: No such file"):
        reproduce._stage("stage", [job(tmp_path, "train", "")], 1, tmp_path)


@pytest.mark.usefixtures("plain_python")
def test_the_progress_of_a_long_job_is_passed_on_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = ["s2rm-eval: a warning", *(f"s2rm-eval: {n} of 4 sequences, {25 * n}%, {4 - n} s left" for n in range(4))]
    code = f"import sys; print(*{said!r}, sep=chr(10), file=sys.stderr)"
    told = {}
    for seconds in (0.0, 1000.0):
        monkeypatch.setattr(reproduce, "RELAY_SECONDS", seconds)
        reproduce._stage("stage", [job(tmp_path, "results", code)], 1, tmp_path)
        told[seconds] = [line for line in capsys.readouterr().err.splitlines() if "left" in line]
    assert told[1000.0] == []
    assert told[0.0][0] == "s2rm-reproduce: results: 0 of 4 sequences, 0%, 4 s left"
    assert len(told[0.0]) == 4
    assert (tmp_path / "reproduce.log").read_text().splitlines() == 2 * said


def test_what_is_done_is_told_as_soon_as_it_is_and_results_keep_their_order() -> None:
    first_may_end, told = threading.Event(), []

    def work(number: int) -> int:
        if number == 0:
            assert first_may_end.wait(60)
        return number

    def done(number: int) -> None:
        told.append(number)
        first_may_end.set()

    assert reproduce._side_by_side(work, range(3), 2, done) == [0, 1, 2]
    assert told[0] != 0 and sorted(told) == [0, 1, 2]


SLEEPER = "import pathlib as p, time; p.Path(chr(98)).touch(); time.sleep(60); p.Path(chr(101)).touch()"
WORK = {
    "a stage": "r._stage('s', jobs, 1, folder)",
    "the data": "r.reproduce.callback(folder, 'smoke', (), None, 1, False, True)",
    "the estimate": "r._estimate(plan, 1)",
}


@pytest.mark.parametrize("work", list(WORK))
def test_an_interruption_ends_the_running_jobs(work: str, tmp_path: Path) -> None:
    code = (
        "import pathlib, sys, subprocess, types; from s2rm_data.cli import reproduce as r;"
        "from s2rm_data.evaluation.reproduction import Job; real = subprocess.Popen; folder = pathlib.Path('.');"
        f"r.subprocess.Popen = lambda command, **rest: real([sys.executable, '-c', {SLEEPER!r}], **rest);"
        "words = ('--model', 'm', '--out', 'x');"
        "jobs = [Job(name=str(n), program='x', arguments=words, steps=1) for n in range(3)];"
        "plan = types.SimpleNamespace(worlds=['w'], rates=[1], training_jobs=lambda w: jobs, data_jobs=lambda: jobs);"
        "r._plan = lambda *given: plan;"
        f"import click; r.run(click.Command('x', callback=lambda: {WORK[work]}), 'x')"
    )
    process = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    wait_until((tmp_path / "b").exists, process)
    process.send_signal(signal.SIGTERM)
    _, err = finish(process)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert not _runs_in(tmp_path)
    assert not (tmp_path / "e").exists()


def _runs_in(folder: Path) -> list[str]:
    """Processes whose current folder this is."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (process / "cwd").readlink() == folder:
                found.append(process.name)
    return found


def test_a_world_without_a_reproduction_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_loaded", list(registry._loaded))
    registry.load_plugin("tiny_world")
    with pytest.raises(UsageError, match="the world dots has no reproduction; those that have one: bballs, sc2"):
        reproduce._plan(tmp_path, "smoke", ("dots",), None)
    assert list(reproduce._plan(tmp_path, "smoke", (), None).worlds) == ["bballs", "sc2"]
    with pytest.raises(UsageError, match="--size huge is not known; the choices are laptop, smoke"):
        reproduce._plan(tmp_path, "huge", (), None)


def test_the_plan_is_shown_without_making_anything(tmp_path: Path) -> None:
    done = CliRunner().invoke(reproduce.reproduce, ["--plan", "--size", "smoke", "--out", str(tmp_path / "all")])
    assert done.exit_code == 0, done.output
    assert "data: s2rm-data bballs" in done.stdout
    assert "sc2: evaluation: s2rm-eval" in done.stdout
    assert "training steps left" in done.stderr
    assert not list(tmp_path.iterdir())


def test_steps_given_by_hand_replace_those_of_the_size(tmp_path: Path) -> None:
    words = ["--plan", "--size", "smoke", "--task", "sc2", "--steps", "40", "--out", str(tmp_path / "all")]
    planned = CliRunner().invoke(reproduce.reproduce, words).stdout.splitlines()
    steps = {line.partition(" --steps ")[2].split()[0] for line in planned if line.startswith("sc2: training")}
    assert steps == {"40"}
    assert all(" --steps 10 " in line for line in planned if line.startswith("sc2: search"))


def test_as_many_processes_are_timed_at_once_as_will_train_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = threading.Barrier(3, timeout=CLOCK_SECONDS)  # breaks unless three are under way at the same time

    def timed(command: list[str], name: str) -> float:
        return float(together.wait())

    monkeypatch.setattr(reproduce, "_timed", timed)
    job = reproduce._plan(tmp_path, "smoke", ("bballs",), None).training_jobs("bballs")[0]
    assert reproduce._seconds_per_step(job, 3) == 1.0  # the mean of 0, 1 and 2
