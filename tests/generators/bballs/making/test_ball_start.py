from __future__ import annotations

import numpy as np
import pytest

from s2rm_data.core.seeding import sequence_seeds
from s2rm_data.generators.bballs.making.ball_config import BallsConfig
from s2rm_data.generators.bballs.making.ball_packing import capacity
from s2rm_data.generators.bballs.making.ball_start import start


def _begin(count=5_000, stream="start", **config):
    return start(sequence_seeds(1, stream, 0, count), BallsConfig(**config))[:2]


def _smallest_distance(position, size):
    everything = np.concatenate([position, np.full((len(position), 1, 2), size / 2)], axis=1)
    i, j = np.triu_indices(everything.shape[1], 1)
    return np.sqrt(((everything[:, i] - everything[:, j]) ** 2).sum(-1)).min()


@pytest.mark.parametrize("balls", [1, 3, 6, 12, 16, 20, 24])
def test_every_accepted_number_of_balls_is_placed_apart_and_inside(balls):
    position, _ = _begin(count=200, balls=balls)
    assert _smallest_distance(position, 48) >= 9.0
    assert position.min() >= 4.5
    assert position.max() <= 43.5


@pytest.mark.parametrize(("size", "radius_px"), [(8, 0.75), (33, 2.3), (48, 9.84), (48, 5.76), (100, 7.0)])
def test_the_largest_accepted_number_of_balls_is_placed(size, radius_px):
    position, _ = _begin(count=20, balls=capacity(size, radius_px), size=size, radius_px=radius_px)
    assert _smallest_distance(position, size) >= 2 * radius_px
    assert position.min() >= radius_px
    assert position.max() <= size - radius_px


def test_dense_starts_differ_from_sequence_to_sequence():
    position, _ = _begin(count=50, balls=24)
    spread = position.std(axis=0)
    assert spread.min() > 1  # which ball is where is random, not only how it is shaken
    assert len(np.unique(position[:, 0, 0])) == 50


def test_places_cover_the_free_part_of_the_box_evenly():
    position, _ = _begin(count=40_000, balls=1)
    x, y = position[:, 0, 0], position[:, 0, 1]
    quadrants = [((x < 24) == left) & ((y < 24) == top) for left in (True, False) for top in (True, False)]
    np.testing.assert_allclose([q.mean() for q in quadrants], 0.25, atol=0.012)
    free = 39.0**2 - np.pi * 9.0**2
    edge = (x < 8.5) | (x > 39.5) | (y < 8.5) | (y > 39.5)  # a frame 4 px wide, out of the fixed ball's reach
    np.testing.assert_allclose(edge.mean(), (39.0**2 - 31.0**2) / free, atol=0.012)


def test_speeds_of_a_range_are_uniform_and_each_balls_own():
    _, velocity = _begin(balls=3)
    speed = np.sqrt((velocity**2).sum(-1))
    assert speed.min() >= 3.0 - 1e-12
    assert speed.max() <= 4.5 + 1e-12
    deciles = np.quantile(speed, np.arange(0.1, 1, 0.1))
    np.testing.assert_allclose(deciles, 3 + 1.5 * np.arange(0.1, 1, 0.1), atol=0.03)
    assert abs(np.corrcoef(speed[:, 0], speed[:, 1])[0, 1]) < 0.05


@pytest.mark.parametrize("preset", ["kvae", "sutskever"])
def test_directions_are_uniform_on_the_circle(preset):
    _, velocity = _begin(balls=3, preset=preset)
    angle = np.arctan2(velocity[..., 1], velocity[..., 0]).ravel()
    counts, _ = np.histogram(angle, bins=16, range=(-np.pi, np.pi))
    expected = len(angle) / 16
    assert ((counts - expected) ** 2 / expected).sum() < 45  # chi square, 15 degrees of freedom: p = 1e-4


@pytest.mark.parametrize("balls", [1, 2, 3, 6])
def test_sutskever_velocities_have_one_norm_for_the_whole_system(balls):
    _, velocity = _begin(count=500, balls=balls, preset="sutskever")
    np.testing.assert_allclose(np.sqrt((velocity**2).sum(axis=(1, 2))), 2.4, rtol=1e-14)


def test_sutskever_velocities_are_distributed_as_normalised_gaussians():
    _, velocity = _begin(count=20_000, balls=3, preset="sutskever")
    gaussian = np.random.default_rng(0).normal(size=(20_000, 3, 2))
    gaussian *= 2.4 / np.sqrt((gaussian**2).sum(axis=(1, 2), keepdims=True))
    levels = np.arange(0.05, 1, 0.05)
    for component in (velocity[:, 0, 0], velocity[:, 2, 1]):
        np.testing.assert_allclose(np.quantile(component, levels), np.quantile(gaussian[:, 0, 0], levels), atol=0.05)
    ours, theirs = (np.quantile(np.sqrt((v**2).sum(-1)), levels, axis=0) for v in (velocity, gaussian))
    np.testing.assert_allclose(ours, theirs, atol=0.05)


def test_the_start_depends_on_the_seed_alone():
    seeds = sequence_seeds(3, "alone", 0, 40)
    config = BallsConfig(balls=18)
    whole = start(seeds, config)
    for k in (0, 7, 39):
        part = start(seeds[k : k + 1], config)
        assert (part[0][0] == whole[0][k]).all()
        assert (part[1][0] == whole[1][k]).all()
    assert len(np.unique(whole[0][:, 0, 0])) == 40
