"""Crops: how they are cut from bit-packed frames, zero outside the arena, and what is predicted of them.

On a GPU with torch operations, on a CPU with a compiled loop that expands 11 bits at a time by a table (about 40 times
as fast on one core as the same torch operations there); both give the same values."""

# F frames, S size of the arena in pixels, W = ceil(S / 8) bytes per row, ... any shape

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from s2rm_data.core.compiled import compiled

CROP = 11  # section 'Video Prediction from Crops': 11 x 11 crops
REACH = CROP // 2
_PADDED = 16  # the compiled loop writes a row as two 64-bit words; the crop is a view of the first 11 bytes


class BallTargets(NamedTuple):
    crop: Tensor  # (B, T, Q, 1, 11, 11) 0/1, any dtype: frame t + 1 around the query, zero outside the arena


class BallPrediction(NamedTuple):
    crop: Tensor  # (B, T, Q, 1, 11, 11) logits

    def probability(self) -> Tensor:
        return self.crop.sigmoid()


def cut(frames: Tensor, frame: Tensor, position: Tensor) -> Tensor:
    """Crops (..., 11, 11) uint8 of 0 and 1 around `position` (..., 2), whole (x, y) of the central pixel in the arena.
    frames: (F, S, W) uint8, packed, most significant bit first, bits past the last column 0; frame: (...) index."""
    if frames.device.type != "cpu":
        return cut_with_torch(frames, frame, position)
    count = frame.numel()
    out = torch.empty((count, CROP, _PADDED), dtype=torch.uint8)
    xy = position.reshape(count, 2).to(torch.int32).numpy()
    _cut(frames.numpy(), frame.reshape(count).to(torch.int64).numpy(), xy, _TABLE, out.numpy().view(np.uint64))
    return out.view(*frame.shape, CROP, _PADDED)[..., :CROP]


def cut_with_torch(frames: Tensor, frame: Tensor, position: Tensor) -> Tensor:
    _, size, width = frames.shape
    offset = torch.arange(-REACH, REACH + 1, device=frames.device)
    left = position[..., 0].long() - REACH
    row = position[..., 1].long().unsqueeze(-1) + offset  # (..., 11)
    byte = (left >> 3).unsqueeze(-1) + offset[:3] + REACH  # (..., 3): 11 bits lie in at most three bytes
    inside = ((row >= 0) & (row < size)).unsqueeze(-1) & ((byte >= 0) & (byte < width)).unsqueeze(-2)
    row, byte = row.clamp(0, size - 1), byte.clamp(0, width - 1)
    flat = (frame.long().unsqueeze(-1) * size + row).unsqueeze(-1) * width + byte.unsqueeze(-2)  # (..., 11, 3)
    found = torch.where(inside, frames.flatten()[flat].int(), 0)
    word = (found[..., 0] << 16) | (found[..., 1] << 8) | found[..., 2]
    shift = 23 - (left & 7).unsqueeze(-1) - (offset + REACH)  # (..., 11)
    return ((word.unsqueeze(-1) >> shift.unsqueeze(-2)) & 1).to(torch.uint8)


# (2048, 2): the 11 bits of a number, most significant first, as bytes of two words; the last five bytes are 0
_BITS = ((np.arange(2**CROP)[:, None] >> np.arange(CROP - 1, -1, -1)) & 1).astype(np.uint8)
_TABLE: NDArray[np.uint64] = np.pad(_BITS, ((0, 0), (0, _PADDED - CROP))).view(np.uint64)


@compiled(error_model="numpy")
def _cut(frames, frame, xy, table, out):  # type: ignore[no-untyped-def]
    """Crop k to out[k], (11, 2) words. No branches inside: what lies outside is read from the edge and masked."""
    _, size, width = frames.shape
    for k in range(len(frame)):
        image = frames[frame[k]]
        left, top = xy[k, 0] - REACH, xy[k, 1] - REACH
        first = left >> 3  # the byte that holds the first bit; 11 bits lie in at most three
        shift = np.uint32(13 - (left & 7))
        keep = np.uint32(0xFF0000 if 0 <= first < width else 0)
        keep |= np.uint32(0xFF00 if 0 <= first + 1 < width else 0)
        keep |= np.uint32(0xFF if 0 <= first + 2 < width else 0)
        a, b, c = _within(first, width), _within(first + 1, width), _within(first + 2, width)
        for i in range(CROP):
            row = _within(top + i, size)
            word = np.uint32(image[row, a]) << np.uint32(16)
            word |= np.uint32(image[row, b]) << np.uint32(8)
            word |= np.uint32(image[row, c])
            word &= keep if 0 <= top + i < size else np.uint32(0)
            code = (word >> shift) & np.uint32(2**CROP - 1)
            out[k, i, 0] = table[code, 0]
            out[k, i, 1] = table[code, 1]


@compiled(error_model="numpy")
def _within(index, size):  # type: ignore[no-untyped-def]
    return np.uint32(min(max(index, 0), size - 1))


def cut_pixels(pictures: Tensor, position: Tensor) -> Tensor:
    """Crops (B, T, K, 11, 11) of unpacked pictures (B, T, S, S) around positions (B, T, K, 2), zero outside."""
    batch, steps = position.shape[:2]
    padded = torch.nn.functional.pad(pictures, (REACH,) * 4)
    offset = torch.arange(CROP, device=pictures.device)
    column = position[..., 0].long()[..., None, None] + offset
    row = position[..., 1].long()[..., None, None] + offset[:, None]
    b = torch.arange(batch, device=pictures.device).view(-1, 1, 1, 1, 1)
    t = torch.arange(steps, device=pictures.device).view(-1, 1, 1, 1)
    return padded[b, t, row, column]


def crops_of_one(picture: Tensor, position: Tensor) -> Tensor:
    """One picture (S, S) around positions (B, T, K, 2): (B, T, K, 11, 11)."""
    return cut_pixels(picture.expand(*position.shape[:2], -1, -1), position)
