"""A model in one safetensors file: its weights, and in the header its name and config."""

from __future__ import annotations

import json
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from s2rm_data.config import canonical_json, from_json, to_json
from s2rm_data.errors import UsageError
from s2rm_data.models.catalogue import MODELS
from s2rm_data.models.world_model import WorldModel


def model_name(model: WorldModel) -> str:
    return type(model).__module__.rpartition(".")[2]


def save_model(model: WorldModel, path: str | Path) -> None:
    metadata = {"model": model_name(model), "config": canonical_json(to_json(model.config)).decode()}
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
    save_file(tensors, path, metadata=metadata)


def load_model(path: str | Path) -> WorldModel:
    """The model that was saved, on the CPU."""
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise UsageError(f"{path} is not a model file that can be read: {error}") from error
    if not {"model", "config"} <= metadata.keys():
        raise UsageError(f"{path} holds weights but not which model they are of; save it with save_model")
    model_class = MODELS.load(metadata["model"])
    model = model_class(from_json(model_class.Config, json.loads(metadata["config"])))
    try:
        model.load_state_dict(tensors)
    except RuntimeError as error:
        raise UsageError(f"{path} does not hold the weights of its {metadata['model']}: {error}") from error
    return model
