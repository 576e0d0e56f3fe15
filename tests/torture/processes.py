"""Attacks on running commands: kills, signals, full disks, rivals."""

from __future__ import annotations

import random
import shutil
import signal
import time
from pathlib import Path
from typing import Any

from s2rm_data.store import verify
from torture.cases import DOCUMENTED, Finding, Workspace, command, ended, same_tree, started

BALLS = [
    "bballs",
    "--balls",
    "2",
    "--train",
    "60",
    "--val",
    "10",
    "--test",
    "0",
    "--frames",
    "12",
    "--shard-size",
    "10",
    "-q",
]
BATTLES = [
    "sc2",
    "--scenario",
    "3m",
    "--train",
    "6",
    "--val",
    "0",
    "--steps",
    "10",
    "--shard-size",
    "2",
    "--backend",
    "engine",
    "-q",
]


# The same command again finds everything done: its status. (--export is that of s2rm-train, into a new folder.)
ONCE = {"merge": 2, "rename": 2, "remove": 2, "--export": 5}

# How often each command that writes comes up. The slow ones, which learn and describe, have attacks of their own.
QUICK = {"balls": 30, "battles": 6, "repair": 12, "export": 16, "preview": 2, "stats": 1, "page": 2}
SLOW = {"train": 6, "weights": 2, "card": 0.5, "eval": 0.5}
KINDS = {**QUICK, **{kind: often / 2 for kind, often in SLOW.items()}}


def draw_job(
    rng: random.Random, workspace: Workspace, folder: Path, kinds: dict[str, float] | None = None
) -> tuple[str, list[str], Path, float]:
    """A command that writes: program, words, what it writes, and about how many seconds it takes."""
    kinds = kinds or KINDS
    (kind,) = rng.choices(list(kinds), list(kinds.values()))
    if kind in ("balls", "battles"):
        words = [*(BALLS if kind == "balls" else BATTLES), "-j", str(rng.randint(1, 3))]
        return "data", [*words, "-o", str(folder / "out")], folder / "out", 2.0
    if kind == "train":
        return "train", [*workspace.training(folder / "out"), "--resume"], folder / "out", 8.0
    if kind == "eval":
        words = ["--run", str(workspace.run), "--store", str(workspace.store), "--quick", "-q", "--overwrite"]
        return "eval", [*words, "--out", str(folder / "out")], folder / "out", 10.0
    if kind == "repair":
        store = folder / "out"
        if not store.exists():
            shutil.copytree(workspace.store, store)
            (store / "bballs/train/frames").rename(store / "gone")
            shutil.rmtree(store / "gone")
        return "data", ["repair", str(store), "bballs/train", "-q"], store, 2.0
    if kind == "preview":
        return "data", ["preview", str(workspace.store), "bballs/train", "-o", str(folder / "out")], folder / "out", 3.0
    if kind == "stats":
        return "data", ["stats", str(workspace.store), "bballs/train", "-o", str(folder / "out")], folder / "out", 3.0
    if kind == "card":
        words = ["card", str(workspace.store), "--date", "2020-02-02", "-q", "--overwrite"]
        return "data", [*words, "-o", str(folder / "out")], folder / "out", 4.0
    if kind == "page":
        (folder / "out").mkdir(exist_ok=True)
        words = ["view", str(workspace.store), "--export", str(folder / "out/page.html"), "--overwrite"]
        return "data", [*words, "--group", "bballs/train"], folder / "out", 3.0
    if kind == "weights":
        words = ["--out", str(workspace.run), "--export", str(folder / "out"), "-q"]
        return "train", words, folder / "out", 3.0
    form = rng.choice(["npz", "hdf5", "gif", "parquet", "webdataset"])
    words = ["export", str(workspace.store), "bballs/train", "-f", form, "-q", "--overwrite", "-o", str(folder / "out")]
    return "data", words, folder / "out", 2.0


def command_name(words: list[str]) -> str:
    """A name for a command, whatever folders and workers it is given."""
    named = [word.strip("-/") for word in words if not word.startswith("/") and word not in ("1", "2", "3", "-j")]
    return "-".join(named)[:100].replace("/", "_").replace("=", "_")


def reference_of(workspace: Workspace, program: str, words: list[str], out: Path) -> Path:
    """What the command leaves when nobody disturbs it; made once for each command, before it is disturbed."""
    if "repair" in words:
        return workspace.store

    def make(path: Path) -> None:
        if out.exists():
            shutil.copytree(out, path)
        status, _, err = command(program, *(word.replace(str(out), str(path)) for word in words))
        if status:
            raise Finding(f"undisturbed, {words} fails with {status}: {err}")

    return workspace.made(f"reference-{command_name(words)}", make)


def finish(workspace: Workspace, program: str, words: list[str], out: Path) -> None:
    """The same command again succeeds and leaves what it would have left undisturbed."""
    status, _, err = command(program, *words)
    if status not in done_statuses(program, words):
        raise Finding(f"cannot be finished after it was disturbed: {status} {err[-1000:]}")
    same_outcome(program, words, out, reference_of(workspace, program, words, out))


