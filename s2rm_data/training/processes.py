"""One process or several: `torchrun` starts them, each takes its share of every batch, gradients are averaged.

Every model here is small (1 to 9 million weights), so gradients go in one message after the backward pass.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterable

import torch
import torch.distributed as dist
from torch import Tensor, nn

from s2rm_data.errors import UsageError
from s2rm_data.loading.batches import Share

# For one message. The default of half an hour would keep the others waiting when a process is lost. The longest that
# processes are apart is a compiler at work in one of them, or the first one's checkpoint.
PATIENCE_SECONDS = 600.0


class Processes:
    """This process among `count`; without torchrun, or `alone`, it is the only one and nothing is sent."""

    def __init__(self, *, alone: bool = False) -> None:
        given = {} if alone else os.environ
        self.rank = int(given.get("RANK", "0"))
        self.count = int(given.get("WORLD_SIZE", "1"))
        self.local_rank = int(given.get("LOCAL_RANK", "0"))
        self.local_count = int(given.get("LOCAL_WORLD_SIZE", "1"))

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    @property
    def share(self) -> Share:
        return Share(rank=self.rank, count=self.count)

    def connect(self, device: torch.device) -> None:
        if self.count > 1 and not dist.is_initialized():
            if not dist.is_available():
                raise UsageError("this torch is built without torch.distributed; run without torchrun")
            backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
            dist.init_process_group(backend, timeout=datetime.timedelta(seconds=PATIENCE_SECONDS))

    def disconnect(self) -> None:
        if self.count > 1 and dist.is_initialized():
            dist.destroy_process_group()

    def total(self, value: Tensor) -> Tensor:
        """The sum over all processes, in all of them; `value` itself where there is one."""
        if self.count > 1:
            value = value.clone()
            dist.all_reduce(value)
        return value

    def wait(self) -> None:
        if self.count > 1:
            dist.barrier()

    def agree(self, model: nn.Module) -> None:
        """Everybody takes the first process's weights."""
        if self.count > 1:
            for tensor in (*model.parameters(), *model.buffers()):
                dist.broadcast(tensor.detach(), 0)

    def average_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        if self.count == 1:
            return
        with_gradient = [p for p in parameters if p.requires_grad]
        flat = torch.cat([torch.zeros_like(p).flatten() if p.grad is None else p.grad.flatten() for p in with_gradient])
        dist.all_reduce(flat)
        flat /= self.count
        for parameter, piece in zip(with_gradient, flat.split([p.numel() for p in with_gradient]), strict=True):
            parameter.grad = piece.view_as(parameter)
