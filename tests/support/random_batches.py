"""Small batches and configs for tests of models. Legend: B sequences, T steps, V views, Q queries."""

from __future__ import annotations

from typing import Any

import torch

from s2rm_data.generators.bballs.learning.ball_crops import BallTargets
from s2rm_data.generators.sc2.learning.battle_scores import PolarTargets, polar_views
from s2rm_data.learning.batch import Batch

SMALL_IMAGE = {"bballs": (11, 11), "sc2": (8, 12)}


def small_overrides(name: str, task: str, **more: Any) -> dict[str, Any]:
    sizes: dict[str, Any] = {"codec": "mlp", "width": 8, "encoding_size": 24, "image_size": SMALL_IMAGE[task]}
    if name in ("s2gru", "s2rmc"):
        sizes |= {"hidden_size": 24, "key_size": 4, "gate_units": 8}
    if name == "s2rmc":
        sizes |= {"heads": 2, "head_size": 8, "slots": 2, "memory_key_size": 4}
    if name == "rmc":
        sizes |= {"heads": 2, "head_size": 16, "key_size": 8, "slots": 2}
    if name == "rims":
        sizes |= {"hidden_size": 48, "input_key_size": 8, "input_value_size": 16, "comm_key_size": 4}
    if name in ("lstm", "tto"):
        sizes |= {"hidden_size": 48}
    return sizes | more


def random_batch(
    task: str, *, B: int = 2, T: int = 3, V: int = 4, Q: int = 3, dtype: torch.dtype = torch.float32
) -> Batch:
    """Sparse random images at random positions; every view and query present; next views drawn anew."""
    size = SMALL_IMAGE[task]
    extent = 47 if task == "bballs" else 32

    def positions(count: int) -> torch.Tensor:
        return torch.randint(0, extent + 1, (B, T, count, 2)).to(dtype)

    def images(count: int) -> tuple[torch.Tensor, torch.Tensor]:
        unit = torch.randint(1, 10, (B, T, count, *size)) * (torch.rand(B, T, count, *size) < 0.1)
        return unit, torch.rand(B, T, count, 4, *size, dtype=dtype) * (unit > 0).unsqueeze(-3)

    def views() -> torch.Tensor:
        unit, hecs = images(V)
        if task == "bballs":
            return (unit > 0).to(dtype).unsqueeze(3)
        height = torch.rand(unit.shape, dtype=dtype)
        return polar_views(unit > 4, unit, hecs, height, unit % 9)

    unit, hecs = images(Q)
    ball = task == "bballs"
    return Batch(
        views=views(),
        view_position=positions(V),
        view_mask=torch.ones(B, T, V, dtype=torch.bool),
        query_position=positions(Q),
        query_mask=torch.ones(B, T, Q, dtype=torch.bool),
        targets=BallTargets((unit > 0).to(dtype).unsqueeze(3)) if ball else PolarTargets(unit > 4, unit, hecs),
        next_views=views(),
        next_view_position=positions(V),
        next_view_mask=torch.ones(B, T, V, dtype=torch.bool),
    )
