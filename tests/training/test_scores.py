"""Validation scores and references against slow, literal versions of them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score

from s2rm_data.core.registry import WORLDS
from s2rm_data.learning import FixedBatches, open_source
from s2rm_data.learning.world_learning import Learning
from s2rm_data.models import build
from s2rm_data.store import Store
from s2rm_data.training.processes import Processes
from s2rm_data.training.scores import reference_scores, validate


def learning_of(task: str) -> Learning:
    return WORLDS.load(task).learning()


def crop(picture: np.ndarray, x: int, y: int) -> np.ndarray:
    return np.pad(picture, 5)[y : y + 11, x : x + 11]


def test_references_of_balls_agree_with_painting_them_by_hand(store: Store) -> None:
    source = open_source(store, "bballs", "val", views=4, queries=3)
    batches = FixedBatches(source, batch_size=4)
    found = reference_scores(learning_of("bballs"), batches, Processes())
    frames, fixed = store["bballs/val"]["frames"][:], source.fixed_ball.numpy()
    true, drawn, moving = [], {name: [] for name in found}, []
    for number in range(len(batches)):
        request = batches.request(number)
        for sequence, view, query in zip(request.sequence, request.view, request.query, strict=True):
            canvas = np.zeros((48, 48), np.uint8)
            for t in range(source.steps):
                now, after = frames[sequence, t], frames[sequence, t + 1]
                for x, y in view[t]:
                    where = np.s_[max(y - 5, 0) : y + 6, max(x - 5, 0) : x + 6]
                    canvas[where] = now[where]
                pictures = {"last_seen": canvas, "copy_previous": now, "centre_only": fixed, "always_off": 0 * now}
                for x, y in query[t]:
                    true.append(crop(after, x, y))
                    moving.append(~crop(fixed, x, y).astype(bool))
                    for name, picture in pictures.items():
                        drawn[name].append(crop(picture, x, y))
    true, moving = np.array(true), np.array(moving)
    for name, pictures in drawn.items():
        pictures = np.array(pictures)
        assert found[name]["f1"] == pytest.approx(f1_score(true.ravel(), pictures.ravel(), zero_division=0))
        expected = f1_score(true[moving], pictures[moving], zero_division=0)
        assert found[name]["f1_moving"] == pytest.approx(expected)


@pytest.mark.parametrize("task", ["bballs", "sc2"])
def test_validation_does_not_depend_on_the_batch_size(store: Store, task: str) -> None:
    source = open_source(store, task, "val")
    model = build("s2gru", task=task, image_size=source.image_size, codec="mlp", width=2, encoding_size=16)
    results = [
        validate(model, learning_of(task), FixedBatches(source, batch_size=size), Processes()) for size in (1, 6)
    ]
    assert results[0].loss == pytest.approx(results[1].loss, rel=1e-5)
    assert results[0].scores == pytest.approx(results[1].scores, abs=1e-6)


def test_a_perfect_prediction_scores_one(store: Store) -> None:
    source = open_source(store, "bballs", "val")

    class Oracle(torch.nn.Module):
        def forward(self, batch):
            from s2rm_data.generators.bballs.learning.ball_crops import BallPrediction

            return BallPrediction(40.0 * batch.targets.crop.float() - 20.0)

        def loss(self, prediction, batch):
            return torch.zeros(())

    scores = validate(Oracle(), learning_of("bballs"), FixedBatches(source, batch_size=6), Processes()).scores
    assert scores == {"f1": 1.0, "balanced_accuracy": 1.0, "f1_moving": 1.0, "balanced_accuracy_moving": 1.0}
