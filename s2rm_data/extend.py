"""What plug-ins may import: the base classes, what their methods are given, and the registries.

    from s2rm_data.extend import WorldModel, ModelConfig

docs/api.md lists the names. They stay where they are while the package's own modules move. To import this is cheap:
each name is loaded when it is first used."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from s2rm_data.core.check import whole
    from s2rm_data.core.errors import ConflictError, DamagedStoreError, S2RMError, UsageError
    from s2rm_data.core.progress import Progress
    from s2rm_data.core.registry import CODECS, EXPORT_FORMATS, LOGGERS, MODELS, PLACES, PRESETS, WORLDS, load_plugin
    from s2rm_data.core.schema import ArraySpec, SplitSource
    from s2rm_data.core.seeding import sequence_seeds
    from s2rm_data.evaluation.world_evaluation import WorldEvaluation
    from s2rm_data.inspection.export_format import ExportFormat, attributes_of, blocks
    from s2rm_data.inspection.world_inspection import Inspection
    from s2rm_data.learning.batch import Batch
    from s2rm_data.learning.metrics import (
        BinaryCounts,
        ClassCounts,
        binary_cross_entropy,
        cross_entropy,
        masked_mean,
        squared_error,
        weighted,
    )
    from s2rm_data.learning.windows import Request, check_fraction, window_steps
    from s2rm_data.learning.world_learning import Learning, Source
    from s2rm_data.making.world import Making, Option, World
    from s2rm_data.models.codec import Codec, Encoder, rows_of
    from s2rm_data.models.config import Count, ModelConfig, Size
    from s2rm_data.models.modules import Products
    from s2rm_data.models.world_model import WorldModel
    from s2rm_data.models.zoo._additive import AdditiveConfig, AdditiveModel
    from s2rm_data.starcraft.codes import Action
    from s2rm_data.starcraft.policies import POLICIES, Policy, policy
    from s2rm_data.store import Group, Store
    from s2rm_data.store.place import Place, Version
    from s2rm_data.training.config import Preset
    from s2rm_data.training.listener import Logger

_NAMES = {
    "core.check": "whole",
    "core.errors": "ConflictError DamagedStoreError S2RMError UsageError",
    "core.progress": "Progress",
    "core.registry": "CODECS EXPORT_FORMATS LOGGERS MODELS PLACES PRESETS WORLDS load_plugin",
    "core.schema": "ArraySpec SplitSource",
    "core.seeding": "sequence_seeds",
    "evaluation.world_evaluation": "WorldEvaluation",
    "inspection.export_format": "ExportFormat attributes_of blocks",
    "inspection.world_inspection": "Inspection",
    "learning.batch": "Batch",
    "learning.metrics": "BinaryCounts ClassCounts binary_cross_entropy cross_entropy masked_mean squared_error"
    " weighted",
    "learning.windows": "Request check_fraction window_steps",
    "learning.world_learning": "Learning Source",
    "making.world": "Making Option World",
    "models.codec": "Codec Encoder rows_of",
    "models.config": "Count ModelConfig Size",
    "models.modules": "Products",
    "models.world_model": "WorldModel",
    "models.zoo._additive": "AdditiveConfig AdditiveModel",
    "starcraft.codes": "Action",
    "starcraft.policies": "POLICIES Policy policy",
    "store": "Group Store",
    "store.place": "Place Version",
    "training.listener": "Logger",
    "training.config": "Preset",
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}

# fmt: off
__all__ = [
    "CODECS", "EXPORT_FORMATS", "LOGGERS", "MODELS", "PLACES", "POLICIES", "PRESETS", "WORLDS", "Action",
    "AdditiveConfig", "AdditiveModel", "ArraySpec", "Batch", "BinaryCounts", "ClassCounts", "Codec", "ConflictError",
    "Count", "DamagedStoreError", "Encoder", "ExportFormat", "Group", "Inspection", "Learning", "Logger", "Making",
    "ModelConfig", "Option", "Place", "Policy", "Preset", "Products", "Progress", "Request", "S2RMError", "Size",
    "Source", "SplitSource", "Store", "UsageError", "Version", "World", "WorldEvaluation", "WorldModel",
    "attributes_of", "binary_cross_entropy", "blocks", "check_fraction", "cross_entropy", "load_plugin",
    "masked_mean", "policy", "rows_of", "sequence_seeds", "squared_error", "weighted", "whole", "window_steps",
]
# fmt: on


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"s2rm_data.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
