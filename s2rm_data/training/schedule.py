"""Learning rates, and the watch for losses that run away. Both are small states that go to JSON and back exactly."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Self

from s2rm_data.errors import S2RMError
from s2rm_data.training.config import TrainConfig


class DivergedError(S2RMError):
    """Training ran away; the last good checkpoint is kept."""

    exit_status = 7


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """`plateau`: the rate is cut when `patience` validations in a row have not improved the best loss by `threshold`
    (relative), as the paper words it. `cosine`: half a cosine over the whole budget. Both after a linear warm-up.
    """

    best: float = math.inf
    bad: int = 0
    cuts: int = 0

    def lr(self, config: TrainConfig, step: int, total: int) -> float:
        """The rate of step `step`, counted from 0."""
        lr = config.lr * min(1.0, (step + 1) / max(config.warmup_steps, 1))
        if config.schedule == "cosine":
            fall = 0.5 * (1 + math.cos(math.pi * min(step / total, 1.0)))
            return lr * (config.cosine_floor + (1 - config.cosine_floor) * fall)
        return lr * config.plateau_factor**self.cuts

    def after_validation(self, config: TrainConfig, loss: float) -> Schedule:
        if loss < self.best * (1 - config.plateau_threshold):
            return Schedule(best=loss, bad=0, cuts=self.cuts)
        if self.bad + 1 >= config.plateau_patience:
            return Schedule(best=self.best, bad=0, cuts=self.cuts + 1)
        return Schedule(best=self.best, bad=self.bad + 1, cuts=self.cuts)

    def to_json(self) -> dict[str, Any]:
        return _plain(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        return cls(**{**data, "best": math.inf if data["best"] is None else data["best"]})


@dataclass(frozen=True, kw_only=True)
class LossWatch:
    """A smoothed training loss and the smallest it has been."""

    smoothed: float = 0.0
    smallest: float = math.inf
    count: int = 0

    _KEEP = 0.95
    _SETTLE = 50  # steps before anything is compared

    def after(self, loss: float, step: int, config: TrainConfig) -> LossWatch:
        """With the loss of one more step; raises DivergedError if it is not finite or runs away."""
        if not math.isfinite(loss):
            raise DivergedError(_advice(f"the loss or its gradient is {loss} at step {step}", config))
        keep = min(self._KEEP, self.count / (self.count + 1))
        smoothed = keep * self.smoothed + (1 - keep) * loss
        if self.count >= self._SETTLE and smoothed > config.explosion_factor * self.smallest:
            message = f"the loss explodes: {smoothed:.4g} at step {step}, after it had been {self.smallest:.4g}"
            raise DivergedError(_advice(message, config))
        return LossWatch(smoothed=smoothed, smallest=min(self.smallest, smoothed), count=self.count + 1)

    def to_json(self) -> dict[str, Any]:
        return _plain(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        return cls(**{**data, "smallest": math.inf if data["smallest"] is None else data["smallest"]})


def check_validation(loss: float, step: int, config: TrainConfig) -> None:
    """Validation runs over longer sequences than training, in which a state may grow without bound."""
    if not math.isfinite(loss):
        raise DivergedError(_advice(f"the validation loss is {loss} after step {step}", config))


def _plain(state: Any) -> dict[str, Any]:
    """JSON knows no infinity: None stands for it."""
    return {key: None if value == math.inf else value for key, value in dataclasses.asdict(state).items()}


def _advice(message: str, config: TrainConfig) -> str:
    clip = f"a smaller --set clip_norm={config.clip_norm / 2:g}" if config.clip_norm else "--set clip_norm=1"
    precision = ", --set precision=float32" if config.precision == "mixed" else ""
    modules = ", --set normalise_rows=true" if config.model.startswith("s2") else ""
    return (
        f"{message}; the last good checkpoint is kept. Try a smaller rate (--lr {config.lr / 3:.1g}), {clip}, "
        f"a longer warm-up (--set warmup_steps=500){precision}{modules}, or another --seed"
    )
