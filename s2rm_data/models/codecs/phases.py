"""Positions as phases: plane waves over the arena, and the turning of features by them.

A feature that rides on the wave exp(i k x) says where it is by its phase. Turning the features of a view by +k x moves
them from the view's own frame into the arena's, where those of several views add up; turning what the state holds by
-k x moves it into the frame of a query. Positions that are only added to features have to be multiplied by a network
that must first learn to multiply.

Legend: N rows, U units (features), U / 2 waves; real parts come first, imaginary parts second.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

_SEED = 1  # waves are the same for all models and seeds, so that a file of weights need not hold them


def isotropic_waves(count: int, shortest: float) -> Tensor:
    """Wave vectors (count, 2), uniform in the disc whose edge is the wave of the shortest period."""
    random = torch.Generator().manual_seed(_SEED)
    length = 2 * math.pi / shortest * torch.rand(count, generator=random, device="cpu").sqrt()
    return _vectors(length, random)


def graded_waves(count: int, shortest: float, longest: float) -> Tensor:
    """Wave vectors (count, 2) of any direction, their periods log-uniform between the two."""
    random = torch.Generator().manual_seed(_SEED)
    share = torch.rand(count, generator=random, device="cpu")
    return _vectors(2 * math.pi / (shortest * (longest / shortest) ** share), random)


def _vectors(length: Tensor, random: torch.Generator) -> Tensor:
    angle = torch.rand(len(length), generator=random, device="cpu") * 2 * math.pi
    return length[:, None] * torch.stack([angle.cos(), angle.sin()], -1)


class Waves(nn.Module):
    """Fixed wave vectors k."""

    vectors: Tensor

    def __init__(self, vectors: Tensor) -> None:
        super().__init__()
        self.register_buffer("vectors", vectors.to(torch.get_default_device()), persistent=False)

    def phase(self, position: Tensor) -> Tensor:
        """k x: (..., 2) -> (..., U / 2).

        Not as a matrix product, which mixed precision would round to a few digits: phases go up to hundreds.
        """
        x, y = position.unsqueeze(-2).unbind(-1)
        return x * self.vectors[:, 0] + y * self.vectors[:, 1]


def turned(x: Tensor, phase: Tensor) -> Tensor:
    """x (..., U) as complex numbers, times exp(i phase), phase (..., U / 2)."""
    cosine, sine = phase.cos(), phase.sin()
    real, imaginary = x.chunk(2, -1)
    return torch.cat([real * cosine - imaginary * sine, real * sine + imaginary * cosine], -1)
