"""Crops against plain slicing of the padded, unpacked frame."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from s2rm_data.generators.bballs.learning.ball_crops import CROP, cut, cut_with_torch


@pytest.mark.parametrize("size", [8, 13, 48, 50])
@pytest.mark.parametrize("function", [cut, cut_with_torch])
def test_crops_are_slices_of_the_zero_padded_frame(size: int, function) -> None:
    random = np.random.default_rng(size)
    pixels = random.integers(0, 2, (3, size, size), dtype=np.uint8)
    padded = np.pad(pixels, ((0, 0), (5, 5), (5, 5)))
    grid = np.stack(np.meshgrid(np.arange(3), np.arange(size), np.arange(size), indexing="ij"), -1).reshape(-1, 3)
    frame, xy = torch.from_numpy(grid[:, 0]), torch.from_numpy(grid[:, 1:])
    crops = function(torch.from_numpy(np.packbits(pixels, axis=-1)), frame, xy).numpy()
    expected = [padded[f, y : y + CROP, x : x + CROP] for f, x, y in grid]
    np.testing.assert_array_equal(crops, expected)


def test_crops_keep_the_shape_of_what_was_asked() -> None:
    frames = torch.zeros(4, 48, 6, dtype=torch.uint8)
    crops = cut(frames, torch.zeros(2, 3, 5, dtype=torch.int64), torch.zeros(2, 3, 5, 2, dtype=torch.int16))
    assert crops.shape == (2, 3, 5, CROP, CROP)
    assert crops.dtype == torch.uint8
