from __future__ import annotations

import numpy as np
import torch

from s2rm_data.generators.bballs.learning.ball_learning import last_seen_canvas, seen_pixels


def test_the_canvas_is_painted_view_by_view_and_keeps_what_it_saw() -> None:
    random = np.random.default_rng(0)
    frames = random.integers(0, 2, (2, 6, 20, 20))
    position, mask = random.integers(0, 20, (2, 6, 3, 2)), random.random((2, 6, 3)) < 0.7
    canvas, expected = np.zeros((2, 20, 20), bool), []
    for t in range(6):
        for b, v in np.ndindex(2, 3):
            if mask[b, t, v]:
                x, y = position[b, t, v]
                where = np.s_[b, max(y - 5, 0) : y + 6, max(x - 5, 0) : x + 6]
                canvas[where] = frames[:, t][where]
        expected.append(canvas.copy())
    seen = seen_pixels(torch.from_numpy(position), torch.from_numpy(mask), size=20, reach=5)
    np.testing.assert_array_equal(last_seen_canvas(torch.from_numpy(frames), seen), np.stack(expected, 1))
