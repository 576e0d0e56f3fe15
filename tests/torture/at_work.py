"""Attacks on commands at work: kills and signals that meet the work itself, not the imports before it.

A command is forked from a process that has imported what it needs, and runs the same `main` as ever. Besides random
moments, it is killed right before a chosen change that it makes to files: every step between two changes can be met.
"""

from __future__ import annotations

import atexit
import json
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

from forking import Forked

from torture.cases import DOCUMENTED, Finding, Workspace, ended, forked
from torture.processes import BALLS, command_name, draw_job, same_outcome, send_signals, wait_for_handlers

CHANGES = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod"}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
ONCE = ("merge", "rename", "remove")  # the same command again finds nothing left to do: status 2


def watched(program: str, words: list[str], folder: Path, dies_before: int = 0) -> Forked:
    """A command that counts the changes it makes to files, and dies before one of them."""
    folder.mkdir(exist_ok=True)
    return forked(program, *words, before=("torture.at_work:count_changes", dies_before, str(folder / "changes")))


def count_changes(dies_before: int, result: str) -> None:
    """Called in the forked process, before the command."""
    made = 0

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal made
        if event in CHANGES or (event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITING):
            made += 1
            if made == dies_before:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)
    atexit.register(lambda: Path(result).write_text(str(made)))


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
    status, _, err = ended(watched(program, words, streams))
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
            process = watched(program, words, folder / "streams", chosen)
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
        process = watched(program, words, folder / "streams")
        wait_for_handlers(process.pid)
        time.sleep(seconds * rng.random())
        sent = send_signals(rng, process)
        if rng.random() < 0.3:
            _run(program, words, folder / "streams")
            same_outcome(program, words, out, reference)
        return sent
