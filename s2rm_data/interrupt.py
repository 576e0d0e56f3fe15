"""Interrupts: what SIGINT and SIGTERM do, without ever raising an exception where it cannot be handled.

Python runs a signal handler between any two instructions of the main thread. An exception raised there can surface
inside a lock, a `__del__` or an import, where it breaks things or is swallowed. Hence:

- While a program starts, and again once it has failed, a signal ends it at once (`begin_program`, `end_at_once`).
  Killing is always safe: files are written whole.
- Loops that can stop by themselves look at a flag (`Interrupt`). A second signal, a second or more later, ends the
  program at once.
- Elsewhere a `KeyboardInterrupt` is raised once, so that temporary files are removed; if it is swallowed, or removing
  takes more than PATIENCE_SECONDS, the program is ended.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from types import FrameType, TracebackType
from typing import Any, NoReturn, Self

EXIT_STATUS = 130
BURST_SECONDS = 1.0  # signals that follow the first within this time are the same wish
PATIENCE_SECONDS = 20.0  # from the exception to the end of the program


class _Program:
    """This process as a program; the class is its only instance."""

    name = ""
    ends_at_once = True
    asked_at: float | None = None


def begin_program(name: str) -> None:
    """Take charge of SIGINT, unless it is ignored as in a shell's background, and of SIGTERM."""
    _Program.name = name
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _on_signal)
    signal.signal(signal.SIGALRM, lambda number, frame: leave())
    sys.unraisablehook = _on_unraisable
    threading.excepthook = _on_thread_error


def raise_from_now_on() -> None:
    """From here to `end_at_once` a signal raises `KeyboardInterrupt` in the main thread."""
    _Program.ends_at_once = False


def end_at_once() -> None:
    _Program.ends_at_once = True


def was_interrupted() -> bool:
    return _Program.asked_at is not None


def _on_signal(number: int, frame: FrameType | None) -> None:
    now = time.monotonic()
    if _Program.ends_at_once:
        leave()
    if _Program.asked_at is None:
        _Program.asked_at = now
        signal.setitimer(signal.ITIMER_REAL, PATIENCE_SECONDS)
        raise KeyboardInterrupt
    if now - _Program.asked_at > BURST_SECONDS:
        leave()


def leave() -> NoReturn:
    """End the process now, with the message and the status of an interrupt."""
    try:
        os.write(2, f"{_Program.name}: interrupted; everything committed so far is safe\n".encode())
    finally:
        os._exit(EXIT_STATUS)


def _on_unraisable(unraisable: Any) -> None:
    if unraisable.exc_type is not None and issubclass(unraisable.exc_type, KeyboardInterrupt):
        leave()  # it was raised where nobody can catch it
    if not was_interrupted():
        sys.__unraisablehook__(unraisable)


def _on_thread_error(arguments: Any) -> None:
    if not was_interrupted():
        threading.__excepthook__(arguments)


class Interrupt:
    """While it is entered, `asked` tells whether somebody wants the work to stop. Inert outside the main thread.

    A signal that nobody has acted upon when the block is left takes effect then.
    """

    def __init__(self) -> None:
        self.asked = False
        self._asked_at = 0.0
        self._number = signal.SIGINT
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._previous[number] = signal.signal(number, self._ask)
        return self

    def _ask(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if not self.asked:
            self.asked, self._asked_at, self._number = True, now, signal.Signals(number)
        elif now - self._asked_at > BURST_SECONDS:
            if _Program.name:
                leave()
            raise KeyboardInterrupt

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        if self.asked and kind is None:
            signal.raise_signal(self._number)
