"""The truncated spherical Gaussian kernel Z that makes observation, interaction and query local."""

from __future__ import annotations

import torch
from torch import Tensor


def spherical_kernel(p: Tensor, s: Tensor, *, bandwidth: float, truncation: float) -> Tensor:
    """Z(p, s) of equation eq:zonalkernel for all pairs of unit vectors: (..., N, d), (..., K, d) -> (..., N, K).

    Z = exp(-2 epsilon (1 - p.s)) where p.s >= tau, else 0. 'We pass the gradients through the constant region of the
    kernel as if the kernel had not been truncated' (appendix 'Bouncing Ball Models'): the value is masked, the
    gradient is that of the untruncated kernel.
    """
    with torch.autocast(p.device.type, enabled=False):  # a half-precision p.s would move the border by whole pixels
        dtype = torch.promote_types(p.dtype, torch.float32)
        cosine = p.to(dtype) @ s.to(dtype).transpose(-1, -2)
        full = torch.exp(-2.0 * bandwidth * (1.0 - cosine))
        return full - torch.where(cosine < truncation, full, 0.0).detach()