def done_statuses(program: str, words: list[str]) -> set[int]:
    """How a command may end that finds nothing left to do, or does it."""
    name = words[0] if program == "data" else "--export" if "--export" in words else ""
    return {0, ONCE.get(name, 0)}


def same_outcome(program: str, words: list[str], out: Path, reference: Path) -> None:
    if "--export" in words:
        same_tree(out, reference, "after a disturbance, --export")
    elif program == "train":
        for name in ("log.jsonl", "summary.json", "best.safetensors", "state.safetensors"):
            if (out / name).read_bytes() != (reference / name).read_bytes():
                raise Finding(f"{name} of a run that was disturbed differs")
    elif program == "data":
        same_tree(out, reference, f"after a disturbance, {words[0]}")


def _wait(rng: random.Random, process: object, seconds: float) -> None:
    """Until a random moment of the command's life, often an early one."""
    time.sleep(rng.random() * seconds if rng.random() < 0.8 else rng.random() * 0.3)


def kill(rng: random.Random, workspace: Workspace) -> int:
    """A command that writes is killed, once or several times, and finished: nothing is lost. Returns the kills."""
    with workspace.fresh() as folder:
        program, words, out, seconds = draw_job(rng, workspace, folder)
        reference_of(workspace, program, words, out)
        kills = 0
        for _ in range(rng.randint(1, 3)):
            process = started(program, *words)
            _wait(rng, process, seconds)
            kills += process.poll() is None
            process.kill()
            ended(process, DOCUMENTED | {-signal.SIGKILL})
        finish(workspace, program, words, out)
        return kills


def signals(rng: random.Random, workspace: Workspace) -> int:
    """A command gets one signal or a burst at a random moment, also while it starts. Returns the signals that came."""
    with workspace.fresh() as folder:
        program, words, out, seconds = draw_job(rng, workspace, folder)
        if finished := program != "eval" and rng.random() < 0.3:
            reference_of(workspace, program, words, out)
        process = started(program, *words)
        wait_for_handlers(process.pid)
        _wait(rng, process, seconds)
        sent = send_signals(rng, process, program, words)[0]
        if finished:
            finish(workspace, program, words, out)
        return sent


def send_signals(rng: random.Random, process: Any, program: str, words: list[str]) -> tuple[int, int]:
    """One signal or a burst of them: the command ends as documented. How many it lived to see, and its status."""
    sent = 0
    for _ in range(rng.choice([1, 1, 2, 3, 8])):
        sent += process.poll() is None
        process.send_signal(rng.choice([signal.SIGINT, signal.SIGTERM]))
        time.sleep(rng.choice([0, 0.001, 0.02]))
    return sent, ended_by_signal(process, program, words)


def ended_by_signal(process: Any, program: str, words: list[str]) -> int:
    status, _, err = ended(process, {130, *done_statuses(program, words)})
    if status == 130 and "interrupted" not in err:
        raise Finding(f"interrupted without a word: {process.args}")
    return status


def wait_for_handlers(pid: int) -> None:
    for _ in range(60_000):
        try:
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        except OSError:
            return
        caught = next((line.split()[1] for line in lines if line.startswith("SigCgt")), "0")
        if int(caught, 16) >> (signal.SIGTERM - 1) & 1:
            return
        time.sleep(0.001)


def full_disk(rng: random.Random, workspace: Workspace) -> None:
    """The system refuses files above a random size: an error with its status, and nothing is lost."""
    with workspace.fresh() as folder:
        program, words, out, _ = draw_job(rng, workspace, folder)
        limit = rng.choice([0, 1, 500, 3_000, 9_000, 20_000, 60_000, 200_000])
        # Python would cache modules that the limit has cut, for all who import them later.
        kept = {"PYTHONDONTWRITEBYTECODE": "1"}
        limits = {"RLIMIT_FSIZE": limit}
        if program != "eval":
            reference_of(workspace, program, words, out)
        status, _, err = command(program, *words, allowed={0, 6}, limits=limits, environment=kept)
        # What a forked command says is kept in files, too, and small limits cut it.
        if status and len(err) < limit and "cannot write" not in err and "File too large" not in err:
            raise Finding(f"the disk refused, and the message is {err}")
        if program != "eval":
            finish(workspace, program, words, out)


def rivals(rng: random.Random, workspace: Workspace) -> None:
    """Several writers want the same store, while somebody reads it: one writes at a time, and no reader is lied to."""
    with workspace.fresh() as folder:
        out = folder / "out"
        words = [*BALLS, "-o", str(out)]
        reference_of(workspace, "data", words, out)
        writers = [started("data", *words) for _ in range(rng.randint(2, 3))]
        while any(writer.poll() is None for writer in writers):
            if (out / "zarr.json").exists():
                wrong = [p for p in verify(out).problems if "unfinished" not in p and "not in the manifest" not in p]
                if wrong:
                    raise Finding(f"a reader beside writers sees {wrong[0]}")
            time.sleep(0.05)
        statuses = [ended(writer, {0, 5})[0] for writer in writers]
        if 0 not in statuses:
            raise Finding(f"of several writers none succeeded: {statuses}")
        finish(workspace, "data", words, out)
