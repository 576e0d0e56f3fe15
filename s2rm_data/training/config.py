"""The config of a training run: every number that decides what is learned, and the few that only decide how fast.

Presets are named budgets, each a file in `presets/`. A world may say what a preset means for it (`Learning.presets`),
and a model which of its own sizes are then smaller."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from s2rm_data.core.check import above, at_least, between, check_fields, one_of
from s2rm_data.core.errors import UsageError, did_you_mean
from s2rm_data.core.registry import MODELS, PRESETS, WORLDS
from s2rm_data.core.seeding import MAX_SEED
from s2rm_data.learning.world_learning import Learning
from s2rm_data.models import config_for

MOST_CHARACTERS = 1000  # of one --set
SCHEDULES = ("plateau", "cosine")

# Fields that say on what and how fast a run goes, not what is learned; they may differ when it is resumed.
MACHINE_FIELDS = ("device", "threads", "precision", "compile", "loader_threads", "checkpoint_seconds")

Steps = Annotated[int, between(1, 10**9)]
Sequences = Annotated[int, between(1, 10**9)]
BatchSize = Annotated[int, between(1, 65_536)]
Looks = Annotated[int, between(1, 65_536)]
Threads = Annotated[int, between(1, 1024)]
Rate = Annotated[float, above(0, at_most=1e6)]
Share = Annotated[float, at_least(0, below=1)]


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """`model_fields` are the fields of the model's own config that differ from its defaults.
    Steps are optimiser steps. A budget is `steps` if given, else `epochs`. `window` None takes whole sequences."""

    task: str
    model: str
    preset: str
    seed: Annotated[int, between(0, MAX_SEED)] = 0
    epochs: Annotated[int, between(1, 10**6)] = 100
    steps: Steps | None = None
    batch_size: BatchSize = 32
    window: Annotated[int, between(1, 10**6)] | None = None
    # From this share of the steps on, windows of `late_window` steps in batches of `late_batch_size` (None: as before);
    # `late_window` None: the same windows to the end.
    late_from: Share = 0.5
    late_window: Annotated[int, between(1, 10**6)] | None = None
    late_batch_size: BatchSize | None = None
    views: Looks = 10  # per frame; for worlds in which one may look anywhere
    queries: Looks = 10  # per step; likewise
    shuffle_shards: Annotated[int, between(1, 10**6)] | None = None  # shuffled together; None: everything
    # Of the queries that exist, the share that a training step asks; for worlds in which they are given. Those of one
    # step see much the same, and decoding them is what a step costs most.
    query_share: Annotated[float, above(0, at_most=1)] = 1.0

    lr: Rate = 3e-4
    fine_tuning_lr: Rate | None = None  # None: as lr
    schedule: Annotated[str, one_of(*SCHEDULES)] = "plateau"
    warmup_steps: Annotated[int, between(0, 10**9)] = 0
    plateau_factor: Share = 0.5
    plateau_patience: Annotated[int, between(1, 10**6)] = 5  # validations
    plateau_threshold: Share = 1e-4  # relative
    cosine_floor: Share = 0.02  # the last rate, relative to the first
    clip_norm: Annotated[float, above(0, at_most=1e9)] | None = None
    explosion_factor: Annotated[float, above(1, at_most=1e9)] = 50.0

    validate_every: Steps | None = None  # steps; None: every epoch
    validation_sequences: Sequences | None = None  # of each group, the first ones; None: all
    validation_batch_size: BatchSize = 50
    held_out_sequences: Sequences | None = None  # likewise, for the scores at the end

    device: str = "cpu"
    threads: Threads = 1
    loader_threads: Threads = 1
    precision: Annotated[str, one_of("float32", "mixed")] = "float32"
    compile: bool = False
    checkpoint_seconds: Annotated[float, above(0, at_most=1e9)] = 30.0

    model_fields: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_fields(self)
        WORLDS.require(self.task)
        MODELS.require(self.model)
        config_for(self.model, self.task, **self.model_fields)

    def total_steps(self, steps_per_epoch: int) -> int:
        return self.steps if self.steps is not None else self.epochs * steps_per_epoch

    def with_fields(self, fields: dict[str, Any]) -> TrainConfig:
        """Another config; fields of the run or of its model, by their plain names."""
        own, of_model = split_fields(self.model, self.task, fields)
        return dataclasses.replace(self, **own, model_fields={**self.model_fields, **of_model})


OWN_OPTIONS = ("task", "model", "preset", "device")  # not for `--set`: each has an option that checks it


def settable_names(model: str, task: str) -> tuple[list[str], list[str]]:
    """Names that `--set` takes: of the run, and of the model."""
    of_model = [f.name for f in dataclasses.fields(config_for(model, task)) if f.name != "task"]
    fixed = (*OWN_OPTIONS, "model_fields")
    return [f.name for f in dataclasses.fields(TrainConfig) if f.name not in fixed], of_model


def split_fields(model: str, task: str, fields: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Fields of the run and of the model apart; a name that neither has is an error."""
    own_names, model_field_list = settable_names(model, task)
    own, of_model = dict[str, Any](), dict[str, Any]()
    for name, value in fields.items():
        if name in own_names:
            own[name] = value
        elif name in model_field_list:
            of_model[name] = value
        elif name in OWN_OPTIONS:
            raise UsageError(f"{name} is not for --set; give --{name} {value}")
        else:
            there_are = f"a run has {', '.join(own_names)}; the model {model} has {', '.join(model_field_list)}"
            suggestion = did_you_mean(name, [*own_names, *model_field_list], there_are)
            raise UsageError(f"no config field {name!r}{suggestion}")
    return own, of_model


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


@dataclass(frozen=True, kw_only=True)
class Preset:
    """`fields` are those of TrainConfig, for worlds that have none of their own for it; `model_fields` those of every
    model's config. A preset that is `like` another has that one's, worlds' and models' included, and its own over them.
    """

    fields: Mapping[str, Any] = field(default_factory=dict)
    model_fields: Mapping[str, Any] = field(default_factory=dict)
    like: str | None = None


def preset_fields(name: str, model: str, task: str) -> dict[str, Any]:
    """Fields of TrainConfig: the world's or else the preset's, then those that the world has for this model."""
    preset: Preset = PRESETS.load(name)
    learning: Learning = WORLDS.load(task).learning()
    below = preset_fields(preset.like, model, task) if preset.like else {}
    of_both = learning.presets_of_models.get(name, {}).get(model, {})
    return {**below, **learning.presets.get(name, preset.fields), **of_both}


def preset_model_fields(name: str, model: str, task: str) -> dict[str, Any]:
    """Fields of the model's config: the preset's, then the model's own, the world's, and those of both."""
    preset: Preset = PRESETS.load(name)
    learning: Learning = WORLDS.load(task).learning()
    below = preset_model_fields(preset.like, model, task) if preset.like else {}
    own, of_world = MODELS.load(model).small_fields.get(name, {}), learning.preset_model_fields.get(name, {})
    of_both = learning.preset_fields_of_models.get(name, {}).get(model, {})
    return {**below, **preset.model_fields, **own, **of_world, **of_both}
