"""Interrupts: what SIGINT and SIGTERM do, without ever raising an exception where it cannot be handled.

Python runs a signal handler between any two instructions of the main thread. An exception raised there can surface
inside a lock, a `__del__` or an import, where it breaks things or is swallowed. Hence:

- While a program starts, and again once it has failed, a signal ends it at once (`begin_program`, `end_at_once`).
  Killing is always safe: files are written whole.
- Loops that can stop by themselves look at a flag (`Interrupt`). A second signal, a second or more later, ends the
  program at once.
- A main thread that waits inside a library runs no handler; a thread beside it ends the program (`EndsWhenStuck`).
- Elsewhere a `KeyboardInterrupt` is raised once, so that temporary files are removed; if it is swallowed, or removing
  takes more than PATIENCE_SECONDS, the program is ended.
"""

from __future__ import annotations

import atexit
import os
import signal
import socket
import sys
import threading
import time
from types import FrameType
from typing import Any, NoReturn, Self

EXIT_STATUS = 130
SAME_COMMAND = "Run the same command again to resume"  # the advice of most
BURST_SECONDS = 1.0  # signals that follow the first within this time are the same wish
PATIENCE_SECONDS = 20.0  # from the exception to the end of the program
STUCK_SECONDS = 10.0  # from a signal to the end of a program that does not look at it


class _Program:
    """This process as a program; the class is its only instance."""

    name = ""
    advice = ""  # how to resume the work that is being done
    ends_at_once = True
    asked_at: float | None = None
    handled_at: float | None = None  # when a handler last ran


def begin_program(name: str) -> None:
    """Take charge of SIGINT, unless it is ignored as in a shell's background, and of SIGTERM."""
    if not _Program.name:
        atexit.register(_ignore_signals)
    _Program.name = name
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _on_signal)
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, lambda number, frame: leave())
    sys.unraisablehook = _on_unraisable
    threading.excepthook = _on_thread_error


def program_name() -> str:
    """Of the command that runs; of the package where a program uses it."""
    return _Program.name or "s2rm-data"


def _ignore_signals() -> None:
    """All is said and done: a signal while Python takes itself apart, without our handlers, changes nothing."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def raise_from_now_on() -> None:
    """From here to `end_at_once` a signal raises `KeyboardInterrupt` in the main thread."""
    _Program.ends_at_once = False


def end_at_once() -> None:
    _Program.ends_at_once = True


def was_interrupted() -> bool:
    return _Program.asked_at is not None


def _on_signal(number: int, frame: FrameType | None) -> None:
    now = _Program.handled_at = time.monotonic()
    if _Program.ends_at_once:
        leave()
    if _Program.asked_at is None:
        _Program.asked_at = now
        _limit_patience()
        raise KeyboardInterrupt
    if now - _Program.asked_at > BURST_SECONDS:
        leave()


def _limit_patience() -> None:
    if hasattr(signal, "setitimer"):  # not on Windows
        signal.setitimer(signal.ITIMER_REAL, PATIENCE_SECONDS)


def interrupt_message() -> str:
    """What an interrupted program says, however it ends."""
    return f"interrupted; everything committed so far is safe{_Program.advice and '. '}{_Program.advice}"


def leave() -> NoReturn:
    """End the process now, with the message and the status of an interrupt."""
    try:
        os.write(2, f"{_Program.name}: {interrupt_message()}\n".encode())
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
    """While it is entered, `asked` tells whether somebody wants the work to stop. Inert outside the main thread. A
    signal that nobody has acted upon when the block is left takes effect then. `advice`, how to resume, is part of the
    last message."""

    def __init__(self, advice: str = "") -> None:
        self.asked = False
        self._advice = advice
        self._asked_at = 0.0
        self._number = signal.SIGINT
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            _Program.advice = self._advice
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._previous[number] = signal.signal(number, self._ask)
        return self

    def _ask(self, number: int, frame: FrameType | None) -> None:
        now = _Program.handled_at = time.monotonic()
        if not self.asked:
            self.asked, self._asked_at, self._number = True, now, signal.Signals(number)
        elif now - self._asked_at > BURST_SECONDS:
            if _Program.name:
                leave()
            raise KeyboardInterrupt

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if self.asked and kind is not None and _Program.name and _Program.asked_at is None:
            # It was acted upon. What else comes of the same burst must not disturb those who now finish their files,
            # so this is noted before the other handlers are back.
            _Program.asked_at = self._asked_at
            _limit_patience()
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        if self.asked and kind is None:
            signal.raise_signal(self._number)
        elif kind is None and self._previous:
            _Program.advice = ""


class EndsWhenStuck:
    """While it is entered, SIGINT and SIGTERM end the program once the main thread runs no handler for STUCK_SECONDS.

    Processes that work together wait for each other inside torch; if one dies, nothing else would end the others. The
    main thread is asked again and again, by a signal that means nothing else. Inert outside it, and on Windows."""

    def __enter__(self) -> Self:
        self._previous: int | None = None
        if _QUESTION is not None and threading.current_thread() is threading.main_thread():
            mine, self._theirs = socket.socketpair()
            self._theirs.setblocking(False)
            self._over = threading.Event()
            signal.signal(_QUESTION, _on_question)
            self._previous = signal.set_wakeup_fd(self._theirs.fileno(), warn_on_full_buffer=False)
            threading.Thread(target=_watch, args=(mine, self._over), name="signals", daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._previous is not None:
            self._over.set()
            signal.set_wakeup_fd(self._previous)
            self._theirs.close()  # ends the thread


_QUESTION = getattr(signal, "SIGURG", None)  # ignored by whoever does not ask for it: one that comes late does no harm


def _on_question(number: int, frame: FrameType | None) -> None:
    _Program.handled_at = time.monotonic()


def _watch(signals: socket.socket, over: threading.Event) -> None:
    """Python writes the number of every signal to the socket, whatever the main thread does."""
    with signals:
        while numbers := signals.recv(64):
            if signal.SIGINT in numbers or signal.SIGTERM in numbers:
                asked_at = time.monotonic()
                while _QUESTION is not None and not over.wait(STUCK_SECONDS):
                    if _Program.handled_at is None or _Program.handled_at < asked_at - BURST_SECONDS:
                        leave()
                    asked_at = time.monotonic()
                    signal.pthread_kill(threading.main_thread().ident or 0, _QUESTION)
