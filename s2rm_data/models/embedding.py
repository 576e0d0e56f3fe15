"""The positional embedding P, the start of the modules' embeddings p_m on its image, and the kernel Z between them.

Legend: n = 2 coordinates, d embedding size, M modules, N positions."""

import functools

import torch
from torch import Tensor, nn

from s2rm_data.models.config import ModelConfig
from s2rm_data.models.device import full_precision, full_products


class PositionalEmbedding(nn.Module):
    """P(x) = s / |s| on the unit sphere in d dimensions; fixed (section 'Positional Embedding').
    Per coordinate x_m and band i = 1..d/2n: sin(w_i x_m) and cos(w_i x_m), w_i = scale * base^(-i * 2n/d).
    The paper prints x_m / 10000^i with colliding indices 2i + m; read literally P is constant to four digits over the
    arena. Here the bands are spaced as in the transformer it cites, each coordinate has its own components, and
    scale and base are config fields."""

    frequency: Tensor

    def __init__(self, config: ModelConfig, device: torch.device | str | None = None) -> None:
        super().__init__()
        bands = config.embedding_size // 4
        exponent = torch.arange(1, bands + 1, device="cpu", dtype=torch.float64) / bands
        frequency = config.position_scale * config.position_base**-exponent
        frequency = frequency.float().to(torch.get_default_device() if device is None else device)
        self.register_buffer("frequency", frequency, persistent=False)

    def forward(self, position: Tensor) -> Tensor:
        """(..., 2) -> (..., d)."""
        return _embedded(position, self.frequency)


def _embedded(position: Tensor, frequency: Tensor) -> Tensor:
    """sin^2 + cos^2 = 1 in each pair, so |s| is the constant sqrt(d / 2)."""
    angle = (position.unsqueeze(-1) * frequency).flatten(-2)
    return torch.cat([angle.sin(), angle.cos()], -1) * angle.shape[-1] ** -0.5


def arena_positions(arena_size: tuple[float, float]) -> Tensor:
    """Every whole-numbered position of the arena, (N, 2) as (x, y)."""
    width, height = (int(extent) for extent in arena_size)
    x, y = torch.arange(width, device="cpu"), torch.arange(height, device="cpu")
    return torch.cartesian_prod(x, y).float()


def covering_embeddings(config: ModelConfig, count: int) -> Tensor:
    """Embeddings of `count` positions that cover the arena, (count, d), on the CPU.
    Farthest-point sampling from several starts; the start that leaves the worst position best covered is kept.
    Random embeddings would leave most of the arena outside every enclave (95% of positions with d = 16, tau = 0.6)."""
    frequency = PositionalEmbedding(config, device="cpu").frequency
    return _covering(config.arena_size, tuple(frequency.tolist()), count).clone()


@functools.lru_cache(maxsize=32)  # a model is built more often than its arena changes, also to be loaded
def _covering(arena_size: tuple[float, float], frequency: tuple[float, ...], count: int) -> Tensor:
    embedded = _embedded(arena_positions(arena_size), torch.tensor(frequency, device="cpu"))
    starts = range(0, len(embedded), max(1, len(embedded) // 64))
    sampled = [_farthest_points(embedded, count, start) for start in starts]
    best, _ = max(sampled, key=lambda found: found[1])
    return embedded[best]


def _farthest_points(embedded: Tensor, count: int, start: int) -> tuple[list[int], float]:
    """Indices, and the cosine of the worst covered position to its nearest chosen one."""
    chosen = [start]
    nearest = embedded @ embedded[start]
    for _ in range(count - 1):
        chosen.append(int(nearest.argmin()))
        nearest = torch.maximum(nearest, embedded @ embedded[chosen[-1]])
    return chosen, float(nearest.min())


def spherical_kernel(p: Tensor, s: Tensor, *, bandwidth: float, truncation: float) -> Tensor:
    """Z(p, s) of equation eq:zonalkernel for all pairs of unit vectors: (..., N, d), (..., K, d) -> (..., N, K).
    Z = exp(-2 epsilon (1 - p.s)) where p.s >= tau, else 0. 'We pass the gradients through the constant region of the
    kernel as if the kernel had not been truncated' (appendix 'Bouncing Ball Models'): the value is masked, the
    gradient is that of the untruncated kernel."""
    with full_precision(p), full_products():  # a rounded p.s would move the border by whole pixels
        dtype = torch.promote_types(p.dtype, torch.float32)
        cosine = p.to(dtype) @ s.to(dtype).transpose(-1, -2)
        full = torch.exp(-2.0 * bandwidth * (1.0 - cosine))
        return full - torch.where(cosine < truncation, full, 0.0).detach()
