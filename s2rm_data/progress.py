"""How long work reports how far it has come; who listens decides what to show."""

from __future__ import annotations


class Progress:
    """Methods may be called from several threads; this one keeps silent."""

    def start(self, total: int, done: int) -> None:
        """Called once, when the amount of work is known; `done` of it was done before."""

    def advance(self, amount: int) -> None:
        """Called after every `amount` of work."""
