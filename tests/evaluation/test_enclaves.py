from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_runs import make_run

from s2rm_data.evaluation.enclaves import Enclaves, enclaves_of
from s2rm_data.evaluation.runs import load_runs


def test_maps_hold_the_kernel_at_every_pixel_by_row_and_column(tmp_path: Path) -> None:
    runs = load_runs([make_run(tmp_path / name, name, "bballs") for name in ("s2gru", "lstm")])
    found = enclaves_of(runs)
    assert set(found) == {"s2gru"}  # an LSTM has no modules
    model = runs[0].model
    assert found["s2gru"].maps.shape == (10, 48, 48)
    with torch.inference_mode():
        expected = model.enclaves(torch.tensor([31.0, 7.0]))
    np.testing.assert_allclose(found["s2gru"].maps[:, 7, 31], expected, rtol=1e-5)


def test_scores_of_two_modules_that_share_half_the_arena() -> None:
    maps = np.zeros((3, 4, 4), np.float32)
    maps[0, :2], maps[1, :, :2] = 0.5, 1.0
    scores = Enclaves(maps=maps).to_json()
    assert scores["covered_share"] == pytest.approx(12 / 16)
    assert scores["modules_per_position"] == pytest.approx(1.0)
    assert scores["largest_share_of_one_module"] == 0.5
    assert scores["idle_modules"] == 1
