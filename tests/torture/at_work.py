"""Attacks on commands at work: kills and signals that meet the work itself, not the imports before it.

A command is forked from a process that has imported what it needs, and runs the same `main` as ever. Besides random
moments, kills and signals come right before a chosen change that it makes to files: every step between two changes can
be met. After each kill, what lies there must be sound as far as it goes; in the end it must be what an undisturbed
command leaves.
"""

from __future__ import annotations

import atexit
import itertools
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
from toy import tree

from s2rm_data.store import verify
from s2rm_data.training.checkpoint import load_state
from s2rm_data.training.folder import read_run
from torture.cases import Finding, Workspace, ended, forked
from torture.processes import (
    BALLS,
    QUICK,
    SLOW,
    command_name,
    done_statuses,
    draw_job,
    ended_by_signal,
    same_outcome,
    send_signals,
    wait_for_handlers,
)

CHANGES = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod"}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
AGAIN = ("export", "preview", "stats", "card", "view")  # the same command again does the same work again


def watched(program: str, words: list[str], folder: Path, at: int = 0, blows: tuple[int, ...] = ()) -> Forked:
    """A command that counts the changes it makes to files, and gets a signal before each of some, from one on."""
    folder.mkdir(exist_ok=True)
    (folder / "dealt").write_bytes(b"")
    return forked(program, *words, before=("torture.at_work:count_changes", at, blows, str(folder)))


def count_changes(at: int, blows: list[int], folder: str) -> None:
    """Called in the forked process, before the command."""
    changes = itertools.count(1)  # of all threads together
    made = 0
    dealt = os.open(f"{folder}/dealt", os.O_WRONLY | os.O_APPEND)

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal made
        if event in CHANGES or (event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITING):
            made = number = next(changes)
            if 0 <= number - at < len(blows):
                os.write(dealt, b".")
                os.kill(os.getpid(), blows[number - at])

    sys.addaudithook(watch)
    atexit.register(lambda: Path(folder, "changes").write_text(str(made)))


def _draw(rng: random.Random, workspace: Workspace, folder: Path, *, slow: bool) -> tuple[str, list[str], Path]:
    """A command that writes: program, words, and what it writes."""
    out = folder / "out"
    kind = "" if slow else rng.choice(["merge", "merge", "rename", "remove", *[""] * 11])
    if kind == "merge":
        shutil.copytree(_parts(workspace), out)
        return "data", ["merge", str(out), "-q"], out
    if kind:
        shutil.copytree(workspace.toy, out)
        return "data", [kind, str(out), "toy/val", *(["toy/other"] if kind == "rename" else ["--yes"]), "-q"], out
    return draw_job(rng, workspace, folder, SLOW if slow else QUICK)[:3]


def _parts(workspace: Workspace) -> Path:
    """A store whose two parts are made and wait for their merge."""

    def make(path: Path) -> None:
        for part in ("1/2", "2/2"):
            _run("data", [*BALLS, "-o", str(path), "--part", part], workspace.folder / "parts-streams")

    return workspace.made("parts.zarr", make)


def _run(program: str, words: list[str], streams: Path) -> None:
    status, _, err = ended(watched(program, words, streams))
    if status not in done_statuses(program, words):
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
            _run(program, [word.replace(str(out), str(target)) for word in words], folder / "streams")
            seconds = time.monotonic() - began
        if "repair" in words:
            same_outcome(program, words, folder / "out", workspace.store)
        taken = {"seconds": seconds, "changes": int((folder / "streams/changes").read_text())}
        (folder / "taken.json").write_text(json.dumps(taken))

    folder = workspace.made(f"undisturbed-{command_name(words)}", make)
    taken = json.loads((folder / "taken.json").read_text())
    return folder / "out", taken["seconds"], taken["changes"]


