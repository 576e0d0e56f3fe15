"""A model in one safetensors file: its weights, and in the header its name, its config and a digest of both."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from s2rm_data.config import canonical_json, from_json, to_json
from s2rm_data.errors import DamagedStoreError, UsageError
from s2rm_data.models.world_model import WorldModel
from s2rm_data.registry import MODELS


def model_name(model: WorldModel) -> str:
    """The name under which the model is found; a class that is not registered goes by its module's name."""
    return MODELS.name_of(type(model)) or type(model).__module__.rpartition(".")[2]


def save_model(model: WorldModel, path: str | Path) -> None:
    metadata = {"model": model_name(model), "config": canonical_json(to_json(model.config)).decode()}
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
    save_file(tensors, path, metadata={**metadata, "sha256": digest(tensors, metadata["model"] + metadata["config"])})


def digest(tensors: Mapping[str, Tensor], text: str) -> str:
    """SHA-256 of a text and of names, types, shapes and values of tensors on the CPU."""
    found = hashlib.sha256(text.encode())
    for name, tensor in sorted(tensors.items()):
        found.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        found.update(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()


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
    if metadata.get("sha256") != digest(tensors, metadata["model"] + metadata["config"]):
        raise DamagedStoreError(f"{path} is damaged: its bytes are not those that were saved")
    model_class = MODELS.load(metadata["model"])
    model = model_class(from_json(model_class.Config, json.loads(metadata["config"])))
    try:
        model.load_state_dict(tensors)
    except RuntimeError as error:
        raise UsageError(f"{path} does not hold the weights of its {metadata['model']}: {error}") from error
    return model
