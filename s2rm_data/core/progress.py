"""How long work reports how far it has come; who listens decides what to show."""

from __future__ import annotations

import threading


class Progress:
    """Methods may be called from several threads; this one keeps silent."""

    def start(self, total: int, done: int) -> None:
        """Called once, when the amount of work is known; `done` of it was done before."""

    def advance(self, amount: int) -> None:
        """Called after every `amount` of work."""


class Compiling:
    """How many functions are being compiled at this moment, so that whoever waits for them can be told."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._count = 0

    def begin(self) -> None:
        with self._mutex:
            self._count += 1

    def end(self) -> None:
        with self._mutex:
            self._count = max(0, self._count - 1)

    def __bool__(self) -> bool:
        return self._count > 0


COMPILING = Compiling()
