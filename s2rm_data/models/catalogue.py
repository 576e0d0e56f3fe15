"""Models by name: building one, its config for a world, and the list of all with their sizes."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import torch

from s2rm_data.models.config import ModelConfig
from s2rm_data.models.world_model import WorldModel
from s2rm_data.registry import MODELS, WORLDS


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
    """Every model on every world with its default config; no weights are made."""
    return [_summary(name, task) for name in names() for task in WORLDS.names()]


def _summary(name: str, task: str) -> ModelSummary:
    with torch.device("meta"):
        model = build(name, task)
    description = (sys.modules[type(model).__module__].__doc__ or "").splitlines()[0]
    return ModelSummary(
        name=name, task=task, parameters=model.parameter_count(), config=model.config, description=description
    )
