"""What the viewer shows of models: the predictions that evaluation scores, and roll-outs that continue them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from tiny_runs import make_run

from s2rm_data.core.errors import UsageError
from s2rm_data.evaluation.blocks import piece_of, pieces
from s2rm_data.evaluation.runs import Run, load_runs
from s2rm_data.evaluation.viewer_predictions import RunPredictor
from s2rm_data.generators.bballs.evaluation.ball_rollouts import grid_positions, stitch
from s2rm_data.generators.bballs.inspection.ball_scene import view_positions
from s2rm_data.generators.bballs.learning.ball_learning import predicted_frames
from s2rm_data.generators.sc2.evaluation.battle_predictions import fed_back, roll_out
from s2rm_data.generators.sc2.learning.battle_scores import PolarPrediction
from s2rm_data.store import Store

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    folder = tmp_path_factory.mktemp("runs")
    make_run(folder / "balls", "s2gru", "bballs")
    make_run(folder / "oracle", "tto", "bballs")
    make_run(folder / "battles", "s2gru", "sc2")
    return load_runs([folder / name for name in ("balls", "oracle", "battles")])


@pytest.fixture(scope="module")
def predictor(runs: list[Run]) -> RunPredictor:
    return RunPredictor(runs, CPU)


def test_one_sequence_is_looked_at_as_evaluation_looks_at_it(store: Store) -> None:
    group = store["bballs/val"]
    everything = next(iter(pieces(group, limit=4, device=CPU)))
    alone = piece_of(group, 3, device=CPU)
    torch.testing.assert_close(alone.batch.views[0], everything.batch.views[3])
    dropped = everything.dropped(0.5).view_mask[3]
    torch.testing.assert_close(alone.dropped(0.5).view_mask[0], dropped)
    np.testing.assert_array_equal(view_positions(3, 12, 48), alone.request.view[0])  # what the scene draws


def test_balls_one_step_ahead_are_the_models_frames(predictor: RunPredictor, runs: list[Run], store: Store) -> None:
    group = store["bballs/val"]
    found = predictor.prediction("balls", group, 1, index=0, start=0, dropped=0.3)
    picture = found.panels[0].pictures[-1]
    expected = predicted_frames(runs[0].model, piece_of(group, 1, device=CPU).dropped(0.3), 48).numpy()
    assert picture.first == 1
    np.testing.assert_allclose(picture.values / picture.divisor, expected, atol=0.5 / 255 + 1e-6)
    (views,) = found.layers
    assert views.there.sum(1).tolist() == [7] * 12


def test_a_roll_out_begins_with_the_prediction_one_step_ahead(
    predictor: RunPredictor, runs: list[Run], store: Store
) -> None:
    group = store["bballs/val"]
    rolled = predictor.prediction("balls", group, 0, index=0, start=5, dropped=0.0).panels[0].pictures[-1]
    assert rolled.first == 5 and len(rolled.values) == 12 - 5
    assert set(np.unique(rolled.values)) <= {0, 1, 2}
    assert (rolled.values == 2).sum(axis=(1, 2)).tolist() == [48**2 - 44**2] * 7  # the edge is not drawn
    batch = piece_of(group, 0, device=CPU).batch
    asked = grid_positions(48)[0].expand(1, batch.views.shape[1], -1, 2)
    with torch.inference_mode():
        ahead = runs[0].model(dataclasses.replace(batch, query_position=asked)).crop[0, 4, :, 0] > 0
    np.testing.assert_array_equal(rolled.values[0, 2:46, 2:46] == 1, stitch(ahead[None])[0])


def test_a_battle_rolled_out_from_its_last_step_is_one_step_ahead(runs: list[Run], store: Store) -> None:
    batch = piece_of(store["sc2/2s3z/val"], 0, device=CPU).batch
    last = batch.views.shape[1]
    with torch.inference_mode():
        ahead, rolled = runs[2].model(batch), roll_out(runs[2].model, batch, last)
    for whole, one in zip(ahead, rolled, strict=True):
        torch.testing.assert_close(one[:, 0], whole[:, last - 1], atol=1e-5, rtol=1e-4)


def test_a_roll_out_sees_nothing_of_what_comes_after_its_start(runs: list[Run], store: Store) -> None:
    batch = piece_of(store["sc2/2s3z/val"], 0, device=CPU).batch
    with torch.inference_mode():
        before = roll_out(runs[2].model, batch, 3)
        changed = batch.views.clone()
        changed[:, 3:, :, :14] = 0  # friends, unit types and stats
        after = roll_out(runs[2].model, dataclasses.replace(batch, views=changed), 3)
    for one, other in zip(before, after, strict=True):
        torch.testing.assert_close(one, other)


def test_a_perfect_prediction_is_fed_back_as_the_true_views(store: Store) -> None:
    views = piece_of(store["sc2/2s3z/val"], 1, device=CPU).batch.views[:, 2]
    friendly, types, hecs = views[..., 0, :, :], views[..., 1:10, :, :], views[..., 10:14, :, :]
    nothing = 1 - types.sum(-3, keepdim=True)
    prediction = PolarPrediction(friendly - 0.5, torch.cat([nothing, types], -3), hecs)
    torch.testing.assert_close(fed_back(prediction, views), views)


def test_an_agents_predictions_stand_beside_its_true_images(predictor: RunPredictor, store: Store) -> None:
    group = store["sc2/2s3z/val"]
    found = predictor.prediction("battles", group, 0, index=2, start=0, dropped=0.5)
    titles = [picture.title for picture in found.panels[0].pictures]
    pairs = [(what, which) for what in ("friendly marker", "unit type") for which in ("true", "predicted")]
    assert titles[:4] == [f"{what}: {which}" for what, which in pairs]
    true = found.panels[0].pictures[2]
    length = int(group["length"][0])
    np.testing.assert_array_equal(true.values, group["categories"][0][1:length, 2, :, :, 1])


def test_enclaves_are_maps_of_the_whole_arena(predictor: RunPredictor) -> None:
    (stack,) = predictor.enclaves("balls").layers
    assert stack.values.shape[1:] == (48, 48) and stack.extent == (0, 0, 48, 48)
    assert stack.values.min() >= 0 and stack.values.max() <= 1 + 1e-6


def test_runs_say_what_they_can(predictor: RunPredictor) -> None:
    found = {run["name"]: (run["rolls_out"], run["enclaves"]) for run in predictor.runs()}
    assert found == {"balls": (True, True), "oracle": (False, False), "battles": (True, True)}


@pytest.mark.parametrize(
    ("run", "path", "start", "message"),
    [
        ("balls", "sc2/2s3z/val", 0, "was trained on bballs"),
        ("oracle", "bballs/val", 3, "cannot be rolled out"),
        ("balls", "bballs/val", 12, "steps 1 to 11"),
    ],
)
def test_what_a_run_cannot_do_is_refused(
    predictor: RunPredictor, store: Store, run: str, path: str, start: int, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        predictor.prediction(run, store[path], 0, index=0, start=start, dropped=0.0)
