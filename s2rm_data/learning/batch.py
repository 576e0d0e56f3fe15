"""What a model is given and what it gives back, the same for all models and worlds.

Shapes: B sequences, T steps, V views, Q queries, C channels, H x W an image.

Time: at step t a model takes the views of frame t and predicts frame t + 1 at the query positions. So with a window of
T + 1 frames the views are frames 0..T-1, the targets frames 1..T, and `query_position[:, t]`, `query_mask[:, t]` and
the targets at index t all speak of frame t + 1.

V and Q are free, may differ from batch to batch, and may vary inside one by the masks. A masked view or query may hold
anything finite: it counts as absent. No view at all at some step is allowed. The order of views means nothing.

Positions are (x, y) floats in the world's own unit, not normalised."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor

# Named tuples of tensors, each (B, T, Q, ...); every world has its own (`Learning.prediction`).
Targets = Any
Prediction = Any


@dataclass(frozen=True, kw_only=True)
class Batch:
    """One batch of windows.

    `views` are images, channels first, of any real dtype (uint8 and bool are cast on the model's device).
    `targets` is the world's named tuple of tensors; None when only predictions are wanted.
    `query_mask` is False where there is no target: past the episode's end, or an agent that is dead at t + 1.

    `next_*` are the views of frame t + 1 at index t, for models whose `needs_next_views` is true (oracles); None for
    all others. With all frames in one tensor they are the slices `[:, :-1]` and `[:, 1:]` of it, without a copy. An
    oracle at step t reads the next views and nothing else. If the queries stand where the next views stand (the same
    agents at t + 1), it is shown its own targets and must only carry them through the sum over views; if they are drawn
    independently of the next views, it must also fill in what no view of frame t + 1 shows."""

    views: Tensor  # (B, T, V, C, H, W)
    view_position: Tensor  # (B, T, V, 2) float
    view_mask: Tensor  # (B, T, V) bool, True where there is a view
    query_position: Tensor  # (B, T, Q, 2) float
    query_mask: Tensor  # (B, T, Q) bool, True where there is a target
    targets: Targets | None = None
    next_views: Tensor | None = None  # (B, T, V', C, H, W)
    next_view_position: Tensor | None = None  # (B, T, V', 2)
    next_view_mask: Tensor | None = None  # (B, T, V')
    # How many views, next views and queries exist, or a bound of it, as a number on the host: with it, a GPU can leave
    # out what is absent without being asked how much that is. None: not known.
    view_count: int | None = None
    next_view_count: int | None = None
    query_count: int | None = None

    @staticmethod
    def views_of(views: Tensor, position: Tensor, mask: Tensor, *, steps: int, next_views: bool) -> dict[str, Any]:
        """The fields of views of a window: of frames 0..T-1 and, where they are wanted, of the frames that follow them.
        `views` are those of T + 1 frames, or of T if no next views are wanted; `position` and `mask` of T + 1."""
        shown = {"views": views[:, :steps], "view_position": position[:, :-1], "view_mask": mask[:, :-1]}
        if not next_views:
            return shown
        following = {"next_views": views, "next_view_position": position, "next_view_mask": mask}
        return shown | {name: values[:, 1:] for name, values in following.items()}

    def to(self, device: torch.device | str, non_blocking: bool = False) -> Batch:
        """The same batch on another device."""
        return self.mapped(lambda tensor: tensor.to(device, non_blocking=non_blocking))

    def mapped(self, function: Callable[[Tensor], Tensor]) -> Batch:
        """The batch with every tensor in it, targets included, replaced by a function of it."""
        tensors = [f.name for f in dataclasses.fields(self) if not f.name.endswith("_count")]
        return dataclasses.replace(self, **{name: map_tensors(getattr(self, name), function) for name in tensors})


T = TypeVar("T")


def map_tensors(value: T, function: Callable[[Tensor], Tensor]) -> T:
    """A tensor, or (named) tuples of tensors to any depth, with each tensor replaced; None stays None."""
    if value is None:
        return value
    if isinstance(value, Tensor):
        return function(value)  # type: ignore[return-value]
    assert isinstance(value, tuple)
    parts = [map_tensors(part, function) for part in value]
    return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)  # type: ignore[return-value]
