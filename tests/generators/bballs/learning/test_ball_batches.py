from __future__ import annotations

import numpy as np
import pytest
import torch
from small_stores import FRAMES

from s2rm_data.core.errors import UsageError
from s2rm_data.learning import FixedBatches, TrainingBatches, open_source
from s2rm_data.models import build
from s2rm_data.store import Store


def crop_of(frames: np.ndarray, x: float, y: float) -> np.ndarray:
    return np.pad(frames, 5)[int(y) : int(y) + 11, int(x) : int(x) + 11]


def test_views_and_targets_are_crops_of_the_stored_frames_one_step_apart(store: Store) -> None:
    source = open_source(store, "bballs", "train", steps=5)
    batches = TrainingBatches(source, batch_size=4, seed=1)
    request, batch = batches.request(2, 3), batches.batch(2, 3)
    frames = store["bballs/train"]["frames"]
    for b, t, k in np.ndindex(4, 5, 10):
        sequence = frames[int(request.sequence[b])][request.start[b] :]
        np.testing.assert_array_equal(batch.views[b, t, k, 0], crop_of(sequence[t], *batch.view_position[b, t, k]))
        expected = crop_of(sequence[t + 1], *batch.query_position[b, t, k])
        np.testing.assert_array_equal(batch.targets[0][b, t, k, 0], expected)
    assert batch.view_mask.all() and batch.query_mask.all()


def test_windows_reach_both_ends_of_the_sequence(store: Store) -> None:
    source = open_source(store, "bballs", "train", steps=5)
    starts = source.sample(np.random.default_rng(0), np.zeros(2000, np.int64)).start
    assert set(starts) == set(range(FRAMES - 5))


def test_positions_are_uniform_over_the_arena(store: Store) -> None:
    source = open_source(store, "bballs", "train", steps=11)
    request = source.sample(np.random.default_rng(0), np.zeros(500, np.int64))
    counts = np.bincount(request.view[:, :, :, 0].ravel(), minlength=48)
    assert len(counts) == 48
    assert counts.min() > 0.8 * counts.mean()


def test_next_views_are_the_views_one_frame_later(store: Store) -> None:
    plain = TrainingBatches(open_source(store, "bballs", "train", steps=5), batch_size=4, seed=1).batch(0, 0)
    source = open_source(store, "bballs", "train", steps=5, next_views=True)
    batch = TrainingBatches(source, batch_size=4, seed=1).batch(0, 0)
    torch.testing.assert_close(batch.views, plain.views, rtol=0, atol=0)
    torch.testing.assert_close(batch.next_views[:, :-1], batch.views[:, 1:], rtol=0, atol=0)
    torch.testing.assert_close(batch.next_view_position[:, :-1], batch.view_position[:, 1:], rtol=0, atol=0)


def test_an_exact_fraction_of_views_is_dropped_and_smaller_fractions_drop_a_subset(store: Store) -> None:
    source = open_source(store, "bballs", "val")
    masks = [next(iter(FixedBatches(source, batch_size=3, drop=drop))).view_mask for drop in (0.0, 0.3, 0.8, 1.0)]
    assert [int(mask.sum(-1).unique()) for mask in masks] == [10, 7, 2, 0]
    assert (masks[2] <= masks[1]).all()


def test_a_fraction_that_is_no_whole_number_of_views_is_refused(store: Store) -> None:
    source = open_source(store, "bballs", "val")
    with pytest.raises(UsageError, match="not a whole number"):
        next(iter(FixedBatches(source, batch_size=3, drop=0.25)))


def test_whole_frames_are_what_is_stored(store: Store) -> None:
    source = open_source(store, "bballs", "val")
    request = FixedBatches(source, batch_size=3).request(1)
    np.testing.assert_array_equal(source.whole_frames(request), store["bballs/val"]["frames"][3:6])


def test_the_fixed_ball_is_on_in_every_frame_and_little_else_is(store: Store) -> None:
    source = open_source(store, "bballs", "train")
    always = store["bballs/train"]["frames"][:].all(axis=(0, 1))
    assert always[source.fixed_ball.numpy()].all()
    np.testing.assert_array_equal(always, source.fixed_ball)


def test_a_model_trains_on_it(store: Store) -> None:
    source = open_source(store, "bballs", "train", steps=3, next_views=True)
    batch = TrainingBatches(source, batch_size=2, seed=0).batch(0, 0)
    for name in ("s2gru", "tto"):
        model = build(name, task="bballs", codec="mlp", width=4)
        assert torch.isfinite(model.loss(model(batch), batch))


@pytest.mark.parametrize("steps", [0, FRAMES, 1000])
def test_windows_longer_than_the_sequences_are_refused(store: Store, steps: int) -> None:
    with pytest.raises(UsageError, match="allowed are 1 to 11"):
        open_source(store, "bballs", "train", steps=steps)
