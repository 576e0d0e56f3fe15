"""One run: from its config and a store to a complete run folder, through any number of interruptions.

What a run learns is a function of its config and the data: weights start from the seed, batches are functions of (seed,
epoch, step), and a checkpoint holds all the rest. On a CPU a run that was killed and resumed is bit for bit the same.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import itertools
import math
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from s2rm_data.core.check import canonical_json, to_json
from s2rm_data.core.errors import DamagedStoreError, InterruptedRunError
from s2rm_data.core.registry import LOGGERS
from s2rm_data.core.signals import Interrupt
from s2rm_data.learning import FixedBatches, Prefetcher, TrainingBatches
from s2rm_data.models import build
from s2rm_data.models.weights import load_model, save_model
from s2rm_data.training.checkpoint import load_state, restore_tensors, save_state, state_tensors
from s2rm_data.training.config import MACHINE_FIELDS, TrainConfig
from s2rm_data.training.data import RunData
from s2rm_data.training.folder import RunFolder
from s2rm_data.training.journal import Journal, LogState
from s2rm_data.training.listener import ALWAYS, Listener, Pace, Validated, optional, together
from s2rm_data.training.machine import peak_memory_nbytes
from s2rm_data.training.processes import Processes
from s2rm_data.training.schedule import LossWatch, Schedule, check_validation, stages_of
from s2rm_data.training.scores import reference_scores, validate
from s2rm_data.training.stepper import Stepper, make_optimiser

LOOK_SECONDS = 0.5  # between two looks at a GPU's losses
AGREE_EVERY = 20  # steps between two moments at which several processes ask each other whether to save or stop


@dataclasses.dataclass(kw_only=True)
class RunState:
    """Where a run stands; goes to JSON with every checkpoint."""

    step: int = 0  # optimiser steps done
    best_loss: float | None = None
    best_step: int | None = None
    schedule: Schedule = dataclasses.field(default_factory=Schedule)
    watch: LossWatch = dataclasses.field(default_factory=LossWatch)

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "schedule": self.schedule.to_json(), "watch": self.watch.to_json()}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> RunState:
        states = {"schedule": Schedule.from_json(data["schedule"]), "watch": LossWatch.from_json(data["watch"])}
        return cls(**{**data, **states})


def learned_sha256(config: TrainConfig) -> str:
    """Of the fields that decide what is learned. Those that came later count only where they change something, so that
    runs of earlier versions, which did not have them, can be resumed."""
    left_out = [*MACHINE_FIELDS, *["shuffle_shards"] * (config.shuffle_shards is None)]
    left_out += ["query_share"] * (config.query_share == 1)
    left_out += ["late_from", "late_window", "late_batch_size"] * (config.late_window is None)
    fields = {name: value for name, value in to_json(config).items() if name not in left_out}
    return hashlib.sha256(canonical_json(fields)).hexdigest()


class Trainer:
    """`initial` are weights to start from instead of the seed's (fine-tuning); `earlier` are the run's configs under
    smaller budgets, with one of which its checkpoint may have been made."""

    def __init__(
        self, config: TrainConfig, data: RunData, folder: RunFolder, processes: Processes, *,
        listener: Listener | None = None, initial: Path | None = None, earlier: Sequence[TrainConfig] = (),
    ) -> None:  # fmt: skip
        self.config, self.data, self.folder, self.processes = config, data, folder, processes
        self.earlier, self.listener = earlier, listener or Listener()
        self.loggers = [optional(LOGGERS.load(ALWAYS)(folder.path, {}))] if processes.is_first else []
        self.device = torch.device(config.device)
        self.progress = RunState()
        torch.manual_seed(config.seed)
        self.model = load_model(initial) if initial else build(config.model, config.task, **data.model_fields(config))
        self.model.to(self.device)
        self.fine_tuning = initial is not None
        processes.agree(self.model)
        self.optimiser = make_optimiser(self.model, config)
        self.stepper = Stepper(self.model, self.optimiser, config, processes)
        self.stages = stages_of(config, data, processes.share)
        self.validation = FixedBatches(data.validation, batch_size=config.validation_batch_size, share=processes.share)
        self.total = self.stages[-1].end
        self.validate_every = config.validate_every or self.stages[0].batches.steps_per_epoch
        self._pending: list[tuple[int, float, Tensor]] = []  # step, rate, (loss, norm) not yet read from the device

    def run(self) -> dict[str, Any]:
        """Trains to the end of the budget; returns the summary, which is also in the folder."""
        log = self._restore()
        if self.config.compile:
            self.stepper.compile()
        self.references = reference_scores(self.data.learning, self.validation, self.processes)
        advice = f"Resume with: s2rm-train --resume --out {self.folder.path}"
        with self._recording(log) as self.journal, Interrupt(advice) as self.interrupt:
            self.watchers = together(self.listener, *self.loggers)
            self.watchers.start(self.folder.path.name, self.progress.step, self.total)
            if log.length == 0:
                self.journal.log({"kind": "references", **self.references})
                if self.fine_tuning:
                    self._validate()
                self._checkpoint()
            self._train()
        return self._complete()  # nothing to save in it any more: a signal ends it at once

    def _restore(self) -> LogState:
        """Continue from the folder's checkpoint if it has one; returns the log that belongs to it."""
        if not self.folder.state.exists():
            return LogState()
        tensors, record = load_state(self.folder.state)
        restore_tensors(tensors, self.model, self.optimiser, self.device, self.folder.state)
        known = [learned_sha256(config) for config in (self.config, *self.earlier)]
        if record.get("config_sha256", known[0]) not in known:
            raise DamagedStoreError(f"{self.folder.config} is not what {self.folder.state.name} was made with")
        try:
            self.progress = RunState.from_json(record["progress"])
            return LogState(int(record["log_bytes"]), record.get("log_sha256"))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DamagedStoreError(f"{self.folder.state} is damaged: its record makes no sense ({error!r})") from None

    @contextlib.contextmanager
    def _recording(self, log: LogState) -> Iterator[Journal]:
        journal = Journal(self.folder, self.data.learning, self.processes.is_first, log)
        try:
            yield journal
        finally:
            journal.close()
            for logger in self.loggers:
                logger.stop()

    def _train(self) -> None:
        self.clock = Clock(self.progress.step, self.total)
        for stage in (stage for stage in self.stages if self.progress.step < stage.end):
            self._train_stage(stage.batches, stage.place(self.progress.step), stage.end - self.progress.step)
        self._flush()

    def _train_stage(self, batches: TrainingBatches, begin: tuple[int, int], steps: int) -> None:
        keys, threads = itertools.islice(batches.keys_from(*begin), steps), self.config.loader_threads
        with Prefetcher(batches.source, keys, lambda key: batches.request(*key), threads=threads) as prefetcher:
            for _, batch in prefetcher:
                lr = self.progress.schedule.lr(self.config, self.progress.step, self.total)
                self._pending.append((self.progress.step, lr, self.stepper(batch, lr)))
                self.progress.step += 1
                self._after_step(prefetcher)

    def _epoch(self, step: int) -> int:
        return next((stage for stage in self.stages if step < stage.end), self.stages[-1]).place(step)[0]

    def _after_step(self, prefetcher: Prefetcher[Any]) -> None:
        step = self.progress.step
        if self.device.type == "cpu" or self.clock.is_time("looked", LOOK_SECONDS):
            self._flush()
            self.watchers.pace(self.clock.pace(self.progress, self._last, prefetcher.waited_seconds))
        if step % self.validate_every == 0 or step == self.total:
            self._flush()
            begun = time.monotonic()
            self._validate()
            self.clock.paused_seconds += time.monotonic() - begun
            self.journal.timing(self._timing(prefetcher))
            self._checkpoint()
            self.clock.last["saved"] = time.monotonic()
        self._save_or_stop()

    def _save_or_stop(self) -> None:
        """Now and then save; stop if asked to. Processes must agree on both, which they do every few steps."""
        if self.processes.count > 1 and self.progress.step % AGREE_EVERY:
            return
        save = self.clock.is_time("saved", self.config.checkpoint_seconds)
        stop = self.interrupt.asked
        if self.processes.count > 1:
            overrides = torch.tensor([save and self.processes.is_first, stop], dtype=torch.int32, device=self.device)
            save, stop = (bool(wish) for wish in self.processes.total(overrides).tolist())
        if stop:
            self._flush()
            self._checkpoint()
            raise InterruptedRunError(
                f"interrupted at step {self.progress.step} of {self.total}, which is saved; "
                f"resume with: s2rm-train --resume --out {self.folder.path}"
            )
        if save:
            self._checkpoint()

    def _flush(self) -> None:
        """Read the losses of the steps since the last time, watch over them and log them."""
        if not self._pending:
            return
        found = torch.stack([values for _, _, values in self._pending]).tolist()  # one wait for all of them
        for (step, lr, _), (loss, norm) in zip(self._pending, found, strict=True):
            watched = loss if math.isfinite(norm) else norm
            self.progress.watch = self.progress.watch.after(watched, step, self.config)
            place = {"step": step, "epoch": self._epoch(step)}
            record = {"kind": "step", **place, "loss": loss, "norm": norm, "lr": lr}
            self.journal.log(record)
            self.watchers.step(record)
            self._last = (loss, lr)
        self._pending.clear()

    def _validate(self) -> None:
        step, autocast = self.progress.step, self.stepper.autocast
        result = validate(self.model, self.data.learning, self.validation, self.processes, autocast=autocast)
        check_validation(result.loss, step, self.config)
        self.progress.schedule = self.progress.schedule.after_validation(self.config, result.loss)
        is_best = self.progress.best_loss is None or result.loss < self.progress.best_loss
        if is_best:
            self.progress.best_loss, self.progress.best_step = result.loss, step
            if self.processes.is_first:
                save_model(self.model, self.folder.best)
        found: dict[str, Any] = {"step": step, "epoch": self._epoch(step), "loss": result.loss}
        record = {"kind": "validation", **found, **result.scores}
        self.journal.validation(record, self.references, is_last=step == self.total)
        if self.processes.is_first:
            path, animation = self.journal.picture(self.model, FixedBatches(self.data.validation, batch_size=1), step)
            if path.exists():
                self.watchers.picture(path, step, animation)
        found |= {"scores": result.scores, "titles": self.data.learning.scores, "references": self.references}
        self.watchers.validated(Validated(**found, is_best=is_best))

    def _checkpoint(self) -> None:
        """Weights first, the state last: it is the commit. What came before a kill is written again, the same."""
        self._flush()
        if self.processes.is_first:
            save_model(self.model, self.folder.last)
            log = self.journal.sync()
            record = {"progress": self.progress.to_json(), "log_bytes": log.length, "log_sha256": log.sha256}
            record["config_sha256"] = learned_sha256(self.config)
            save_state(self.folder.state, state_tensors(self.model, self.optimiser, self.device), record)
        self.processes.wait()

    def _timing(self, prefetcher: Prefetcher[Any]) -> dict[str, Any]:
        pace = self.clock.pace(self.progress, self._last, prefetcher.waited_seconds)
        return {
            "step": self.progress.step,
            "steps_per_second": round(pace.steps_per_second, 4),
            "waiting_share": round(pace.waiting_share, 5),
            "training_seconds": round(self.clock.training_seconds, 3),
            "validation_seconds": round(self.clock.paused_seconds, 3),
            "peak_memory_bytes": peak_memory_nbytes(self.device),
        }

    def _complete(self) -> dict[str, Any]:
        """Scores of the best weights on all held-out data."""
        self.processes.wait()
        best = load_model(self.folder.best).to(self.device)
        held_out = {}
        batches_of = {
            name: FixedBatches(source, batch_size=self.config.validation_batch_size, share=self.processes.share)
            for name, source in self.data.held_out().items()
        }
        progress = self.listener.scoring(2 * sum(batches.sequences for batches in batches_of.values()))
        for name, batches in batches_of.items():
            how: dict[str, Any] = {"autocast": self.stepper.autocast, "progress": progress}
            result = validate(best, self.data.learning, batches, self.processes, **how)
            references = reference_scores(self.data.learning, batches, self.processes, progress=progress)
            held_out[name] = {"loss": result.loss, **result.scores, "references": references}
        summary = {
            **{name: getattr(self.config, name) for name in ("model", "task", "preset", "seed")},
            "parameters": self.model.parameter_count(),
            "steps": self.progress.step,
            "epochs": sum(
                max(min(self.progress.step, stage.end) - stage.begin, 0) / stage.batches.steps_per_epoch
                for stage in self.stages
            ),
            "best_step": self.progress.best_step,
            "best_validation_loss": self.progress.best_loss,
            "held_out": held_out,
        }
        if self.processes.is_first:
            self.folder.write_json(self.folder.summary, summary)
        self.listener.finish(summary)
        return summary


class Clock:
    """Time of training, apart from the time of validation."""

    def __init__(self, begun_step: int, total: int) -> None:
        self.begun_step, self.total = begun_step, total
        self.begun, self.paused_seconds = time.monotonic(), 0.0
        self.last = {"saved": self.begun, "looked": self.begun}

    @property
    def training_seconds(self) -> float:
        return max(time.monotonic() - self.begun - self.paused_seconds, 1e-9)

    def is_time(self, name: str, every_seconds: float) -> bool:
        """To do what was last done at the moment of this name, which is now then."""
        due = time.monotonic() - self.last[name] >= every_seconds
        if due:
            self.last[name] = time.monotonic()
        return due

    def pace(self, progress: RunState, last: tuple[float, float], waited_seconds: float) -> Pace:
        done = max(progress.step - self.begun_step, 1)
        with_pauses = (self.training_seconds + self.paused_seconds) / done
        speed, waiting = done / self.training_seconds, waited_seconds / self.training_seconds
        pace = {"steps_per_second": speed, "waiting_share": waiting}
        left = (self.total - progress.step) * with_pauses
        return Pace(step=progress.step, total=self.total, loss=last[0], lr=last[1], **pace, seconds_left=left)
