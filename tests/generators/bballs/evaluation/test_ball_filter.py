"""The exact filter against a posterior computed by brute force, and against the truth of what it says it knows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import s2rm_data as s2
from s2rm_data.core.errors import UsageError
from s2rm_data.core.progress import Progress
from s2rm_data.generators.bballs.evaluation.ball_ceiling import FilterConfig, can_filter, filter_views, filtered
from s2rm_data.generators.bballs.making.ball_config import BallsConfig, GeneralConfig
from s2rm_data.generators.bballs.making.ball_render import draw_packed, standing_pixels
from s2rm_data.generators.bballs.making.ball_simulate import simulate_sequences

SMALL = BallsConfig(balls=1, frames=4, size=24, radius_px=4.0, speed_px_per_frame=(2.0, 3.0))


def frames_of(config: BallsConfig, seeds: np.ndarray) -> np.ndarray:
    """(N, T, S, S) of 0 and 1."""
    position, _, radius, _ = simulate_sequences(seeds, config)
    packed = draw_packed(position, radius, standing_pixels(config))
    return np.unpackbits(packed, axis=-1, count=config.size)


def windows(config: BallsConfig, side: int, seed: int) -> np.ndarray:
    """(T, S, S): two squares of each frame are seen."""
    random, seen = np.random.default_rng(seed), np.zeros((config.frames, config.size, config.size), np.bool_)
    for frame in seen:
        for x, y in random.integers(0, config.size - side, (2, 2)):
            frame[y : y + side, x : x + side] = True
    return seen


def enumerated(config: BallsConfig, frames: np.ndarray, seen: np.ndarray, sharpness: float) -> np.ndarray:
    """(T, S, S): as `Filtered.made`, by weighing very many first frames."""
    drawn = frames_of(replace(config, frames=config.frames + 1), np.arange(10**6, 10**6 + 50_000, dtype=np.uint64))
    wrong, found = np.zeros(len(drawn)), []
    for t in range(config.frames):
        wrong += ((drawn[:, t] != frames[t]) & seen[t]).sum((1, 2))
        weight = np.exp(-sharpness * (wrong - wrong.min()))
        assert weight.sum() ** 2 / (weight**2).sum() > 200  # it knows
        found.append(np.einsum("n,nij->ij", weight / weight.sum(), drawn[:, t + 1].astype(np.float32)))
    return np.stack(found)


def test_it_is_the_posterior_that_enumeration_finds() -> None:
    for number in (4, 5):
        frames = frames_of(SMALL, np.array([number], np.uint64))[0]
        seen = windows(SMALL, 4, number)
        exact = enumerated(SMALL, frames, seen, 1.0)
        made = filter_views(frames, seen, SMALL, FilterConfig(particles=1000, moves=30, sharpness=1.0)).made / 255
        assert (np.abs(exact - 0.5) < 0.45).sum() > 300, "nothing was open"
        assert np.abs(made - exact).mean() < 0.008, number
        assert np.abs(made - exact).max() < 0.1, number


def test_one_ball_that_is_seen_whole_is_known() -> None:
    config = BallsConfig(balls=1, frames=40)
    frames = frames_of(config, np.array([5], np.uint64))[0]
    found = filter_views(frames, np.ones(frames.shape, np.bool_), config, FilterConfig(particles=100))
    assert not found.lost.any()
    wrong = ((found.made[:-1] > 127) != frames[1:]).sum((1, 2))
    assert wrong[3:].mean() < 0.5
    assert wrong[10:].max() <= 3


def test_two_hypotheses_have_their_weights() -> None:
    """Only pixels are seen that are off in the truth and in its mirror image: each of the two has one half."""
    frames = frames_of(SMALL, np.array([3], np.uint64))[0]
    seen = ~(frames | frames[..., ::-1]).astype(np.bool_)
    settings = [FilterConfig(particles=500, moves=30, sharpness=2.0, seed=seed) for seed in range(8)]
    made = np.mean([filter_views(frames, seen, SMALL, one).made[-1] / 255 for one in settings], 0)
    one = frames[-1].astype(np.bool_) & ~frames[-1, :, ::-1].astype(np.bool_)
    assert one.sum() > 20
    weights = made[one].mean(), made[:, ::-1][one].mean()
    assert 0.8 < sum(weights) <= 1
    assert weights[0] / sum(weights) == pytest.approx(0.5, abs=0.17)


def test_how_likely_it_says_a_pixel_is_is_how_often_it_is_on() -> None:
    config = BallsConfig(balls=1, frames=12)
    given, true = [], []
    for number in range(30):
        frames = frames_of(config, np.array([number + 100], np.uint64))[0]
        settings = FilterConfig(particles=300)
        found = filter_views(frames, windows(config, 12, number), config, settings, number=number)
        given.append(found.made[:-1] / 255)
        true.append(frames[1:])
    p, on = np.concatenate(given).ravel(), np.concatenate(true).ravel()
    for low, high, off in ((0.0, 0.1, 0.02), (0.1, 0.2, 0.06), (0.2, 0.4, 0.08), (0.4, 0.8, 0.17), (0.8, 1.0, 0.02)):
        chosen = (p > low) & (p <= high)
        assert chosen.sum() > 1000, low
        assert on[chosen].mean() == pytest.approx(p[chosen].mean(), abs=off), low


def test_the_number_of_balls_is_found() -> None:
    config = BallsConfig(balls=2, frames=30)
    frames = frames_of(config, np.array([11], np.uint64))[0]
    seen = windows(config, 30, 1)
    known = filter_views(frames, seen, config, FilterConfig(particles=100))
    unknown = filter_views(frames, seen, config, FilterConfig(particles=100, counts=(1, 2, 3)))
    wrong = [((found.made[10:-1] > 127) != frames[11:]).sum() for found in (known, unknown)]
    assert wrong[1] <= 1.5 * wrong[0] + 50
    only_one = filter_views(frames, seen, config, FilterConfig(particles=100, counts=(1,)))
    assert only_one.lost[10:].all()
    assert not unknown.lost[10:].any()


def test_results_depend_on_seed_and_number_alone() -> None:
    config = BallsConfig(balls=2, frames=12)
    frames, settings = frames_of(config, np.array([1], np.uint64))[0], FilterConfig(particles=20)
    seen = windows(config, 20, 0)
    first = filter_views(frames, seen, config, settings, number=4, prompt=6, horizon=3)
    again = filter_views(frames, seen, config, settings, number=4, prompt=6, horizon=3)
    assert (first.made == again.made).all()
    assert (first.rolled == again.rolled).all()
    assert first.rolled.shape == (3, 48, 48)
    for changed in ({"number": 5}, {"settings": replace(settings, seed=1)}):
        other = filter_views(frames, seen, config, **{"settings": settings, "number": 4, **changed})
        assert (other.made != first.made).any(), changed
        assert np.abs(other.made[8:] / 255.0 - first.made[8:] / 255.0).mean() < 0.02, changed


def test_unseen_pixels_are_not_looked_at() -> None:
    config, settings = BallsConfig(balls=2, frames=8), FilterConfig(particles=20)
    frames, seen = frames_of(config, np.array([1], np.uint64))[0], windows(config, 15, 0)
    hidden = np.where(seen, frames, 1 - frames)
    made = [filter_views(given, seen, config, settings).made for given in (frames, hidden)]
    assert (made[0] == made[1]).all()


def test_what_was_kept_and_is_damaged_is_found_anew(tmp_path: Path) -> None:
    s2.generate("bballs", tmp_path / "data.zarr", balls=1, train=1, val=0, test=1, frames=8, quiet=True)
    group = s2.open(tmp_path / "data.zarr")["bballs/test_1"]

    def found() -> np.ndarray:
        (one,) = filtered(group, 1, 0.0, (4, 2), Progress(), FilterConfig(particles=20))
        return np.concatenate([one.made, one.rolled])

    first = found()
    (kept,) = (tmp_path / "data.zarr.ceilings").iterdir()
    whole = kept.read_bytes()
    for place in (*range(8), *range(len(whole) // 9, len(whole), len(whole) // 9)):
        kept.write_bytes(whole[:place] + bytes(255 - byte for byte in whole[place : place + 8]) + whole[place + 8 :])
        assert (found() == first).all(), place


def test_bad_input_is_refused() -> None:
    frames = np.zeros((4, 48, 48), np.uint8)
    config, settings = BallsConfig(balls=1, frames=4), FilterConfig()
    one_speed = replace(config, preset="sutskever", radius_px=None, speed_px_per_frame=None)
    general = GeneralConfig(balls=1, gravity=(0.0, 0.1))
    assert can_filter(config) and not can_filter(general) and not can_filter(BallsConfig(balls=1, size=96))
    for message, call in (
        ("belong together", lambda: filter_views(frames, frames[:2] > 0, config, settings)),
        ("belong together", lambda: filter_views(frames, frames > 0, config, settings, prompt=5)),
        ("one speed", lambda: filter_views(frames, frames > 0, one_speed, FilterConfig(counts=(1, 2)))),
        ("plain worlds", lambda: filter_views(frames, frames > 0, general, settings)),  # type: ignore[arg-type]
        ("particles", lambda: FilterConfig(particles=1)),
        ("counts", lambda: FilterConfig(counts=())),
        ("counts", lambda: FilterConfig(counts=(0,))),
        ("sharpness", lambda: FilterConfig(sharpness=0.0)),
    ):
        with pytest.raises(UsageError, match=message):
            call()
