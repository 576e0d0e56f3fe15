"""Checkpoints: one safetensors file that is replaced as a whole, with what is not a tensor as JSON in its header.

    weights/<name>             the model's state
    adam/<name>/exp_avg, ...   the optimiser's, by the parameter's name
    random/cpu, random/cuda    torch's generators
    header `record`            JSON: step, schedule, best loss, length of the log, ...
    header `sha256`            of record, names, types, shapes and bytes: damage of any kind is found when it is read

Nothing is pickled."""

import errno
import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from s2rm_data.core.check import canonical_json
from s2rm_data.core.errors import DamagedStoreError, UnreadableError, UsageError
from s2rm_data.core.write import write_whole
from s2rm_data.models.weights import digest, read_safetensors, safetensors_pieces
from s2rm_data.training.folder import STATE_FORMAT as FORMAT


def save_state(path: Path, tensors: dict[str, Tensor], record: dict[str, Any]) -> None:
    """The commit of a checkpoint: once the new file is in place, the run resumes from there."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in sorted(tensors.items())}
    text = canonical_json(record).decode()
    header = {"format": FORMAT, "record": text, "sha256": digest(plain, text)}
    write_whole(path, safetensors_pieces(plain, header))


def load_state(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    try:
        tensors, header = read_safetensors(path)
    except FileNotFoundError:
        raise DamagedStoreError(f"{path} is missing; without it the run cannot be resumed") from None
    except (SafetensorError, OSError) as error:
        kind = UnreadableError if getattr(error, "errno", None) == errno.EIO else DamagedStoreError
        raise kind(f"{path} is damaged or no checkpoint: {error}") from None
    if header.get("format") != FORMAT:
        raise UsageError(f"{path} is not a checkpoint of s2rm-train (its format is {header.get('format')!r})")
    if header.get("sha256") != digest(tensors, header.get("record", "")):
        raise DamagedStoreError(f"{path} is damaged: its bytes are not those that were saved")
    try:
        record: dict[str, Any] = json.loads(header["record"])
    except (ValueError, RecursionError) as error:
        raise DamagedStoreError(f"{path} is damaged: its record cannot be read ({error!r})") from None
    return tensors, record


def state_tensors(model: nn.Module, optimiser: torch.optim.Optimizer, device: torch.device) -> dict[str, Tensor]:
    """Everything a run needs to resume as if it had not stopped, but for what is JSON."""
    tensors = {f"weights/{name}": tensor for name, tensor in model.state_dict().items()}
    for name, parameter in model.named_parameters():
        for key, value in optimiser.state.get(parameter, {}).items():
            tensors[f"adam/{name}/{key}"] = value
    tensors["random/cpu"] = torch.get_rng_state()
    if device.type == "cuda":
        tensors["random/cuda"] = torch.cuda.get_rng_state(device)
    return tensors


def restore_tensors(
    tensors: dict[str, Tensor], model: nn.Module, optimiser: torch.optim.Optimizer, device: torch.device, where: Path
) -> None:
    """The inverse of `state_tensors`, into a freshly built model and optimiser."""
    try:
        model.load_state_dict(_below(tensors, "weights/"))
    except RuntimeError as error:
        raise UsageError(f"{where} holds the weights of another model: {error}") from None
    for name, parameter in model.named_parameters():
        if state := _below(tensors, f"adam/{name}/"):  # the counter, and moments, in the layout of their parameter
            counter = {"step": state.pop("step").to(parameter.device)} if "step" in state else {}
            moments = {key: torch.empty_like(parameter).copy_(value) for key, value in state.items()}
            optimiser.state[parameter] = counter | moments
    torch.set_rng_state(tensors["random/cpu"])
    if device.type == "cuda" and "random/cuda" in tensors:
        torch.cuda.set_rng_state(tensors["random/cuda"], device)


def _below(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
