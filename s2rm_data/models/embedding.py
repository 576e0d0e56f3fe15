"""The positional embedding P and the start of the modules' embeddings p_m on its image.

Legend: n = 2 coordinates, d embedding size, M modules, N positions.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from s2rm_data.models.config import ModelConfig


class PositionalEmbedding(nn.Module):
    """P(x) = s / |s| on the unit sphere in d dimensions; fixed (section 'Positional Embedding').

    Per coordinate x_m and band i = 1..d/2n: sin(w_i x_m) and cos(w_i x_m), w_i = scale * base^(-i * 2n/d).
    The paper prints x_m / 10000^i with colliding indices 2i + m; read literally P is constant to four digits over the
    arena. Here the bands are spaced as in the transformer it cites, each coordinate has its own components, and
    scale and base are config fields.
    """

    frequency: Tensor

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        bands = config.embedding_size // 4
        exponent = torch.arange(1, bands + 1, device="cpu", dtype=torch.float64) / bands
        frequency = config.position_scale * config.position_base**-exponent
        self.register_buffer("frequency", frequency.float(), persistent=False)

    def forward(self, position: Tensor) -> Tensor:
        """(..., 2) -> (..., d). sin^2 + cos^2 = 1 in each pair, so |s| is the constant sqrt(d / 2)."""
        angle = (position.unsqueeze(-1) * self.frequency).flatten(-2)
        return torch.cat([angle.sin(), angle.cos()], -1) * angle.shape[-1] ** -0.5


def arena_positions(arena_size: tuple[float, float]) -> Tensor:
    """Every whole-numbered position of the arena, (N, 2) as (x, y)."""
    width, height = (int(extent) for extent in arena_size)
    x, y = torch.arange(width, device="cpu"), torch.arange(height, device="cpu")
    return torch.cartesian_prod(x, y).float()


def covering_positions(embedding: PositionalEmbedding, arena_size: tuple[float, float], count: int) -> Tensor:
    """`count` positions that cover the arena in the embedding's metric: (count, 2).

    Farthest-point sampling from several starts; the start that leaves the worst position best covered is kept.
    Random embeddings would leave most of the arena outside every enclave (95% of positions with d = 16, tau = 0.6).
    """
    positions = arena_positions(arena_size)
    embedded = embedding(positions)
    starts = range(0, len(positions), max(1, len(positions) // 64))
    sampled = [_farthest_points(embedded, count, start) for start in starts]
    best, _ = max(sampled, key=lambda found: found[1])
    return positions[best]


def _farthest_points(embedded: Tensor, count: int, start: int) -> tuple[list[int], float]:
    """Indices, and the cosine of the worst covered position to its nearest chosen one."""
    chosen = [start]
    nearest = embedded @ embedded[start]
    for _ in range(count - 1):
        chosen.append(int(nearest.argmin()))
        nearest = torch.maximum(nearest, embedded @ embedded[chosen[-1]])
    return chosen, float(nearest.min())
