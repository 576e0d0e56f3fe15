"""The block that this process shares with shim.c, and with the commands that it forks or starts."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).with_name("shim.c")
MOST, PATH = 40_000, 232
FAIL, SHORT, TORN, KILL = 1, 2, 3, 4
READS, WRITES, REMOVES, SYNCS, CLOSES = 1, 2, 4, 8, 16
ALL = READS | WRITES | REMOVES | SYNCS | CLOSES
MAIN_THREADS, OTHER_THREADS = 1, 2


class _Entry(ctypes.Structure):
    _fields_ = (
        ("op", ctypes.c_char * 14), ("kind", ctypes.c_ubyte), ("lane", ctypes.c_ubyte),
        ("path", ctypes.c_char * PATH), ("other", ctypes.c_char * PATH),
    )  # fmt: skip


class _Control(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int) for name in ("enabled", "tracing", "lane", "kind", "error", "sticky", "classes", "hit")),
        *((name, ctypes.c_long) for name in ("at", "count", "traced")),
        ("prefix", ctypes.c_char * 256),
        ("trace", _Entry * MOST),
    )


@dataclass(frozen=True)
class Call:
    """One call of a trace; `other` is where a rename leads."""

    op: str
    kind: int
    lane: int
    path: str
    other: str


def again_with_shim(work: Path) -> None:
    """Compile the shim and start this program again with it, unless it runs with it."""
    if "FAULTS_CONTROL" in os.environ:
        return
    work.mkdir(parents=True, exist_ok=True)
    library, control = work / f"shim-{os.getpid()}.so", work / f"control-{os.getpid()}"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-ldl"], check=True)
    with control.open("wb") as file:
        file.truncate(ctypes.sizeof(_Control))
    environment = {**os.environ, "FAULTS_CONTROL": str(control), "LD_PRELOAD": str(library)}
    os.execve(sys.executable, [sys.executable, *sys.argv], environment)


class Shim:
    def __init__(self, folder: Path) -> None:
        """Calls below `folder` count."""
        name = os.environ["FAULTS_CONTROL"]
        with open(name, "r+b") as file:  # noqa: PTH123
            self._map = mmap.mmap(file.fileno(), ctypes.sizeof(_Control))
        self.control: Any = _Control.from_buffer(self._map)
        self.control.prefix = f"{folder}/".encode()
        size = ctypes.CDLL(None).faults_size
        assert size() == ctypes.sizeof(_Control)

    @contextlib.contextmanager
    def traced(self, lane: int = 0) -> Iterator[list[Call]]:
        """The calls made meanwhile."""
        found: list[Call] = []
        control = self.control
        control.tracing, control.traced = 1, 0
        try:
            with self.armed(lane=lane):
                yield found
        finally:
            control.tracing = 0
            assert control.traced <= MOST
            found += [
                Call(entry.op.decode(), entry.kind, entry.lane, os.fsdecode(entry.path), os.fsdecode(entry.other))
                for entry in control.trace[: control.traced]
            ]

    @contextlib.contextmanager
    def armed(self, at: int = 0, kind: int = 0, error: int = 0, *, sticky: int = 0, lane: int = 0) -> Iterator[None]:
        """Call number `at` fails; with `sticky`, later ones of these classes as well."""
        control = self.control
        control.at, control.kind, control.error, control.lane = at, kind, error, lane
        control.sticky, control.classes, control.count, control.hit = int(bool(sticky)), sticky, 0, 0
        control.enabled = 1
        try:
            yield
        finally:
            control.enabled = 0

    @property
    def hit(self) -> bool:
        return bool(self.control.hit)
