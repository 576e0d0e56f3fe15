from __future__ import annotations

from pathlib import Path

import pytest
from matplotlib.image import imread

from s2rm_data.generators.bballs.learning.ball_crops import CROP, REACH
from s2rm_data.generators.bballs.learning.ball_learning import predicted_frames, stitch_grid
from s2rm_data.learning import FixedBatches, open_source
from s2rm_data.models import build
from s2rm_data.store import Store
from s2rm_data.training.journal import draw_predictions


@pytest.mark.parametrize("size", [11, 12, 30, 48, 64])
def test_crops_of_the_grid_cover_every_pixel_and_stay_inside(size: int) -> None:
    covered = {pixel for centre in stitch_grid(size) for pixel in range(centre - REACH, centre + REACH + 1)}
    assert covered == set(range(size))
    assert len(stitch_grid(size)) == -(-size // CROP)


@pytest.mark.usefixtures("drawn")
@pytest.mark.parametrize("task", ["bballs", "sc2"])
def test_a_picture_is_drawn_for_both_tasks(store: Store, task: str, tmp_path: Path) -> None:
    source = open_source(store, task, "val")
    model = build("lstm", task=task, image_size=source.image_size, codec="mlp", width=2, encoding_size=16)
    draw_predictions(model, FixedBatches(source, batch_size=2), tmp_path / "picture.png")
    picture = imread(tmp_path / "picture.png")
    assert picture.shape[1] > picture.shape[0] > 100
    assert picture[..., :3].std() > 0.1


def test_predicted_frames_are_probabilities_of_whole_frames(store: Store) -> None:
    source = open_source(store, "bballs", "val")
    model = build("s2gru", task="bballs", codec="mlp", width=2, encoding_size=16)
    request = FixedBatches(source, batch_size=1).request(0)
    frames = predicted_frames(model, source.batch(request), 48)
    assert frames.shape == (source.steps, 48, 48)
    assert frames.min() > 0 and frames.max() < 1
