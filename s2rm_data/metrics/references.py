"""What a prediction must beat to have learned motion: pictures that anybody can draw without a model.

Legend: B sequences, T steps, V views, S x S pixels.

- the last-seen canvas: every pixel as a view last showed it, off where none ever did;
- a copy of the whole previous frame, of which no model sees more than half;
- the fixed ball in the centre, which is always there;
- nothing: all pixels off.
"""

from __future__ import annotations

import torch
from torch import Tensor


def seen_pixels(view_position: Tensor, view_mask: Tensor, size: int, reach: int) -> Tensor:
    """(B, T, S, S) bool, [row, column]: the pixels within `reach` of a view's centre (B, T, V, 2), masked (B, T, V)."""
    line = torch.arange(size, device=view_position.device)
    near = (view_position.unsqueeze(-1) - line).abs() <= reach  # (B, T, V, 2, S)
    columns, rows = (near & view_mask[..., None, None]).float().unbind(-2)
    return torch.einsum("btvr,btvc->btrc", rows, columns) > 0


def last_seen_canvas(frames: Tensor, seen: Tensor) -> Tensor:
    """(B, T, S, S) bool: at t, all that was seen of frames 0..t. frames (B, T, S, S) 0/1; seen (B, T, S, S) bool."""
    canvas = torch.zeros_like(seen[:, 0])
    canvases = []
    for frame, fresh in zip(frames.bool().unbind(1), seen.unbind(1), strict=True):
        canvas = torch.where(fresh, frame, canvas)
        canvases.append(canvas)
    return torch.stack(canvases, 1)
