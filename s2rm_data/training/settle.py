"""From what a user names to a whole config: the preset's fields, then the machine's, then the user's own."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from s2rm_data.errors import UsageError
from s2rm_data.loading import tasks_of
from s2rm_data.models.device import choose_device
from s2rm_data.store import Store
from s2rm_data.training.config import TrainConfig
from s2rm_data.training.data import choose_task, shortest_steps
from s2rm_data.training.machine import cores
from s2rm_data.training.presets import preset_fields, preset_model_fields
from s2rm_data.training.processes import Processes


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """What was named on the command line; None where nothing was."""

    task: str | None = None
    model: str | None = None
    preset: str | None = None
    device: str | None = None
    fields: dict[str, Any] = field(default_factory=dict)  # of the run or of its model

    @property
    def given(self) -> frozenset[str]:
        names = [name for name in ("task", "model", "preset", "device") if getattr(self, name) is not None]
        return frozenset([*names, *self.fields])


def settle(store: Store, wishes: Wishes, say: Callable[[str], None]) -> TrainConfig:
    """The config of a new run. What was chosen for the user is said."""
    task = choose_task(store, wishes.task)
    if wishes.task is None:
        say(f"task {task}, the {'first' if len(tasks_of(store)) > 1 else 'only'} one in {store.path} (--task chooses)")
    device = choose_device(wishes.device, Processes().local_rank)
    preset = wishes.preset or ("paper" if device.type == "cuda" else "laptop")
    if wishes.preset is None:
        say(f"preset {preset}, because there is {'a' if device.type == 'cuda' else 'no'} GPU (--preset chooses)")
    model = wishes.model or "s2gru"
    fields = {**preset_fields(preset, task), **machine_fields(device)}
    if "epochs" in wishes.fields and "steps" in wishes.fields:
        raise UsageError("both --epochs and --steps were given; a budget is one of the two")
    if "epochs" in wishes.fields:
        fields["steps"] = None
    steps = shortest_steps(store, task)
    if "window" not in wishes.fields and fields.get("window", 0) > steps:
        say(f"windows of {steps} steps, the whole sequences, which are shorter than the preset's {fields['window']}")
        fields["window"] = None
    if "lr" in wishes.fields and fields.get("fine_tuning_lr") and _is_rate(wishes.fields["lr"]):
        fields["fine_tuning_lr"] *= wishes.fields["lr"] / fields["lr"]  # as much smaller as in the preset
    config = TrainConfig(
        task=task, model=model, preset=preset, **fields, model_fields=preset_model_fields(preset, model, task)
    )
    return config.with_fields(wishes.fields)


def _is_rate(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def machine_fields(device: torch.device) -> dict[str, Any]:
    if device.type == "cuda":
        bfloat16 = torch.cuda.is_bf16_supported(including_emulation=False)  # from Ampere on
        precision = "mixed" if bfloat16 else "float32"
        return {"device": str(device), "threads": 1, "loader_threads": 2, "precision": precision, "compile": True}
    return {"device": "cpu", "threads": max(cores() // Processes().local_count, 1)}


def again(saved: TrainConfig, wishes: Wishes) -> TrainConfig:
    """The config of a run that goes on: as it was, with what the user names now (and what the machine has)."""
    device = choose_device(wishes.device, Processes().local_rank)
    named = {name: getattr(wishes, name) for name in ("task", "model", "preset") if getattr(wishes, name) is not None}
    if named.get("model", saved.model) != saved.model or named.get("task", saved.task) != saved.task:
        config = TrainConfig(**{**_fields_without_model(saved), **named})  # to be refused by name, not by a field
    else:
        config = dataclasses.replace(saved.with_fields(wishes.fields), **named)
    return _on(config, device, wishes.fields)


def _fields_without_model(saved: TrainConfig) -> dict[str, Any]:
    return {name: getattr(saved, name) for name in TrainConfig.__dataclass_fields__ if name != "model_fields"}


def _on(config: TrainConfig, device: torch.device, named: dict[str, Any]) -> TrainConfig:
    if torch.device(config.device).type == device.type:
        return dataclasses.replace(config, device=str(device))
    fields = machine_fields(device)
    return dataclasses.replace(config, **{**fields, **{k: v for k, v in named.items() if k in fields}})
