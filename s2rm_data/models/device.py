"""Which device a model runs on."""

from __future__ import annotations

import torch

from s2rm_data.errors import UsageError


def choose_device(asked: str | None, local_rank: int = 0) -> torch.device:
    """`asked`, or the GPU if there is one, or the CPU."""
    if asked is None:
        return torch.device("cuda", local_rank) if torch.cuda.is_available() else torch.device("cpu")
    try:
        device = torch.device(asked)
    except RuntimeError:
        raise UsageError(f"no device {asked!r}; the choices are cpu, cuda and cuda:0, cuda:1, ...") from None
    if device.type not in ("cpu", "cuda"):
        raise UsageError(f"device {asked!r} is not supported; the choices are cpu and cuda")
    if device.type == "cuda" and not torch.cuda.is_available():
        built = "this torch is built without CUDA" if torch.version.cuda is None else "no GPU is visible"
        raise UsageError(f"--device {asked} was asked for, but {built}; leave --device out, or take --device cpu")
    if device.type == "cuda":
        index = local_rank if device.index is None else device.index
        if index >= torch.cuda.device_count():
            raise UsageError(f"--device cuda:{index}: this machine has {torch.cuda.device_count()} GPU(s), from cuda:0")
        return torch.device("cuda", index)
    return device
