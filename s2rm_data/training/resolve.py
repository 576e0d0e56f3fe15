"""From what a user names to a whole run: the preset's fields, then the machine's, then the user's own."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch

from s2rm_data.core.addresses import Url, store_path
from s2rm_data.core.errors import ConflictError, UsageError
from s2rm_data.core.machine import available_threads
from s2rm_data.core.registry import LOGGERS, WORLDS
from s2rm_data.learning import tasks_of
from s2rm_data.learning.dataset import unfinished_groups
from s2rm_data.models.device import choose_device
from s2rm_data.store import ShardCache, Store
from s2rm_data.training.config import OWN_OPTIONS, TrainConfig, preset_fields, preset_model_fields
from s2rm_data.training.data import choose_groups, choose_task, shortest_steps
from s2rm_data.training.processes import Processes
from s2rm_data.training.protocol import RunOptions, first_folder, saved_run, saved_runs

USUAL_PRESET = "laptop"  # on every machine: what it reaches is known
OLDEST_COMPILED = (7, 0)  # compute capability (Volta) from which Triton, which torch.compile uses, makes kernels


@dataclass(frozen=True, kw_only=True)
class Overrides:
    """What a user named; None where nothing was."""

    task: str | None = None
    model: str | None = None
    preset: str | None = None
    device: str | None = None
    fields: dict[str, Any] = field(default_factory=dict)  # of the run or of its model
    options: dict[str, Any] = field(default_factory=dict)  # the world's own, which choose groups

    @property
    def given(self) -> frozenset[str]:
        names = [name for name in OWN_OPTIONS if getattr(self, name) is not None]
        return frozenset([*names, *self.fields])


class ResolvedRun(NamedTuple):
    config: TrainConfig
    store: Store
    options: RunOptions


@dataclass(frozen=True, kw_only=True)
class TrainingRequest:
    """What a user asks of training, on the command line or from Python. `log` names loggers beside TensorBoard."""

    store: str | os.PathLike[str] | Url | Store | None
    overrides: Overrides
    out: Path | None = None
    runs: int | None = None
    resume: bool = False
    overwrite: bool = False
    cache: ShardCache | None = None
    log: tuple[str, ...] = ()

    def resolve(self, say: Callable[[str], None]) -> ResolvedRun:
        """The run that is meant: a new one, or with `resume` the one in `out`, whose store need not be named again."""
        for name in self.log:
            LOGGERS.require(name)
        if self.resume and self.overwrite:
            raise UsageError("--resume and --overwrite exclude each other; give one of them")
        if self.resume and self.out is not None and first_folder(self.out).holds_run:
            config, opened, groups = self._resumed(self.out)
            runs = self.runs or saved_runs(self.out)
        else:
            config, opened, groups = self._new(say)
            runs = self.runs or 1
        seeds = f"{runs}-runs" if runs > 1 else f"seed{config.seed}"
        out = self.out or Path("runs") / f"{config.task}-{config.model}-{config.preset}-{seeds}"
        how: dict[str, Any] = {"resume": self.resume, "overwrite": self.overwrite, "given": self.overrides.given}
        return ResolvedRun(config, opened, RunOptions(out=out, runs=runs, groups=groups, **how))

    def _resumed(self, out: Path) -> tuple[TrainConfig, Store, tuple[str, ...] | None]:
        saved, document = saved_run(first_folder(out))
        path, groups = document["store"]["path"], tuple(document["store"]["groups"])
        before = store_path(path)
        if self.store is None and isinstance(before, Path) and not before.exists():
            raise UsageError(
                f"the store that {out} was started on ({path}) is not there; if it was moved, name it with --store"
            )
        opened = self._opened(before if self.store is None else self.store)
        options = self.overrides.options
        chosen = choose_groups(opened, saved.task, options)  # again: they must be those that it was started on
        if chosen is not None and {name for name in chosen if name.endswith(("/train", "/val"))} != set(groups):
            raise ConflictError(
                f"{out} was started on {', '.join(groups)}, not on the groups chosen now; resume it without "
                f"{', '.join('--' + name.replace('_', '-') for name in options)}, or start another run with another "
                "--out"
            )
        return resumed_config(saved, self.overrides), opened, groups

    def _new(self, say: Callable[[str], None]) -> tuple[TrainConfig, Store, tuple[str, ...] | None]:
        if self.store is None:
            if self.resume and self.out is None:
                raise UsageError("--resume continues the run in --out; name its folder, as in --out runs/NAME")
            missing = f"there is no run at {self.out} to resume; " if self.resume else ""
            maker = f"s2rm-data {WORLDS.names()[0]} makes it"
            raise UsageError(f"{missing}no store given; name one, as in --store data.zarr ({maker})")
        opened = self._opened(self.store)
        config = resolve(opened, self.overrides, say)
        chosen = choose_groups(opened, config.task, self.overrides.options)
        return config, opened, None if chosen is None else tuple(chosen)

    def _opened(self, store: str | os.PathLike[str] | Url | Store) -> Store:
        return store if isinstance(store, Store) else Store(store, cache=self.cache)

    def at(self, point: Mapping[str, Any], out: Path) -> TrainingRequest:
        """A point of a sweep, which is begun or resumed, whichever it needs."""
        overrides = dataclasses.replace(self.overrides, fields={**self.overrides.fields, **point})
        return dataclasses.replace(self, overrides=overrides, out=out, resume=True)


def resolve(store: Store, overrides: Overrides, say: Callable[[str], None]) -> TrainConfig:
    """The config of a new run. What was chosen for the user is said."""
    task = choose_task(store, overrides.task, overrides.options)
    chosen = choose_groups(store, task, overrides.options)
    if overrides.task is None:
        others = [f"s2rm-train {store.path} --task {name}" for name in tasks_of(store) if name != task]
        chosen_by = f"for the other: {' or '.join(others)}" if others else "--task chooses"
        say(f"task {task}, the {'first' if others else 'only'} one in {store.path} ({chosen_by})")
    for path in (*unfinished_groups(store, task, "train"), *unfinished_groups(store, task, "val")):
        if chosen is None or path in chosen:
            say(f"{path} is unfinished and left out; run the command that makes it again to finish it")
    device = choose_device(overrides.device, Processes().local_rank)
    preset = overrides.preset or USUAL_PRESET
    if overrides.preset is None:
        say(f"preset {preset}, whose scores are in docs/results.md (--preset paper: the paper's budget, for a GPU)")
    model = overrides.model or "s2gru"
    fields = {**preset_fields(preset, model, task), **machine_fields(device)}
    if _in_epochs(overrides.fields):
        fields["steps"] = None
    steps = shortest_steps(store, task, chosen)
    if "window" not in overrides.fields and fields.get("window", 0) > steps:
        say(f"windows of {steps} steps, the whole sequences, which are shorter than the preset's {fields['window']}")
        fields["window"] = None
    if (fields.get("late_window") or 0) > steps:
        fields["late_window"] = steps
    fixed = fields.get("window") is None or any(name in overrides.fields for name in ("window", "batch_size"))
    if fields.get("late_window") and fixed and "late_window" not in overrides.fields:
        fields["late_window"] = fields["late_batch_size"] = None  # windows as the user chose them, to the end
    lr = overrides.fields.get("lr")  # which is not checked yet
    is_rate = isinstance(lr, int | float) and not isinstance(lr, bool) and 0 < lr < 1e300
    if fields.get("fine_tuning_lr") and is_rate:
        fields["fine_tuning_lr"] *= lr / fields["lr"]  # as much smaller as in the preset
    fields["model_fields"] = preset_model_fields(preset, model, task)
    return TrainConfig(task=task, model=model, preset=preset, **fields).with_fields(overrides.fields)


def _in_epochs(fields: dict[str, Any]) -> bool:
    """Whether a budget was named, and in epochs."""
    if "epochs" in fields and "steps" in fields:
        raise UsageError("both --epochs and --steps were given; a budget is one of the two")
    return "epochs" in fields


def machine_fields(device: torch.device) -> dict[str, Any]:
    if device.type == "cuda":
        bfloat16 = torch.cuda.is_bf16_supported(including_emulation=False)  # from Ampere on
        precision = "mixed" if bfloat16 else "float32"
        compiles = torch.cuda.get_device_capability(device) >= OLDEST_COMPILED
        return {"device": str(device), "threads": 1, "loader_threads": 2, "precision": precision, "compile": compiles}
    return {"device": "cpu", "threads": available_threads(Processes().local_count)}


def resumed_config(saved: TrainConfig, overrides: Overrides) -> TrainConfig:
    """The config of a run that is resumed: as it was, with what the user names now (and what the machine has)."""
    device = choose_device(overrides.device, Processes().local_rank)
    named = {name: getattr(overrides, name) for name in overrides.given & {"task", "model", "preset"}}
    if named.get("model", saved.model) != saved.model or named.get("task", saved.task) != saved.task:
        config = dataclasses.replace(saved, **named, model_fields={})  # to be refused by name, not by a field
    else:
        fields = {"steps": None} | overrides.fields if _in_epochs(overrides.fields) else overrides.fields
        config = dataclasses.replace(saved.with_fields(fields), **named)
    if torch.device(config.device).type == device.type:
        return dataclasses.replace(config, device=str(device))
    own = machine_fields(device)
    return dataclasses.replace(config, **own | {k: v for k, v in overrides.fields.items() if k in own})
