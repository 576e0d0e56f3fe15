"""Models by name: building one, its config for a world, and the list of all with their sizes."""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from typing import Any

import torch

from s2rm_data.errors import S2RMWarning, UsageError
from s2rm_data.models.config import ModelConfig
from s2rm_data.models.world_model import WorldModel
from s2rm_data.registry import MODELS, WORLDS, Registry


def names() -> list[str]:
    return MODELS.names()


def config_for(name: str, task: str, **overrides: Any) -> ModelConfig:
    """The model's config: the paper's values for the world, then the overrides."""
    config_class: type[ModelConfig] = MODELS.load(name).Config
    return config_class.for_task(task, WORLDS.load(task).learning().paper_fields.get(name), **overrides)


def build(name: str, task: str, **overrides: Any) -> WorldModel:
    """A freshly initialised model (from torch's global generator) with the paper's values for the world."""
    return MODELS.load(name)(config_for(name, task, **overrides))


@dataclass(frozen=True, kw_only=True)
class ModelSummary:
    name: str
    task: str
    parameters: int
    config: ModelConfig
    description: str  # first line of the model's file


def summaries() -> list[ModelSummary]:
    """Every model on every world with its default config; no weights are made. A plug-in that fails is a warning."""
    models, worlds = ([name for name in registry.names() if _loads(registry, name)] for registry in (MODELS, WORLDS))
    return [_summary(name, task) for name in models for task in worlds]


def _loads(registry: Registry, name: str) -> bool:
    try:
        registry.load(name)
    except UsageError as error:
        warnings.warn(str(error), S2RMWarning, stacklevel=2)
        return False
    return True


def _summary(name: str, task: str) -> ModelSummary:
    with torch.device("meta"):
        model = build(name, task)
    description = (sys.modules[type(model).__module__].__doc__ or type(model).__name__).strip().splitlines()[0]
    return ModelSummary(
        name=name, task=task, parameters=model.parameter_count(), config=model.config, description=description
    )
