"""What a run tells whoever watches it; this one keeps silent. The command line shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from s2rm_data.progress import Progress


@dataclass(frozen=True, kw_only=True)
class Pace:
    """Speed since the run was started or resumed."""

    step: int
    total: int
    loss: float
    lr: float
    steps_per_second: float
    waiting_share: float  # of the time, for data
    seconds_left: float


@dataclass(frozen=True, kw_only=True)
class Validated:
    step: int
    epoch: int
    loss: float
    is_best: bool
    scores: dict[str, float]
    titles: Mapping[str, str] = field(default_factory=dict)  # of the scores to show, by name
    references: dict[str, dict[str, float]] = field(default_factory=dict)


class Listener:
    def say(self, text: str) -> None:
        """A sentence for people."""

    def start(self, name: str, step: int, total: int) -> None:
        """A run begins or resumes at `step`."""

    def pace(self, pace: Pace) -> None:
        """Called several times per second at most."""

    def validated(self, result: Validated) -> None: ...

    def scoring(self, sequences: int) -> Progress:
        """All steps are done: the best weights and the references are scored, so many sequences in all."""
        return Progress()

    def picture(self, path: Path, step: int) -> None:
        """Predictions beside the truth were drawn."""

    def finish(self, summary: dict[str, Any]) -> None: ...

    def stop(self) -> None:
        """Nothing more will come, whether or not the run is complete."""
