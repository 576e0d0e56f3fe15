"""Attacks on commands at work: kills and signals that meet the work itself, not the imports before it.

A command is forked from a process that has imported what it needs, and runs the same `main` as ever. Besides random
moments, it is killed right before a chosen change that it makes to files: every step between two changes can be met.
"""

from __future__ import annotations

import functools
import json
import multiprocessing
import multiprocessing.forkserver
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from forking import PRELOADED

from torture.cases import DOCUMENTED, Finding, Workspace, ended, environment
from torture.processes import BALLS, command_name, draw_job, same_outcome, send_signals, wait_for_handlers

CHANGES = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod"}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
ONCE = ("merge", "rename", "remove")  # the same command again finds nothing left to do: status 2


@functools.cache
def _server() -> Any:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*PRELOADED, "torture.at_work"])
    paths = [environment()["PYTHONPATH"], str(Path(__file__).parents[1])]
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)  # the server knows no other way to its modules
    try:
        multiprocessing.forkserver.ensure_running()
    finally:
        os.environ.pop("PYTHONPATH")
        os.environ.update({} if before is None else {"PYTHONPATH": before})
    return context


class AtWork:
    """A command in a forked process; to be used like `subprocess.Popen`."""

    def __init__(self, program: str, words: list[str], folder: Path, dies_before: int = 0) -> None:
        self.args = [program, *words]
        self.folder = folder
        folder.mkdir(exist_ok=True)
        for name in ("stdout", "stderr"):
            (folder / name).write_text("")
        self._process = _server().Process(target=_work, args=(program, words, str(folder), dies_before))
        self._process.start()
        self.pid: int = self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def kill(self) -> None:
        self._process.kill()

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        self._process.join(timeout)
        if self.poll() is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return (self.folder / "stdout").read_text(), (self.folder / "stderr").read_text()


def _work(program: str, words: list[str], folder: str, dies_before: int) -> None:
    """The forked process: count the changes it makes to files, and die before one of them."""
    made = 0

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal made
        if event in CHANGES or (event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITING):
            made += 1
            if made == dies_before:
                os.kill(os.getpid(), signal.SIGKILL)

    for number, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(Path(folder) / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    sys.argv = [f"s2rm-{program}", *words]
    sys.addaudithook(watch)
    try:
        _main_of(program)()
    finally:
        (Path(folder) / "changes").write_text(str(made))


def _main_of(program: str) -> Callable[[], None]:
    from s2rm_data.cli import data, eval, train

    return {"data": data.main, "train": train.main, "eval": eval.main}[program]


def _draw(rng: random.Random, workspace: Workspace, folder: Path) -> tuple[str, list[str], Path]:
    """A command that writes: program, words, and what it writes. Learning, which is slow, comes up less often."""
    out = folder / "out"
    kind = rng.choice(["merge", "rename", "remove", "", "", "", "", "", ""])
    if kind == "merge":
        shutil.copytree(_parts(workspace), out)
        return "data", ["merge", str(out), "-q"], out
    if kind:
        shutil.copytree(workspace.toy, out)
        return "data", [kind, str(out), "toy/val", *(["toy/other"] if kind == "rename" else ["--yes"]), "-q"], out
    program, words, out, _ = draw_job(rng, workspace, folder)
    if program != "data" and rng.random() < 0.7:
        return "data", [*BALLS, "-o", str(out)], out
    return program, words, out


def _parts(workspace: Workspace) -> Path:
    """A store whose two parts are made and wait for their merge."""

    def make(path: Path) -> None:
        for part in ("1/2", "2/2"):
            _run("data", [*BALLS, "-o", str(path), "--part", part], workspace.folder / "parts-streams")

    return workspace.made("parts.zarr", make)


def _run(program: str, words: list[str], streams: Path) -> None:
    status, _, err = ended(AtWork(program, words, streams))
    if status and not (words[0] in ONCE and status == 2):
        raise Finding(f"{words} fails with {status}: {err[-1000:]}")


def _undisturbed(workspace: Workspace, program: str, words: list[str], out: Path) -> tuple[Path, float, int]:
    """What the command leaves when nobody disturbs it, the seconds and the changes to files that it takes."""

    def make(folder: Path) -> None:
        folder.mkdir()
        for name in ("warm", "out"):  # the first may have to compile, which the measure is not about
            target = folder / name
            if out.exists():
                shutil.copytree(out, target)
            began = time.monotonic()
            _run(program, [str(target) if word == str(out) else word for word in words], folder / "streams")
            seconds = time.monotonic() - began
        if "repair" in words:
            same_outcome(program, words, folder / "out", workspace.store)
        taken = {"seconds": seconds, "changes": int((folder / "streams/changes").read_text())}
        (folder / "taken.json").write_text(json.dumps(taken))

    folder = workspace.made(f"undisturbed-{command_name(words)}", make)
    taken = json.loads((folder / "taken.json").read_text())
    return folder / "out", taken["seconds"], taken["changes"]


def kill_at_work(rng: random.Random, workspace: Workspace) -> int:
    """A command at work is killed several times, half of them before a chosen change to files. Returns the kills."""
    with workspace.fresh() as folder:
        program, words, out = _draw(rng, workspace, folder)
        reference, seconds, changes = _undisturbed(workspace, program, words, out)
        kills = 0
        for _ in range(rng.randint(1, 8)):
            chosen = 1 + int(changes * rng.random() ** 2) if rng.random() < 0.5 else 0
            process = AtWork(program, words, folder / "streams", chosen)
            if not chosen:
                wait_for_handlers(process.pid)
                time.sleep(seconds * rng.random())
                process.kill()
            kills += ended(process, DOCUMENTED | {-signal.SIGKILL})[0] == -signal.SIGKILL
        _run(program, words, folder / "streams")
        same_outcome(program, words, out, reference)
        return kills


def signals_at_work(rng: random.Random, workspace: Workspace) -> int:
    """A command at work gets one signal or a burst at a random moment. Returns the signals that came."""
    with workspace.fresh() as folder:
        program, words, out = _draw(rng, workspace, folder)
        reference, seconds, _ = _undisturbed(workspace, program, words, out)
        process = AtWork(program, words, folder / "streams")
        wait_for_handlers(process.pid)
        time.sleep(seconds * rng.random())
        sent = send_signals(rng, process)
        if rng.random() < 0.3:
            _run(program, words, folder / "streams")
            same_outcome(program, words, out, reference)
        return sent
