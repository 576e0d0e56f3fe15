"""How much memory a run needs at least, so that what cannot fit is refused before it is tried.

Counted are the weights with their gradients and the optimiser's two moments, the images of a batch, and what the
forward pass keeps for the backward pass. The last is measured on one sequence, and only where it could matter.
"""

# B sequences, T steps, V views, Q queries, C channels, H x W an image

from __future__ import annotations

import os
from pathlib import Path

import torch
from torch import Tensor

from s2rm_data.errors import UsageError
from s2rm_data.loading import TrainingBatches
from s2rm_data.training.config import TrainConfig
from s2rm_data.training.data import RunData
from s2rm_data.training.processes import Processes

WORTH_MEASURING = 64  # activations are measured if everything else takes more than this part of the memory


def memory_nbytes(device: torch.device) -> int:
    """What a run may take: a GPU's memory, or the least of the machine's and what limits say."""
    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).total_memory
    import resource  # not on Windows, where runs are refused

    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    soft = resource.getrlimit(resource.RLIMIT_AS)[0]
    limits += [soft] if soft != resource.RLIM_INFINITY else []
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            limits.append(int(Path(path).read_text()))
        except (OSError, ValueError):  # not there, or `max`
            continue
    return min(limits)


def check_memory(config: TrainConfig, data: RunData, processes: Processes | None = None) -> None:
    """Refuse a run whose model and share of a batch cannot fit into memory.

    A GPU is one process's own; a machine's memory is shared by the processes there.
    """
    device, processes = torch.device(config.device), processes or Processes(alone=True)
    limit = memory_nbytes(device)
    with torch.device("meta"):
        parameters = data.build_model().parameter_count()
    sharing = 1 if device.type == "cuda" else processes.local_count
    weights = sharing * 16 * parameters  # float32: weights, gradients, two moments
    sequences = sharing * min(config.batch_size, len(data.train)) // processes.count
    batch = sequences * _sequence_nbytes(config, data)
    if limit >= weights + batch > limit // WORTH_MEASURING:
        batch += sequences * _kept_nbytes(config, data)
    if weights + batch > limit:
        raise UsageError(
            f"the run needs at least {_gigabytes(weights + batch)} of memory ({_gigabytes(weights)} for {parameters:,} "
            f"parameters, {_gigabytes(batch)} for batches of {sequences:,} sequences), and there are "
            f"{_gigabytes(limit)}; use a smaller model, --batch-size or window"
        )


def _gigabytes(nbytes: int) -> str:
    return f"{nbytes / 1e9:,.1f} GB"


def _sequence_nbytes(config: TrainConfig, data: RunData) -> int:
    """Of the images of one sequence as float32, at the least."""
    learning, (height, width) = data.learning, data.train.image_size
    views, queries = (getattr(config, n) if n in learning.source_fields else 1 for n in ("views", "queries"))
    channels = views * learning.view_channels + queries * learning.output_channels
    return 4 * data.train.steps * channels * height * width


def _kept_nbytes(config: TrainConfig, data: RunData) -> int:
    """What the forward pass of one sequence keeps for the backward pass."""
    model = data.build_model()
    known = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    kept: dict[int, Tensor] = {}

    def keep(tensor: Tensor) -> Tensor:
        if tensor.untyped_storage().data_ptr() not in known:
            kept[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    batch = TrainingBatches(data.train, batch_size=1, seed=config.seed).batch(0, 0).to("cpu")
    mixed = torch.autocast("cpu", dtype=torch.bfloat16, enabled=config.precision == "mixed")
    with mixed, torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        model.loss(model(batch), batch)
    return sum(tensor.untyped_storage().nbytes() for tensor in kept.values())
