"""Attacks on runs in parts: parts and merges are killed at random moments, and finished."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

from torture.cases import DOCUMENTED, Finding, Workspace, command, ended, same_tree, started

BALLS = ["bballs", "--balls", "2", "--train", "120", "--val", "20", "--test", "0", "--frames", "20", "-j", "1", "-q"]
NOTHING_TO_MERGE = 2  # the kill came after everything was done


def kill_parts(rng: random.Random, workspace: Workspace) -> int:
    """Parts of a run are killed, then their merge: the store is that of one process. Returns the kills."""
    count, merges, kills = rng.randint(2, 3), rng.randint(1, 4), 0
    with workspace.fresh() as folder:
        out = folder / "out"
        for number in range(1, count + 1):
            kills += _kill(rng, [*BALLS, "--shard-size", "20", "-o", str(out), "--part", f"{number}/{count}"], 2.5)
        for number in range(1, count + 1):
            _finish([*BALLS, "--shard-size", "20", "-o", str(out), "--part", f"{number}/{count}"], {0})
        for _ in range(merges):
            kills += _kill(rng, ["merge", str(out), "-q"], 1.5)
        _finish(["merge", str(out), "-q"], {0, NOTHING_TO_MERGE})
        same_tree(out, _reference(workspace), "after parts and a merge that were killed")
    return kills


def _kill(rng: random.Random, words: list[str], seconds: float) -> bool:
    process = started("data", *words)
    time.sleep(rng.random() * seconds)
    process.kill()
    return ended(process, DOCUMENTED | {-signal.SIGKILL})[0] == -signal.SIGKILL


def _finish(words: list[str], allowed: set[int]) -> None:
    status, _, err = command("data", *words)
    if status not in allowed:
        raise Finding(f"cannot be finished after it was killed: {words} {status} {err[-1000:]}")


def _reference(workspace: Workspace) -> Path:
    target = workspace.folder / "reference-parts"
    if not target.exists():
        _finish([*BALLS, "--shard-size", "20", "-o", str(target)], {0})
    return target
