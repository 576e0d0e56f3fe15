"""Full precision for what a state or a border depends on: no autocast, and no TF32 in products.

`torch.set_float32_matmul_precision("high")` lets a GPU round the factors of float32 products to ten bits. A state
passes through every step and loses digits at each; in the kernel Z a cosine rounded like that moves the border of an
enclave by whole pixels.
"""

from __future__ import annotations

import contextlib
from types import TracebackType

import torch
from torch import Tensor

FULL = "highest"


def full_precision(like: Tensor) -> torch.autocast:
    """Autocast off; what autocast is for, the encoder's and decoder's convolutions, lies outside."""
    return torch.autocast(like.device.type, enabled=False)


def full_products() -> contextlib.AbstractContextManager[None]:
    """TF32 off, for the whole process, while it is entered.

    Compiled code cannot set this; whoever calls it does (`WorldModel.unroll` for a compiled step). Backward passes run
    later: training sets full precision for all of the process.
    """
    if torch.compiler.is_compiling() or torch.get_float32_matmul_precision() == FULL:
        return contextlib.nullcontext()
    return _FullProducts()


class _FullProducts(contextlib.AbstractContextManager[None]):
    def __enter__(self) -> None:
        self._before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision(FULL)

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        torch.set_float32_matmul_precision(self._before)
