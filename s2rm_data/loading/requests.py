"""What a batch is to be made of, as small arrays with the batch's rows first: drawn on the host, moved, cut, split."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch

from s2rm_data.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class Request:
    """Fields are NumPy arrays as drawn, torch tensors after `tensors`."""

    @property
    def view_keep(self) -> Any:
        """(B, T + 1, V) bool: which views are not dropped. With it, views are dropped from a batch that was made
        before; None has the batch made again.
        """
        return None

    def replaced(self, **fields: Any) -> Self:
        return dataclasses.replace(self, **fields)

    def _mapped(self, function: Callable[[Any], Any]) -> Self:
        return self.replaced(**{f.name: function(getattr(self, f.name)) for f in dataclasses.fields(self)})

    def rows(self, which: slice) -> Self:
        return self._mapped(lambda values: values[which])

    def tensors(self, *, pin: bool = False) -> Self:
        def tensor(values: Any) -> torch.Tensor:
            made = values if isinstance(values, torch.Tensor) else torch.from_numpy(np.ascontiguousarray(values))
            return made.pin_memory() if pin else made

        return self._mapped(tensor)

    def moved(self, device: torch.device) -> Self:
        return self._mapped(lambda values: values.to(device, non_blocking=True))

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Several requests, one after the other."""
        names = [f.name for f in dataclasses.fields(cls)]
        return cls(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})


def drop_count(fraction: float, views: int) -> int:
    """How many of the views a fraction is; it must come out whole, so that it is what it says."""
    check_fraction(fraction)
    count = round(fraction * views)
    if abs(count - fraction * views) > 1e-6:
        raise UsageError(f"{fraction:g} of {views} views is not a whole number; drop a multiple of {1 / views:g}")
    return count


def check_fraction(fraction: float) -> None:
    if not 0 <= fraction <= 1:
        raise UsageError(f"a fraction of {fraction:g} of the views cannot be dropped; allowed are 0 to 1")


def window_steps(steps: int | None, frames: int, where: str) -> int:
    """T, checked against the frames there are."""
    if frames < 2:
        raise UsageError(f"{where}: sequences of {frames} frame have nothing to predict; make them of at least 2")
    if steps is None:
        return frames - 1
    if not 1 <= steps < frames:
        raise UsageError(
            f"windows of {steps} steps do not fit {where}; with {frames} frames allowed are 1 to {frames - 1}"
        )
    return steps
