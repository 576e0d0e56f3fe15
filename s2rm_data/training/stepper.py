"""One optimiser step: forward, loss, backward, averaged gradients, clipping, Adam. Nothing in it waits for the GPU.

Compiled models: encoder, decoder and the step of the recurrence, and the way back to eager if anything fails.

The step is small and called T times per window, so that launching its kernels one by one would be what it costs: on a
GPU it is replayed as a CUDA graph. It is compiled without the deferral of gradients (`models/modules.py`), whose
bookkeeping changes from step to step."""

import contextlib
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor

from s2rm_data.core.errors import S2RMError, S2RMWarning
from s2rm_data.models import Batch, WorldModel
from s2rm_data.training.config import TrainConfig
from s2rm_data.training.processes import Processes

T = TypeVar("T")
MOST_CHARACTERS = 300  # of what a compiler says


class CompiledParts:
    """Takes the place of the parts of `model` that are compiled. `active` until compiling, recording or running them
    has failed once: from then on the model is as it was, and one warning has said so."""

    def __init__(self, model: WorldModel, device: torch.device, backend: str | Callable[..., Any] = "inductor") -> None:
        self.active = True
        self._model, self._graphs = model, device.type == "cuda"
        options: dict[str, Any] = {"backend": backend, "fullgraph": True}
        dynamics = torch.compile(model.dynamics, mode="reduce-overhead" if self._graphs else None, **options)

        def plain_dynamics(encoded: Any, state: Any, products: Any = None) -> Any:
            return dynamics(encoded, state)

        model.fixed_shapes = True
        parts: list[tuple[Any, str, Any]] = [(model, "dynamics", plain_dynamics), (model, "forward", self._forward)]
        parts += [(own, "forward", torch.compile(own.forward, **options)) for own in (model.encoder, model.decoder)]
        for owner, name, function in parts:
            setattr(owner, name, function)
        self._replaced = [(owner, name) for owner, name, _ in parts]

    def begin(self) -> None:
        """A new iteration of CUDA graphs, which may overwrite earlier results; without it, each is recorded anew."""
        if self._graphs:
            torch.compiler.cudagraph_mark_step_begin()

    def _forward(self, batch: Batch) -> Any:
        """The model's forward pass, wherever it is called: in training, in validation, for pictures."""
        self.begin()
        return self.guarded(lambda: type(self._model).forward(self._model, batch))

    def guarded(self, work: Callable[[], T]) -> T:
        """What `work` gives, if need be without compiled parts; it must be possible to do it again."""
        try:
            return work()
        except S2RMError:
            raise
        except Exception as error:
            if not self.active:
                raise
            self.active = self._model.fixed_shapes = False
            for owner, name in self._replaced:
                delattr(owner, name)  # the class's own shows again
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            said = f"{type(error).__name__}: {' '.join(lines[:2])}"[:MOST_CHARACTERS]  # the second: of a backend
            message = (
                f"torch.compile failed ({said}); the run continues without it, more slowly, with the same results "
                "up to rounding. --set compile=false does not try it"
            )
            warnings.warn(message, S2RMWarning, stacklevel=2)
        return work()


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
