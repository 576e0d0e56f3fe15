"""One optimiser step: forward, loss, backward, averaged gradients, clipping, Adam. Nothing in it waits for the GPU."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from s2rm_data.models import Batch, WorldModel
from s2rm_data.training.config import TrainConfig
from s2rm_data.training.processes import Processes


def make_optimiser(model: WorldModel, config: TrainConfig) -> torch.optim.Adam:
    """Adam with the defaults of PyTorch, fused into one pass over the weights."""
    return torch.optim.Adam(model.parameters(), lr=config.lr, fused=True)


def compile_parts(model: WorldModel, device: torch.device, backend: str = "inductor") -> None:
    """Compile encoder and decoder, and the step of the recurrence, which on a GPU is replayed as a CUDA graph.

    The step is small and called T times per window, so launching its kernels one by one would be what it costs. It is
    compiled without the deferral of gradients, whose bookkeeping changes from step to step.
    """
    options: dict[str, Any] = {"backend": backend, "fullgraph": True}
    step = torch.compile(model.step, mode="reduce-overhead" if device.type == "cuda" else None, **options)

    def plain_step(encoded: Any, state: Any, products: Any = None) -> Any:
        return step(encoded, state)

    model.fixed_shapes = True
    model.step = plain_step  # type: ignore[method-assign]
    model.encoder.forward = torch.compile(model.encoder.forward, **options)  # type: ignore[method-assign, assignment]
    model.decoder.forward = torch.compile(model.decoder.forward, **options)  # type: ignore[method-assign, assignment]


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

    def __call__(self, batch: Batch, lr: float) -> Tensor:
        """(2,) the loss of the whole batch and the norm of its gradient, on the device."""
        for group in self.optimiser.param_groups:
            group["lr"] = lr
        if self.config.compile and self.device.type == "cuda":
            torch.compiler.cudagraph_mark_step_begin()
        with self.autocast():
            loss = self.model.batch_loss(batch)
        share = self._share(batch)
        self.optimiser.zero_grad(set_to_none=True)
        (loss * share).backward()
        self.processes.average_gradients(self.parameters)
        norm = torch.nn.utils.clip_grad_norm_(self.parameters, self.config.clip_norm or float("inf"))
        self.optimiser.step()
        whole = self.processes.total(loss.detach() * share) / self.processes.count
        return torch.stack([whole, norm.detach()])

    def _share(self, batch: Batch) -> Tensor | float:
        """What makes the mean over processes the mean over all targets, when they do not have equally many."""
        if self.processes.count == 1:
            return 1.0
        count = batch.query_mask.sum().float()
        return count * self.processes.count / self.processes.total(count).clamp(min=1)
