"""One optimiser step: forward, loss, backward, averaged gradients, clipping, Adam. Nothing in it waits for the GPU."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from s2rm_data.models import Batch, WorldModel
from s2rm_data.training.compiling import CompiledParts
from s2rm_data.training.config import TrainConfig
from s2rm_data.training.processes import Processes


def make_optimiser(model: WorldModel, config: TrainConfig) -> torch.optim.Adam:
    """Adam with the defaults of PyTorch, fused into one pass over the weights."""
    return torch.optim.Adam(model.parameters(), lr=config.lr, fused=True)


class Stepper:
    def __init__(
        self, model: WorldModel, optimiser: torch.optim.Optimizer, config: TrainConfig, processes: Processes
    ) -> None:
        self.model, self.optimiser, self.config, self.processes = model, optimiser, config, processes
        self.parameters = list(model.parameters())
        self.device = self.parameters[0].device
        # bfloat16 has the range of float32: no loss scaling, which would wait for the GPU at every step.
        self.autocast: Callable[[], contextlib.AbstractContextManager[Any]] = lambda: torch.autocast(
            self.device.type, dtype=torch.bfloat16, enabled=config.precision == "mixed"
        )

        self.compiled: CompiledParts | None = None

    def compile(self, backend: str | Callable[..., Any] = "inductor") -> None:
        self.compiled = CompiledParts(self.model, self.device, backend)

    def __call__(self, batch: Batch, lr: float) -> Tensor:
        """(2,) the loss of the whole batch and the norm of its gradient, on the device."""
        for group in self.optimiser.param_groups:
            group["lr"] = lr
        share = self._share(batch)  # before what may be done twice: the processes must stay in step

        def gradients() -> Tensor:
            self.optimiser.zero_grad(set_to_none=True)  # first: the old ones need no memory in the forward pass
            if self.compiled:
                self.compiled.begin()
            with self.autocast():
                loss = self.model.batch_loss(batch)
            (loss * share).backward()
            return loss.detach()

        loss = self.compiled.guarded(gradients) if self.compiled else gradients()
        self.processes.average_gradients(self.parameters)
        norm = torch.nn.utils.clip_grad_norm_(self.parameters, self.config.clip_norm or float("inf"))
        self.optimiser.step()
        whole = self.processes.total(loss * share) / self.processes.count
        return torch.stack([whole, norm.detach()])

    def _share(self, batch: Batch) -> Tensor | float:
        """What makes the mean over processes the mean over all targets, when they do not have equally many."""
        if self.processes.count == 1:
            return 1.0
        count = batch.query_mask.sum().float()
        return count * self.processes.count / self.processes.total(count).clamp(min=1)
