"""S2GRU, S2RMC and the baselines LSTM, RMC, RIMs and TTO, behind one interface (`world_model.WorldModel`).

model = build("s2gru", task)              # task: the name of a world
prediction = model(batch)
model.loss(prediction, batch).backward()
"""

from __future__ import annotations

from s2rm_data.errors import missing_component

try:
    import torch as _torch  # noqa: F401
except ModuleNotFoundError:
    raise missing_component("torch", "train", "a model") from None

from s2rm_data.batch import Batch
from s2rm_data.models.catalogue import ModelSummary, build, config_for, names, summaries
from s2rm_data.models.world_model import WorldModel

__all__ = [
    "Batch",
    "ModelSummary",
    "WorldModel",
    "build",
    "config_for",
    "names",
    "summaries",
]
