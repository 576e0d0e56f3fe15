"""Progress of long work, on standard error: a live bar on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType

import click

from s2rm_data.progress import Progress

LINE_SECONDS = 5.0  # between two plain lines


class QuietProgress(Progress):
    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class LineProgress(QuietProgress):
    """`s2rm-data: 12,000 of 27,000 sequences, 44%, 9 s left`, every few seconds."""

    def __init__(self, unit: str) -> None:
        self._unit = unit
        context = click.get_current_context(silent=True)
        self._program = (context.find_root().info_name if context else None) or "s2rm-data"
        self._mutex = threading.Lock()
        self._total = self._done = self._already = 0
        self._waiting = True
        self._begun = self._said = time.monotonic()
        self._slow_start = threading.Timer(LINE_SECONDS, self._say, ["starting (the first run compiles code)"])
        self._slow_start.daemon = True

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
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
                self._waiting = False
                self._slow_start.cancel()
                self._begun = self._said = now
                self._already = self._done
            if now - self._said >= LINE_SECONDS:
                self._said = now
                left = (self._total - self._done) * (now - self._begun) / max(self._done - self._already, 1)
                self._say(f"{100 * self._done // self._total}%, {left:.0f} s left")

    def _say(self, text: str) -> None:
        click.echo(f"{self._program}: {self._done:,} of {self._total:,} {self._unit}, {text}", err=True)


class BarProgress(QuietProgress):
    """A bar with speed and time left; honours NO_COLOR."""

    def __init__(self, doing: str, unit: str) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            MofNCompleteColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )
        from rich.progress import Progress as Bar

        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            *([DownloadColumn()] if unit == "bytes" else [MofNCompleteColumn(), TextColumn(unit)]),
            TextColumn("elapsed"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self._doing = doing
        self._task = self._bar.add_task(f"{doing} (compiles on the first run)", total=None)

    def __enter__(self) -> Progress:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def start(self, total: int, done: int) -> None:
        self._bar.update(self._task, total=total, completed=done)

    def advance(self, amount: int) -> None:
        self._bar.update(self._task, advance=amount, description=self._doing)


def progress_for(doing: str, unit: str, *, quiet: bool) -> QuietProgress:
    if quiet:
        return QuietProgress()
    return BarProgress(doing, unit) if sys.stderr.isatty() else LineProgress(unit)
