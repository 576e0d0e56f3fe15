from __future__ import annotations

import numpy as np
import pytest

from s2rm_data.config import from_json, to_json
from s2rm_data.errors import UsageError
from s2rm_data.generators.bballs.config import PRESETS, BallsConfig


def test_the_default_is_the_papers_box_with_the_kvae_physics():
    config = BallsConfig(balls=3)
    assert (config.frames, config.size, config.radius_px) == (100, 48, 4.5)
    assert config.speed_px_per_frame == (3.0, 4.5)
    assert config.system_speed_px_per_frame is None


def test_the_sutskever_preset_has_one_speed_for_the_whole_system():
    config = BallsConfig(balls=3, preset="sutskever")
    assert config.radius_px == 5.76
    assert config.speed_px_per_frame is None
    assert config.system_speed_px_per_frame / np.sqrt(3) == pytest.approx(1.39, abs=0.005)


def test_presets_scale_with_the_box():
    config = BallsConfig(balls=3, size=96)
    assert config.radius_px == 9.0
    assert config.speed_px_per_frame == (6.0, 9.0)
    assert BallsConfig(balls=3, size=96, preset="sutskever").system_speed_px_per_frame == 4.8


def test_numbers_given_by_hand_replace_the_presets():
    config = BallsConfig(balls=3, size=96, preset="sutskever", radius_px=3, speed_px_per_frame=(2, 2))
    assert config.radius_px == 3.0
    assert config.speed_px_per_frame == (2.0, 2.0)
    assert config.system_speed_px_per_frame is None


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("given", [{}, {"radius_px": 3.3}, {"speed_px_per_frame": (0, 2.5)}, {"size": 50}])
def test_a_config_goes_to_json_and_back_unchanged(preset, given):
    config = BallsConfig(balls=np.int64(2), preset=preset, **given)
    assert from_json(BallsConfig, to_json(config)) == config


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"balls": 0}, r"number of balls 0 is out of range; allowed are whole numbers from 1 to 1000"),
        ({"balls": -1}, "out of range"),
        ({"balls": 2.5}, "number of balls 2.5 is not a whole number"),
        ({"balls": True}, "not a whole number"),
        ({"balls": 25}, r"do not fit .* at most 24 balls of this radius, or a radius of at most 4\.\d+ px for 25"),
        ({"balls": 10**9}, "out of range"),
        ({"frames": 0}, "number of frames 0 is out of range"),
        ({"frames": 10**12}, "out of range"),
        ({"frames": 1_000_000, "size": 1024}, r"too many for one sequence; at this size at most \d+"),
        ({"size": 7}, "size of the box in px 7 is out of range; allowed are whole numbers from 8 to 1024"),
        ({"size": 48.5}, "not a whole number"),
        ({"size": 100_000}, "out of range"),
        ({"preset": "sutzkever"}, "did you mean 'sutskever'"),
        ({"radius_px": 0}, r"radius in px 0 is out of range; allowed are numbers from 0\.75 to 24"),
        ({"radius_px": -3}, "out of range"),
        ({"radius_px": 1e300}, "out of range"),
        ({"radius_px": float("nan")}, "out of range"),
        ({"radius_px": "big"}, "'big' is not a number"),
        ({"radius_px": 20}, "no ball of this radius"),
        ({"speed_px_per_frame": (-1, 2)}, "speed in px/frame -1 is out of range; allowed are numbers from 0 to 48"),
        ({"speed_px_per_frame": (1, 1e9)}, "out of range"),
        ({"speed_px_per_frame": (1, float("inf"))}, "out of range"),
        ({"speed_px_per_frame": (4, 3)}, "upside down"),
        ({"speed_px_per_frame": 3}, "not a range"),
        ({"system_speed_px_per_frame": 3.0}, "give the speed of each ball instead"),
    ],
)
def test_what_cannot_be_used_gets_a_message_that_says_what_can(given, message):
    with pytest.raises(UsageError, match=message):
        BallsConfig(**({"balls": 3} | given))
