"""A model in one safetensors file: its weights, and in the header its name, its config and a digest of both."""

import errno
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from s2rm_data.core.check import canonical_json, from_json, to_json
from s2rm_data.core.errors import DamagedStoreError, UnreadableError, UsageError
from s2rm_data.core.registry import MODELS
from s2rm_data.core.write import write_whole
from s2rm_data.models.world_model import WorldModel


def model_name(model: WorldModel) -> str:
    """The name under which the model is found; a class that is not registered goes by its module's name."""
    return MODELS.name_of(type(model)) or type(model).__module__.rpartition(".")[2]


def save_model(model: WorldModel, path: str | Path) -> None:
    """The old file or the new one, whole; equal models give equal bytes."""
    metadata = {"model": model_name(model), "config": canonical_json(to_json(model.config)).decode()}
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
    seal = digest(tensors, metadata["model"] + metadata["config"])
    write_whole(Path(path), safetensors_pieces(tensors, {**metadata, "sha256": seal}))


_DTYPES = {
    torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64",
    torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL",
}  # fmt: skip


def safetensors_pieces(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> list[bytes]:
    """The bytes of a safetensors file, in pieces: the length of the header, the header, the tensors.
    Written here because the library's own writer lists the metadata in another order every time."""
    header: dict[str, Any] = {"__metadata__": dict(sorted(metadata.items()))}
    pieces: list[bytes] = []
    place = 0
    for name, tensor in sorted(tensors.items(), key=lambda item: (-item[1].element_size(), item[0])):
        data = tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        offsets = [place, place + len(data)]
        header[name] = {"dtype": _DTYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": offsets}
        pieces.append(data)
        place += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # tensors begin at a multiple of 8
    return [len(text).to_bytes(8, "little"), text, *pieces]


def digest(tensors: Mapping[str, Tensor], text: str) -> str:
    """SHA-256 of a text and of names, types, shapes and values of tensors on the CPU."""
    found = hashlib.sha256(text.encode())
    for name, tensor in sorted(tensors.items()):
        found.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        found.update(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()


MOST_HEADER_BYTES = 100_000_000  # what the library itself allows


def read_safetensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Tensors and metadata of a file; raises `OSError` or `SafetensorError`.
    The library maps the whole file before it compares its length with the header: one with a hole of many gigabytes
    would be out of memory, and a pipe would never end. Here both come first."""
    if path.exists() and not path.is_file():
        raise SafetensorError("it is not a regular file")
    with path.open("rb") as file:
        nbytes, size = int.from_bytes(file.read(8), "little"), os.fstat(file.fileno()).st_size
        if nbytes > min(size - 8, MOST_HEADER_BYTES):
            raise SafetensorError("its header is cut")
        promised = 8 + nbytes + _tensor_nbytes(file.read(nbytes))
    if size != promised:
        raise SafetensorError(f"it has {size:,} bytes where its header promises {promised:,}")
    with safe_open(path, framework="pt") as opened:
        return {name: opened.get_tensor(name) for name in opened.keys()}, opened.metadata() or {}  # noqa: SIM118


def _tensor_nbytes(header: bytes) -> int:
    try:
        tensors = [entry for name, entry in json.loads(header).items() if name != "__metadata__"]
        return max((int(entry["data_offsets"][1]) for entry in tensors), default=0)
    except (ValueError, TypeError, AttributeError, LookupError, RecursionError, OverflowError):
        raise SafetensorError("its header cannot be read") from None


def load_model(path: str | Path) -> WorldModel:
    """The model that was saved, on the CPU."""
    try:
        tensors, metadata = read_safetensors(Path(path))
    except (OSError, SafetensorError) as error:
        kind = UnreadableError if getattr(error, "errno", None) == errno.EIO else UsageError
        raise kind(f"{path} is not a model file that can be read: {error}") from error
    if not {"model", "config"} <= metadata.keys():
        raise UsageError(f"{path} holds weights but not which model they are of; save it with save_model")
    if metadata.get("sha256") != digest(tensors, metadata["model"] + metadata["config"]):
        raise DamagedStoreError(f"{path} is damaged: its bytes are not those that were saved")
    odd = next((n for n, t in tensors.items() if t.is_floating_point() and not torch.isfinite(t).all()), None)
    if odd is not None:
        raise DamagedStoreError(f"{path} holds weights that are not finite ({odd}): its training diverged")
    model_class = MODELS.load(metadata["model"])
    try:
        config = from_json(model_class.Config, json.loads(metadata["config"]))
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedStoreError(f"{path} holds a config that cannot be read: {error}") from None
    with torch.device("meta"):
        expected = {name: tensor.shape for name, tensor in model_class(config).state_dict().items()}
    if expected != {name: tensor.shape for name, tensor in tensors.items()}:  # before any memory is taken
        raise UsageError(f"{path} does not hold the weights of its {metadata['model']}")
    model = model_class(config)
    model.load_state_dict(tensors)
    return model