def kill_at_work(rng: random.Random, workspace: Workspace, *, slow: bool = False) -> int:
    """A command at work is killed several times, half of them before a chosen change to files. Returns the kills."""
    with workspace.fresh() as folder:
        program, words, out = _draw(rng, workspace, folder, slow=slow)
        reference, seconds, changes = _undisturbed(workspace, program, words, out)
        kills, reach = (
            0,
            rng.choice([1.0, 0.5, 0.2, 0.1]),
        )  # of the undisturbed command; what is left of it becomes shorter
        for _ in range(rng.randint(1, 3 if program == "eval" else 12)):
            chosen = 1 + int(reach * changes * rng.random()) if rng.random() < 0.5 else 0
            process = watched(program, words, folder / "streams", chosen, (signal.SIGKILL,) if chosen else ())
            if not chosen:
                wait_for_handlers(process.pid)
                time.sleep(reach * seconds * rng.random())
                process.kill()
            status = ended(process, {-signal.SIGKILL, *done_statuses(program, words)})[0]
            kills += status == -signal.SIGKILL
            sound_so_far(program, words, out, reference)
            if status != -signal.SIGKILL and program != "eval" and words[0] not in AGAIN:
                break
        _run(program, words, folder / "streams")
        same_outcome(program, words, out, reference)
        return kills


def kill_slow(rng: random.Random, workspace: Workspace) -> int:
    """The same to commands that learn, evaluate and describe."""
    return kill_at_work(rng, workspace, slow=True)


def signals_slow(rng: random.Random, workspace: Workspace) -> int:
    """The same to commands that learn, evaluate and describe."""
    return signals_at_work(rng, workspace, slow=True)


def signals_at_work(rng: random.Random, workspace: Workspace, *, slow: bool = False) -> int:
    """A command at work gets signals, single or in bursts, half of them before chosen changes to files, again and again
    until it is finished. Returns the signals that came.
    """
    with workspace.fresh() as folder:
        program, words, out = _draw(rng, workspace, folder, slow=slow)
        reference, seconds, changes = _undisturbed(workspace, program, words, out)
        sent, status = 0, 130
        for _ in range(rng.randint(1, 1 if program == "eval" else 8)):
            if rng.random() < 0.5:
                blows = tuple(rng.choice([signal.SIGINT, signal.SIGTERM]) for _ in range(rng.choice([1, 1, 2, 3, 8])))
                process = watched(program, words, folder / "streams", rng.randint(1, changes), blows)
                status = ended_by_signal(process, program, words)
                sent += (folder / "streams/dealt").stat().st_size
            else:
                process = watched(program, words, folder / "streams")
                wait_for_handlers(process.pid)
                time.sleep(seconds * rng.random())
                came, status = send_signals(rng, process, program, words)
                sent += came
            sound_so_far(program, words, out, reference)
            if status != 130 and words[0] not in AGAIN:
                break
        if program != "eval":
            _run(program, words, folder / "streams")
            same_outcome(program, words, out, reference)
        return sent


def sound_so_far(program: str, words: list[str], out: Path, reference: Path) -> None:
    """What a command that was disturbed leaves can be unfinished, but nothing of it is wrong."""
    if program == "train" and (out / "config.json").exists():
        read_run(out)
        if (out / "state.safetensors").exists():
            load_state(out / "state.safetensors")
    elif words[0] in AGAIN:
        whole = {name: data for name, data in tree(out).items() if ".partial" not in name}
        for name in whole.keys() - {name for name, data in tree(reference).items() if whole.get(name) == data}:
            raise Finding(f"after a disturbance, {words[0]} has left {name}, which is not what belongs there")
    elif program == "data" and (out / "zarr.json").exists():
        allowed = ("is unfinished", "not in the manifest", *(["bballs/train/frames"] if words[0] == "repair" else []))
        wrong = [problem for problem in verify(out).problems if not any(text in problem for text in allowed)]
        if wrong:
            raise Finding(f"after a disturbance, {words[0]} has left a store with problems: {wrong[0]}")
