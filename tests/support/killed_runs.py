"""Runs that are killed at a step, in this process."""

from __future__ import annotations

from s2rm_data.training.listener import Listener, Pace


class Killed(BaseException):
    """Stands for a kill: nothing of the run catches it or cleans up after it."""


class KillAt(Listener):
    def __init__(self, step: int, kill: type[BaseException] = Killed) -> None:
        self.at, self.kill = step, kill

    def pace(self, pace: Pace) -> None:
        if pace.step == self.at:
            raise self.kill
