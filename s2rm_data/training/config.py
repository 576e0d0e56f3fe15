"""The config of a training run: every number that decides what is learned, and the few that only decide how fast."""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import dataclass, field
from typing import Any

from s2rm_data.errors import UsageError, did_you_mean
from s2rm_data.models import config_for
from s2rm_data.models import names as model_names
from s2rm_data.registry import WORLDS
from s2rm_data.seeding import MAX_SEED

MOST_STEPS = 10**12
MOST = {  # of fields that decide how much memory is taken, or how many threads
    "batch_size": 1 << 20,
    "validation_batch_size": 1 << 20,
    "window": 1 << 20,
    "views": 10_000,
    "queries": 10_000,
    "threads": 1024,
    "loader_threads": 256,
}
MOST_CHARACTERS = 1000  # of one --set

SCHEDULES = ("plateau", "cosine")
PRECISIONS = ("float32", "mixed")

# Fields that say on what and how fast a run goes, not what is learned; they may differ when it is resumed.
MACHINE_FIELDS = ("device", "threads", "precision", "compile", "loader_threads", "checkpoint_seconds")


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """`model_fields` are the fields of the model's own config that differ from its defaults.

    Steps are optimiser steps. A budget is `steps` if given, else `epochs`. `window` None takes whole sequences.
    """

    task: str
    model: str
    preset: str
    seed: int = 0
    epochs: int = 100
    steps: int | None = None
    batch_size: int = 32
    window: int | None = None
    views: int = 10  # per frame; for worlds in which one may look anywhere
    queries: int = 10  # per step; likewise

    lr: float = 3e-4
    fine_tuning_lr: float | None = None  # None: as lr
    schedule: str = "plateau"
    warmup_steps: int = 0
    plateau_factor: float = 0.5
    plateau_patience: int = 5  # validations
    plateau_threshold: float = 1e-4  # relative
    cosine_floor: float = 0.02  # the last rate, relative to the first
    clip_norm: float | None = None
    explosion_factor: float = 50.0

    validate_every: int | None = None  # steps; None: every epoch
    validation_sequences: int | None = None  # of each group, the first ones; None: all
    validation_batch_size: int = 50
    held_out_sequences: int | None = None  # likewise, for the scores at the end

    device: str = "cpu"
    threads: int = 1
    loader_threads: int = 1
    precision: str = "float32"
    compile: bool = False
    checkpoint_seconds: float = 30.0

    model_fields: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        WORLDS.load(self.task)  # refuses a name that it does not know
        if self.model not in model_names():
            raise UsageError(
                f"no model {self.model!r}{did_you_mean(self.model, model_names())}; the choices are "
                f"{_list(model_names())} (s2rm-train --list-models shows them)"
            )
        self._check_numbers()
        self._require("schedule", self.schedule in SCHEDULES, f"one of {_list(SCHEDULES)}")
        self._require("precision", self.precision in PRECISIONS, f"one of {_list(PRECISIONS)}")
        config_for(self.model, self.task, **self.model_fields)

    def _check_numbers(self) -> None:
        whole = ("epochs", "steps", "batch_size", "window", "views", "queries", "plateau_patience", "threads")
        for name in (
            *whole,
            "validate_every",
            "validation_sequences",
            "validation_batch_size",
            "held_out_sequences",
            "loader_threads",
        ):
            value = getattr(self, name)
            optional = value is None and TrainConfig.__dataclass_fields__[name].default is None
            most = MOST.get(name, MOST_STEPS)
            right = optional or (_is_whole(value) and 1 <= value <= most)
            self._require(name, right, f"a whole number from 1 to {most:,}")
        for name, most in (("seed", MAX_SEED), ("warmup_steps", MOST_STEPS)):
            value = getattr(self, name)
            self._require(name, _is_whole(value) and 0 <= value <= most, f"a whole number from 0 to {most:,}")
        for name in ("lr", "fine_tuning_lr", "explosion_factor", "checkpoint_seconds"):
            value = getattr(self, name)
            optional = value is None and TrainConfig.__dataclass_fields__[name].default is None
            self._require(name, optional or (_is_number(value) and value > 0), "a positive number")
        self._require("clip_norm", self.clip_norm is None or (_is_number(self.clip_norm) and self.clip_norm > 0), "> 0")
        for name in ("plateau_factor", "plateau_threshold", "cosine_floor"):
            value = getattr(self, name)
            self._require(name, _is_number(value) and 0 <= value < 1, "a number of at least 0 and below 1")
        self._require("compile", isinstance(self.compile, bool), "true or false")
        self._require("explosion_factor", self.explosion_factor > 1, "more than 1")

    def _require(self, name: str, holds: bool, allowed: str) -> None:
        if not holds:
            raise UsageError(f"{name} is {shown(getattr(self, name))}; it must be {allowed}")

    def total_steps(self, steps_per_epoch: int) -> int:
        return self.steps if self.steps is not None else self.epochs * steps_per_epoch

    def with_fields(self, fields: dict[str, Any]) -> TrainConfig:
        """Another config; fields of the run or of its model, by their plain names."""
        own, of_model = split_fields(self.model, self.task, fields)
        return dataclasses.replace(self, **own, model_fields={**self.model_fields, **of_model})


