"""Learning rates, the watch for losses that run away, budgets that are raised, and the stages of a run.

A larger `steps` or `epochs` replaces the budget in config.json, which keeps the earlier ones as `earlier_budgets`; all
else stays as it was. From the step that the run has reached, everything is as in a run of the new budget. With
`plateau` no rate depends on the budget, so that the run becomes what it would have been with the new budget from the
start (if its last step was one that validates anyway). With `cosine` the rate rises to where the longer cosine has it.

Stages: many short windows first, from which a codec is learned soonest; then, if the config says so, fewer and longer
ones, from which the dynamics learn to remember."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Self

from s2rm_data.core.check import to_json
from s2rm_data.core.errors import ConflictError, DamagedStoreError, S2RMError
from s2rm_data.core.registry import MODELS
from s2rm_data.learning import TrainingBatches
from s2rm_data.learning.windows import Share
from s2rm_data.training.config import TrainConfig
from s2rm_data.training.data import RunData
from s2rm_data.training.folder import RunFolder


class DivergedError(S2RMError):
    """Training ran away; the last good checkpoint is kept."""

    exit_status = 7


class _State:
    """Goes to JSON, which knows no infinity: None stands for it."""

    def to_json(self) -> dict[str, Any]:
        return {key: None if value == math.inf else value for key, value in vars(self).items()}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        return cls(**{key: math.inf if value is None else value for key, value in data.items()})


@dataclass(frozen=True, kw_only=True)
class Schedule(_State):
    """`plateau`: the rate is cut when `patience` validations in a row have not improved the best loss by `threshold`
    (relative), as the paper words it. `cosine`: half a cosine over the whole budget. Both after a linear warm-up."""

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
            return dataclasses.replace(self, best=loss, bad=0)
        if self.bad + 1 >= config.plateau_patience:
            return dataclasses.replace(self, bad=0, cuts=self.cuts + 1)
        return dataclasses.replace(self, bad=self.bad + 1)


@dataclass(frozen=True, kw_only=True)
class LossWatch(_State):
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


def check_validation(loss: float, step: int, config: TrainConfig) -> None:
    """Validation runs over longer sequences than training, in which a state may grow without bound."""
    if not math.isfinite(loss):
        raise DivergedError(_advice(f"the validation loss is {loss} after step {step}", config))


def _advice(message: str, config: TrainConfig) -> str:
    clip = f"a smaller --set clip_norm={config.clip_norm / 2:g}" if config.clip_norm else "--set clip_norm=1"
    precision = ", --set precision=float32" if config.precision == "mixed" else ""
    modules = f", --set {steadier}" if (steadier := MODELS.load(config.model).steadier) else ""
    return (
        f"{message}; the last good checkpoint is kept. Try a smaller rate (--lr {config.lr / 3:.1g}), {clip}, "
        f"a longer warm-up (--set warmup_steps=500){precision}{modules}, or another --seed"
    )


BUDGET = ("steps", "epochs")
EARLIER = "earlier_budgets"


def budget_of(config: TrainConfig) -> dict[str, Any]:
    return {name: getattr(config, name) for name in BUDGET}


def earlier_configs(saved: TrainConfig, document: dict[str, Any], folder: RunFolder) -> list[TrainConfig]:
    """The run's config under each budget that it had before the present one."""
    try:
        return [dataclasses.replace(saved, **{n: budget[n] for n in BUDGET}) for budget in document.get(EARLIER, [])]
    except (S2RMError, TypeError, KeyError, ValueError) as error:
        raise DamagedStoreError(f"{folder.config} is damaged: its {EARLIER} make no sense ({error!r})") from None


def check_longer(saved: TrainConfig, wanted: TrainConfig, steps_per_epoch: int, folder: RunFolder) -> None:
    before, after = (config.total_steps(steps_per_epoch) for config in (saved, wanted))
    if after < before:
        raise ConflictError(
            f"{folder.path} was started for {before:,} steps, and {after:,} were asked for; a run can be trained "
            "longer, not shorter: leave --steps and --epochs out to resume it, or start another one with another --out"
        )


def replace_budget(folder: RunFolder, document: dict[str, Any], saved: TrainConfig, wanted: TrainConfig) -> None:
    """The same document with the budget of `wanted`; the run is then no longer complete."""
    config = to_json(saved) | budget_of(wanted)
    folder.replace_config(document | {"config": config, EARLIER: [*document.get(EARLIER, []), budget_of(saved)]})


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Steps `begin` to `end` of a run; epochs are numbered on from stage to stage."""

    batches: TrainingBatches
    begin: int
    end: int
    first_epoch: int = 0

    def place(self, step: int) -> tuple[int, int]:
        """The epoch of a step of the run, and its number in the epoch."""
        epoch, within = divmod(step - self.begin, self.batches.steps_per_epoch)
        return self.first_epoch + epoch, within


def stages_of(config: TrainConfig, data: RunData, share: Share | None = None) -> list[Stage]:
    common: dict[str, Any] = {"seed": config.seed, "share": share, "shuffle_shards": config.shuffle_shards}
    batches = TrainingBatches(data.train, batch_size=config.batch_size, **common)
    total = config.total_steps(batches.steps_per_epoch)
    if config.late_window is None:
        return [Stage(batches=batches, begin=0, end=total)]
    early = Stage(batches=batches, begin=0, end=round(total * config.late_from))
    batch_size = config.late_batch_size or config.batch_size
    late = TrainingBatches(data.windows(config.late_window), batch_size=batch_size, **common)
    epochs, within = early.place(early.end)
    return [early, Stage(batches=late, begin=early.end, end=total, first_epoch=epochs + (within > 0))]
