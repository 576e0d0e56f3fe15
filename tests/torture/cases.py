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
import time
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from forking import Forked
from patience import computed_seconds
from small_stores import make_small_store
from toy import ToySplit, tree

import s2rm_data
from s2rm_data.making.run import generate
from s2rm_data.store import Store

DOCUMENTED = {0, 2, 3, 4, 5, 6, 7, 130}  # exit statuses
COMMAND_SECONDS = 300  # of the processor
IDLE_SECONDS = 300  # without using it
CASE_SECONDS = 60  # of the processor, for a case in this process
MEMORY_BYTES = 1 << 30  # by which a case in this process may grow
COMMAND_MEMORY_BYTES = 12 << 30  # of a command's address space, most of which libraries reserve and never touch

PROGRAMS = {"data": "s2rm_data", "train": "s2rm_data.cli.train", "eval": "s2rm_data.cli.eval"}


class Finding(Exception):  # noqa: N818
    """Something broke; the message says what."""


class Borrowed:
    """A copy that is damaged and put right again: only what has changed is written anew."""

    def __init__(self, folder: Path, source: Path) -> None:
        self.folder, self.path = folder, folder / source.name
        shutil.copytree(source, self.path)
        self.files = sorted(path for path in self.path.rglob("*") if path.is_file())
        self.sound = {path: path.read_bytes() for path in self.files}
        self._folders = {path for path in folder.rglob("*") if path.is_dir()}
        self._stamps = {path: self._stamp(path) for path in self.files}

    @staticmethod
    def _stamp(path: Path) -> tuple[int, ...]:
        status = path.lstat()
        return status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns

    def is_sound(self, path: Path) -> bool:
        """Whether a file holds what it held, as after a swap with itself."""
        plain = path.is_file() and not path.is_symlink() and path.stat().st_size == len(self.sound[path])
        return plain and path.read_bytes() == self.sound[path]

    def put_right(self) -> None:
        seen = set()
        for name, _, _ in os.walk(self.folder):
            for path in list(Path(name).iterdir()):
                seen.add(path)
                strange = path not in self._folders and path not in self._stamps
                if strange or (path in self._stamps and self._stamp(path) != self._stamps[path]):
                    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
                    seen.discard(path)
        for path in sorted(self._folders - seen):
            path.mkdir()
        for path in self._stamps.keys() - seen:
            path.write_bytes(self.sound[path])
            self._stamps[path] = self._stamp(path)


class Workspace:
    """A folder with sound stores and runs, made once, and a fresh folder for each case."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._copies: dict[Path, Borrowed] = {}
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

    @cached_property
    def opened(self) -> Store:
        """The store of both worlds, opened once."""
        return Store(self.store)

    @contextlib.contextmanager
    def fresh(self) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(dir=self.folder, prefix="case-") as folder:
            yield Path(folder)

    @contextlib.contextmanager
    def borrowed(self, source: Path) -> Iterator[Borrowed]:
        """A copy of a sound store or run, in a folder of its own, to be broken; it is put right again afterwards."""
        if source not in self._copies:
            self._copies[source] = Borrowed(Path(tempfile.mkdtemp(dir=self.folder, prefix="copy-")), source)
        try:
            yield self._copies[source]
        finally:
            self._copies[source].put_right()


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
            before, computed = computed, computed_seconds(process.pid)
            idle = idle + 1 if computed == before else 0
        if idle == 5 or computed > COMMAND_SECONDS:
            process.kill()
            raise Finding(f"hangs: {process.args} {process.communicate()[1][-500:]}")


def forked(program: str, *words: str, **options: Any) -> Forked:
    """The same command without its start-up; see tests/support/forking.py. Its memory is bounded, too."""
    limits = {"RLIMIT_AS": COMMAND_MEMORY_BYTES, **options.pop("limits", {})}
    return Forked(f"s2rm-{program}", *words, limits=limits, **options)


def command(program: str, *words: str, allowed: set[int] = DOCUMENTED, **options: Any) -> tuple[int, str, str]:
    return ended(forked(program, *words, **options), allowed)


@contextlib.contextmanager
def bounded() -> Iterator[None]:
    """Work in this process that may neither hang nor take much memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * os.sysconf("SC_PAGE_SIZE") + MEMORY_BYTES, before[1]))

    computed = time.process_time()

    def too_long(number: int, frame: object) -> None:
        nonlocal computed
        earlier, computed = computed, time.process_time()
        if number == signal.SIGALRM and computed - earlier > 0.1:  # slow, on a busy machine, but at work
            signal.alarm(IDLE_SECONDS)
            return
        raise Finding(f"hangs: more than {CASE_SECONDS} s of the processor, or {IDLE_SECONDS} s without using it")

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