def _list(names: Any) -> str:
    return ", ".join(names)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return (isinstance(value, float) and math.isfinite(value)) or (_is_whole(value) and abs(value) < 2**1000)


def model_field_names(model: str, task: str) -> list[str]:
    return [f.name for f in dataclasses.fields(config_for(model, task)) if f.name != "task"]


OWN_OPTIONS = ("task", "model", "preset", "device")  # not for `--set`: each has an option that checks it


def settable_names(model: str, task: str) -> tuple[list[str], list[str]]:
    """Names that `--set` takes: of the run, and of the model."""
    of_model = model_field_names(model, task)
    fixed = (*OWN_OPTIONS, "model_fields")
    return [f.name for f in dataclasses.fields(TrainConfig) if f.name not in fixed], of_model


def split_fields(model: str, task: str, fields: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Fields of the run and of the model apart; a name that neither has is an error."""
    own_names, model_field_list = settable_names(model, task)
    own: dict[str, Any] = {}
    of_model: dict[str, Any] = {}
    for name, value in fields.items():
        if name in own_names:
            own[name] = as_float(value) if _wants_float(name) else value
        elif name in model_field_list:
            of_model[name] = value
        elif name in OWN_OPTIONS:
            raise UsageError(f"{name} is not for --set; give --{name} {shown(value)}")
        else:
            raise UsageError(
                f"no config field {name!r}{did_you_mean(name, [*own_names, *model_field_list])}; "
                f"a run has {_list(own_names)}; the model {model} has {_list(model_field_list)}"
            )
    return own, of_model


def as_float(value: Any) -> Any:
    """A whole number as a float, where it is in a float's range."""
    return float(value) if _is_whole(value) and abs(value) < 2**1000 else value


def shown(value: Any) -> str:
    """A value for a message, however long it is."""
    text = repr(value) if not _is_whole(value) or abs(value) < 10**30 else "a number of more than 30 digits"
    return text if len(text) <= 80 else text[:77] + "..."


def _wants_float(name: str) -> bool:
    return "float" in str(TrainConfig.__dataclass_fields__[name].type)


def parse_assignments(assignments: tuple[str, ...]) -> dict[str, Any]:
    """`key=value` as typed: values are JSON where they can be read as such (3, 1e-3, true, null, [8, 16]) or text."""
    fields = {}
    for assignment in assignments:
        if len(assignment) > MOST_CHARACTERS:
            raise UsageError(f"--set {assignment[:40]!r}... is longer than the {MOST_CHARACTERS} characters allowed")
        name, equals, text = assignment.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"--set {assignment!r} is not an assignment; write --set key=value, as in --set lr=1e-3")
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = text.strip()
        fields[name.strip()] = value
    return fields
