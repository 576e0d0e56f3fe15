"""S2GRU, S2RMC and the baselines LSTM, RMC, RIMs and TTO, behind one interface (`world_model.WorldModel`), by name.

model = build("s2gru", task)              # task: the name of a world
prediction = model(batch)
model.loss(prediction, batch).backward()"""

import itertools
import sys
import warnings
from typing import Any, NamedTuple

from s2rm_data.core.errors import S2RMWarning, UsageError, missing_component

try:
    import torch
except ModuleNotFoundError:
    raise missing_component("torch", "train", "a model") from None

from s2rm_data.core.check import from_json
from s2rm_data.core.registry import MODELS, WORLDS, Registry
from s2rm_data.learning.batch import Batch
from s2rm_data.learning.world_learning import Learning
from s2rm_data.models.config import ModelConfig
from s2rm_data.models.world_model import WorldModel

__all__ = ["Batch", "ModelSummary", "WorldModel", "build", "config_for", "summaries"]


def config_for(name: str, task: str, **overrides: Any) -> ModelConfig:
    """The model's config: the paper's values for the world, then the overrides."""
    config_class: type[ModelConfig] = MODELS.load(name).Config
    learning: Learning = WORLDS.load(task).learning()
    defaults = {**learning.model_defaults, **learning.paper_fields.get(name, {})}
    return from_json(config_class, {"task": task, **defaults, **overrides})


def build(name: str, task: str, **overrides: Any) -> WorldModel:
    """A freshly initialised model (from torch's global generator) with the paper's values for the world."""
    return MODELS.load(name)(config_for(name, task, **overrides))


class ModelSummary(NamedTuple):
    name: str
    task: str
    parameters: int
    config: ModelConfig
    description: str  # first line of the model's file


def summaries() -> list[ModelSummary]:
    """Every model on every world with its default config; no weights are made. A plug-in that fails is a warning."""
    models, worlds = ([name for name in registry.names() if _loads(registry, name)] for registry in (MODELS, WORLDS))
    found = []
    for name, task in itertools.product(models, worlds):
        with torch.device("meta"):
            model = build(name, task)
        words = (sys.modules[type(model).__module__].__doc__ or type(model).__name__).strip().splitlines()[0]
        found.append(ModelSummary(name, task, model.parameter_count(), model.config, words))
    return found


def _loads(registry: Registry, name: str) -> bool:
    try:
        registry.load(name)
    except UsageError as error:
        warnings.warn(str(error), S2RMWarning, stacklevel=2)
        return False
    return True
