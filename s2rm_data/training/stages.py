"""The stages of a run: many short windows first, from which a codec is learned soonest; then, if the config says so,
fewer and longer ones, from which the dynamics learn to remember.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from s2rm_data.loading import TrainingBatches
from s2rm_data.loading.batches import Share
from s2rm_data.training.config import TrainConfig
from s2rm_data.training.data import RunData


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
