"""Compiled models: encoder, decoder and the step of the recurrence, and the way back to eager if anything fails.

The step is small and called T times per window, so that launching its kernels one by one would be what it costs: on a
GPU it is replayed as a CUDA graph. It is compiled without the deferral of gradients (`models/products.py`), whose
bookkeeping changes from step to step.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import torch

from s2rm_data.errors import S2RMError, S2RMWarning
from s2rm_data.models import Batch, WorldModel

T = TypeVar("T")
MOST_CHARACTERS = 300  # of what a compiler says


class CompiledParts:
    """Takes the place of the parts of `model` that are compiled. `active` until compiling, recording or running them
    has failed once: from then on the model is as it was, and one warning has said so.
    """

    def __init__(self, model: WorldModel, device: torch.device, backend: str | Callable[..., Any] = "inductor") -> None:
        self.active = True
        self._model, self._graphs = model, device.type == "cuda"
        options: dict[str, Any] = {"backend": backend, "fullgraph": True}
        step = torch.compile(model.step, mode="reduce-overhead" if self._graphs else None, **options)

        def plain_step(encoded: Any, state: Any, products: Any = None) -> Any:
            return step(encoded, state)

        model.fixed_shapes = True
        self._replaced: list[tuple[Any, str]] = []
        self._replace(model, "step", plain_step)
        self._replace(model.encoder, "forward", torch.compile(model.encoder.forward, **options))
        self._replace(model.decoder, "forward", torch.compile(model.decoder.forward, **options))
        self._replace(model, "forward", self._forward)

    def _replace(self, owner: Any, name: str, function: Callable[..., Any]) -> None:
        self._replaced.append((owner, name))
        setattr(owner, name, function)

    def begin(self) -> None:
        """A new iteration of CUDA graphs: what earlier ones gave may be overwritten. Without this mark every forward
        pass would record its graphs anew.
        """
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
            self._give_up(error)
        return work()

    def _give_up(self, error: Exception) -> None:
        self.active = False
        for owner, name in self._replaced:
            delattr(owner, name)  # the class's own shows again
        self._model.fixed_shapes = False
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        said = f"{type(error).__name__}: {' '.join(lines[:2])}"[:MOST_CHARACTERS]  # the second: what a backend raised
        warnings.warn(
            f"torch.compile failed ({said}); the run continues without it, more slowly, with the same results up to "
            "rounding. --set compile=false does not try it",
            S2RMWarning,
            stacklevel=3,
        )
