"""Progress of long work, on standard error: a live bar on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from s2rm_data.core.amounts import human
from s2rm_data.core.progress import COMPILING, Progress
from s2rm_data.core.signals import program_name

if TYPE_CHECKING:
    from rich.console import Console

LINE_SECONDS = 5.0  # between two plain lines
SHORTEST_BAR = 8  # columns; where there are fewer, counts stand alone
COMPILE_WORDS = "compiling code, once per installation"


def say(text: str) -> None:
    """A sentence on standard error, begun with the program's name."""
    print(f"{program_name()}: {text}", file=sys.stderr)


class QuietProgress(Progress):
    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *error: object) -> None: ...


class LineProgress(QuietProgress):
    """`s2rm-data: 12,000 of 27,000 sequences, 44%, 9 s left`, every few seconds."""

    def __init__(self, unit: str) -> None:
        self._unit, self._mutex = unit, threading.Lock()
        self._total = self._done = self._already = 0
        self._waiting = True
        self._begun = self._said = time.monotonic()
        self._slow_start = threading.Timer(LINE_SECONDS, lambda: self._say(COMPILE_WORDS if COMPILING else "starting"))
        self._slow_start.daemon = True

    def __exit__(self, *error: object) -> None:
        self._slow_start.cancel()

    def start(self, total: int, done: int) -> None:
        self._total, self._done, self._already = total, done, done
        if 0 < done < total:
            self._say("were there already")
        if done < total:
            self._slow_start.start()

    def advance(self, amount: int) -> None:
        with self._mutex:
            now = time.monotonic()
            self._done += amount
            if self._waiting:  # what came before was starting and compiling, which says nothing of the rest
                self._slow_start.cancel()
                self._waiting, self._begun, self._said, self._already = False, now, now, self._done
            if now - self._said >= LINE_SECONDS:
                self._said = now
                left = (self._total - self._done) * (now - self._begun) / max(self._done - self._already, 1)
                self._say(f"{100 * self._done // self._total}%, {left:.0f} s left")

    def _say(self, text: str) -> None:
        say(f"{self._done:,} of {self._total:,} {self._unit}, {text}")


class BarProgress(QuietProgress):
    """Two lines: what is being done, and a bar with counts and times, which takes what they leave; honours NO_COLOR."""

    def __init__(self, doing: str, unit: str, console: Console | None = None) -> None:
        from rich.console import Console
        from rich.live import Live

        self._doing, self._unit, self._mutex = doing, unit, threading.Lock()
        self._total: int | None = None
        self._done = self._already = 0
        self._begun = time.monotonic()
        self._first: float | None = None  # when something had been done: before that it was starting and compiling
        self._console = console or Console(stderr=True)
        self._live = Live(console=self._console, get_renderable=self._picture, refresh_per_second=4)

    def __enter__(self) -> Progress:
        self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._live.stop()

    def start(self, total: int, done: int) -> None:
        with self._mutex:
            self._total, self._done, self._already = total, done, done

    def advance(self, amount: int) -> None:
        with self._mutex:
            self._done += amount
            if self._first is None:
                self._first, self._already = time.monotonic(), self._done

    def _picture(self) -> Any:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table

        with self._mutex:
            counts, title = self._counts(), self._doing if self._total is not None else f"{self._doing}: starting"
            if self._first is None and COMPILING:
                title = f"{self._doing}: {COMPILE_WORDS}"
        width = min(40, self._console.width - len(counts) - 1)
        row = Table.grid(padding=(0, 1))
        if width >= SHORTEST_BAR:
            row.add_row(ProgressBar(total=self._total, completed=self._done, width=width), counts)
        else:
            row.add_row(counts)
        return Group(title, row)

    def _counts(self) -> str:
        """`1,200 of 27,000 sequences, 0:12, 3:40 left`; without the times where the terminal is too narrow for them."""
        if self._total is None:
            return _clock(time.monotonic() - self._begun)
        done, total = self._done, self._total
        counts = f"{human(done)} of {human(total)}" if self._unit == "bytes" else f"{done:,} of {total:,} {self._unit}"
        times = f", {_clock(time.monotonic() - self._begun)}"
        if self._first is not None and done > self._already:
            seconds = (total - done) * (time.monotonic() - self._first) / (done - self._already)
            times += f", {_clock(seconds)} left"
        return counts + times if len(counts + times) <= self._console.width else counts


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def progress_for(doing: str, unit: str, *, quiet: bool) -> QuietProgress:
    return QuietProgress() if quiet else BarProgress(doing, unit) if sys.stderr.isatty() else LineProgress(unit)
