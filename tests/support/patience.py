"""Waiting for processes: limits count the processors' time, so that a busy machine breaks no test.

A test that hangs without computing ends when the clock shows ten times its limit, as it would on a machine ten times
slower; no other limit is by the clock.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from forking import Forked

CPU_SECONDS = 120.0
CLOCK_SECONDS = 10 * CPU_SECONDS


def computed_seconds(pid: int) -> float:
    """Of the processor, by a process and all whom it started; 0 where the system has no /proc."""
    parents, ticks = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:  # has ended meanwhile
            continue
        number = int(path.parent.name)
        parents[number], ticks[number] = int(fields[1]), sum(map(int, fields[11:15]))  # with its ended children's
    family: set[int] = set()
    more = {pid} & parents.keys()
    while more:
        family |= more
        more = {number for number, parent in parents.items() if parent in family} - family
    return sum(ticks[number] for number in family) / os.sysconf("SC_CLK_TCK")


def finish(process: subprocess.Popen[Any] | Forked, cpu_seconds: float = CPU_SECONDS) -> tuple[Any, Any]:
    """What a process, once it has ended, has said; the test fails if it computes longer than it may."""
    until = time.monotonic() + 10 * cpu_seconds
    while True:
        try:
            return process.communicate(timeout=2)
        except subprocess.TimeoutExpired:
            spent = computed_seconds(process.pid)
        if spent > cpu_seconds or time.monotonic() > until:
            process.kill()
            raise AssertionError(f"does not end; computed {spent:.0f} of {cpu_seconds:.0f} s: {process.args}")


def complete(words: list[Any], cpu_seconds: float = CPU_SECONDS, **options: Any) -> subprocess.CompletedProcess[Any]:
    """Run a program to its end, as subprocess.run does; what it says is captured."""
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(words, **{**streams, **options}) as process:
        out, err = finish(process, cpu_seconds)
    return subprocess.CompletedProcess(words, process.returncode, out, err)


def wait_until(condition: Callable[[], object], process: subprocess.Popen[Any] | Forked | None = None) -> None:
    """Look until it is so, or until the process of which it is expected has ended."""
    until = time.monotonic() + CLOCK_SECONDS
    while not condition():
        if process is not None and process.poll() is not None:
            return
        assert time.monotonic() < until, "does not come"
        time.sleep(0.005)
