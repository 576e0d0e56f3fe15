"""What all attacks share: the workspace with sound things to break, commands that are watched, and bounds."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from small_stores import make_small_store
from toy import ToySplit, tree

import s2rm_data
from s2rm_data.making import generate

DOCUMENTED = {0, 2, 3, 4, 5, 6, 7, 130}  # exit statuses
COMMAND_SECONDS = 300  # of the processor
IDLE_SECONDS = 300  # without using it
CASE_SECONDS = 60  # of the processor, for a case in this process
MEMORY_BYTES = 1 << 30  # by which a case in this process may grow

PROGRAMS = {"data": "s2rm_data", "train": "s2rm_data.cli.train", "eval": "s2rm_data.cli.eval"}


class Finding(Exception):  # noqa: N818
    """Something broke; the message says what."""


class Workspace:
    """A folder with sound stores and runs, made once, and a fresh folder for each case."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def made(self, name: str, make: Callable[[Path], object]) -> Path:
        """What `make` makes under a name of the workspace, once and whole."""
        path = self.folder / name
        if not path.exists():
            partial = self.folder / f"{name}.making"
            shutil.rmtree(partial, ignore_errors=True)
            make(partial)
            partial.rename(path)
        return path

    @cached_property
    def toy(self) -> Path:
        """A store of two toy splits, three shards and two."""
        splits = [ToySplit(), ToySplit(group="toy/val", count=5)]
        return self.made("toy.zarr", lambda path: generate(splits, path, shard_size=4))

    @cached_property
    def store(self) -> Path:
        """A store of both worlds."""
        return self.made("data.zarr", make_small_store)

    @cached_property
    def run(self) -> Path:
        """A complete run of a few steps."""

        def train(path: Path) -> None:
            status, _, err = command("train", *self.training(path))
            if status:
                raise Finding(f"the run to be attacked cannot be made: {err}")

        return self.made("run", train)

    def training(self, out: Path) -> list[str]:
        fields = ["window=4", "views=5", "queries=3", "width=2", "held_out_sequences=2", "checkpoint_seconds=0.001"]
        words = ["--store", str(self.store), "--task", "bballs", "--preset", "smoke", "--steps", "12", "-q"]
        words += ["--batch-size", "4", "--out", str(out), *(word for field in fields for word in ("--set", field))]
        return words

    @contextlib.contextmanager
    def fresh(self) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(dir=self.folder, prefix="case-") as folder:
            yield Path(folder)


def environment() -> dict[str, str]:
    package = str(Path(s2rm_data.__file__).parent.parent)
    return {**os.environ, "PYTHONPATH": package, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}


def started(program: str, *words: str, **options: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", PROGRAMS[program], *words],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        env=environment(),
        **options,  # type: ignore[call-overload]
    )


def ended(process: Any, allowed: set[int] = DOCUMENTED) -> tuple[int, str, str]:
    """How a command ended; a traceback, a hang or an undocumented status is a finding."""
    out, err = _output(process)
    if "Traceback" in err or "Exception ignored" in err:
        raise Finding(f"traceback: {process.args}\n{err[-3000:]}")
    if process.returncode not in allowed:
        raise Finding(f"exit status {process.returncode}: {process.args} {err[-500:]}")
    return process.returncode, out, err


def _output(process: Any) -> tuple[str, str]:
    """Of a command that ends. On a busy machine it may take long; it hangs if it computes no more, or without end."""
    computed, idle = 0.0, 0
    while True:
        try:
            out, err = process.communicate(timeout=IDLE_SECONDS / 5)
            return out, err
        except subprocess.TimeoutExpired:
            before, computed = computed, _processor_seconds(process.pid)
            idle = idle + 1 if computed == before else 0
        if idle == 5 or computed > COMMAND_SECONDS:
            process.kill()
            raise Finding(f"hangs: {process.args} {process.communicate()[1][-500:]}")


def _processor_seconds(pid: int) -> float:
    """Of a process, and of those it started and has waited for."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # it has ended meanwhile
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def command(program: str, *words: str, allowed: set[int] = DOCUMENTED, **options: object) -> tuple[int, str, str]:
    return ended(started(program, *words, **options), allowed)


@contextlib.contextmanager
def bounded() -> Iterator[None]:
    """Work in this process that may neither hang nor take much memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * os.sysconf("SC_PAGE_SIZE") + MEMORY_BYTES, before[1]))

    def too_long(number: int, frame: object) -> None:
        raise Finding(f"hangs: more than {CASE_SECONDS} s of the processor, or {IDLE_SECONDS} s in all")

    handlers = {number: signal.signal(number, too_long) for number in (signal.SIGALRM, signal.SIGPROF)}
    signal.alarm(IDLE_SECONDS)
    signal.setitimer(signal.ITIMER_PROF, CASE_SECONDS)
    try:
        yield
    except MemoryError:
        raise Finding(f"takes more than {MEMORY_BYTES:,} bytes") from None
    finally:
        signal.alarm(0)
        signal.setitimer(signal.ITIMER_PROF, 0)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        resource.setrlimit(resource.RLIMIT_AS, before)


def same_tree(made: Path, wanted: Path, what: str) -> None:
    """Whether two folders hold the same files, apart from what a kill leaves half written."""
    a, b = ({k: v for k, v in tree(p).items() if not k.endswith(".partial")} for p in (made, wanted))
    for name in sorted(a.keys() | b.keys()):
        if a.get(name) != b.get(name):
            raise Finding(f"{what}: {name} differs")


def generator(seed: int, attack: str, number: int) -> random.Random:
    return random.Random(f"{seed}/{attack}/{number}")
