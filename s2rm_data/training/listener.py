"""What a run tells whoever watches it: the command line, which shows it, and loggers, which keep it elsewhere.

What a run learns does not depend on them. Every run writes TensorBoard beside its own log; others are named with --log.
"""

import contextlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from s2rm_data.core.errors import DiskError, S2RMWarning
from s2rm_data.core.progress import Progress
from s2rm_data.core.registry import LOGGERS

ALWAYS = "tensorboard"  # the logger of every run


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
    """Keeps silent."""

    def say(self, text: str) -> None:
        """A sentence for people."""

    def start(self, name: str, step: int, total: int) -> None:
        """A run begins or resumes at `step`."""

    def pace(self, pace: Pace) -> None:
        """Called several times per second at most."""

    def step(self, record: Mapping[str, Any]) -> None:
        """Of every step: step, epoch, loss, norm and lr; told when they are read from the device, several at once."""

    def validated(self, result: Validated) -> None: ...

    def scoring(self, sequences: int) -> Progress:
        """All steps are done: the best weights and the references are scored, so many sequences in all."""
        return Progress()

    def picture(self, path: Path, step: int, animation: bytes) -> None:
        """Predictions beside the truth were drawn: a PNG at the path, and a GIF."""

    def finish(self, summary: dict[str, Any]) -> None: ...

    def stop(self) -> None:
        """Nothing more will come, whether or not the run is complete."""


class Logger(Listener):
    """Keeps what a run tells somewhere else; subclasses give `open`, `write` and, where need be, `picture` and `stop`.
    `folder` is that of the command, `config` what the run is made of, as JSON. A command of several seeds starts
    several runs, one after the other, each by its name. Files belong into the folder, in one of the logger's name."""

    def __init__(self, folder: Path, config: Mapping[str, Any]) -> None:
        self.folder, self.config = folder, config

    def open(self, name: str, config: dict[str, Any], step: int) -> None:
        """A run begins, or resumes at `step`: what was told of later steps will be told again."""
        raise NotImplementedError

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Values by names such as `train/loss` and `validation/f1`; a step may come twice."""
        raise NotImplementedError

    def start(self, name: str, step: int, total: int) -> None:
        self.stop()
        named = name if name == self.folder.name else f"{self.folder.name}-{name}"
        self.open(named, {**self.config, "total_steps": total}, step)

    def pace(self, pace: Pace) -> None:
        speed = {"train/steps_per_second": pace.steps_per_second}
        self.write(pace.step, {"train/loss": pace.loss, "train/lr": pace.lr, **speed})

    def validated(self, result: Validated) -> None:
        scores = {f"validation/{name}": value for name, value in result.scores.items()}
        self.write(result.step, {"validation/loss": result.loss, **scores})

    def finish(self, summary: dict[str, Any]) -> None:
        for group, found in summary["held_out"].items():
            scores = {f"{group}/{name}": value for name, value in found.items() if isinstance(value, float)}
            self.write(summary["steps"], scores)
        self.stop()


class _Several:
    """Listeners one after the other; what the first one answers is the answer."""

    def __init__(self, *listeners: Listener) -> None:
        self._listeners = listeners

    def __getattr__(self, name: str) -> Callable[..., Any]:
        methods = [getattr(listener, name) for listener in self._listeners]

        def call_all(*arguments: Any) -> Any:
            first, *_ = [method(*arguments) for method in methods]
            return first

        return call_all


class _Optional:
    """A logger that, once the system refuses what it writes, is told nothing more: the run does not depend on it."""

    def __init__(self, logger: Logger) -> None:
        self._logger: Logger | None = logger

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            try:
                return self._logger and getattr(self._logger, name)(*arguments)
            except (OSError, DiskError) as error:
                lost, self._logger = self._logger, None
                with contextlib.suppress(OSError, DiskError):
                    cast(Logger, lost).stop()
                warnings.warn(f"the log of {type(lost).__name__} ends here: {error}", S2RMWarning, stacklevel=2)

        return call


def optional(logger: Logger) -> Listener:
    return cast(Listener, _Optional(logger))


def together(listener: Listener, *others: Listener) -> Listener:
    return cast(Listener, _Several(listener, *others)) if others else listener


def logged(listener: Listener, names: Sequence[str], folder: Path, config: Mapping[str, Any]) -> Listener:
    """The listener, and the loggers named beside it."""
    chosen = [LOGGERS.load(name) for name in dict.fromkeys(names) if name != ALWAYS]
    return together(listener, *(optional(logger(folder, config)) for logger in chosen))
