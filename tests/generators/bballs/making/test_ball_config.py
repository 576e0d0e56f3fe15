from __future__ import annotations

import numpy as np
import pytest

from s2rm_data.core.check import from_json, to_json
from s2rm_data.core.errors import UsageError
from s2rm_data.generators.bballs.making.ball_config import PRESETS, BallsConfig


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
        ({"balls": 0}, "balls is 0; it must be a whole number from 1 to 1000"),
        ({"balls": -1}, "from 1 to 1000"),
        ({"balls": 2.5}, r"balls is 2\.5; it must be a whole number"),
        ({"balls": True}, "a whole number"),
        ({"balls": 25}, r"do not fit .* at most 24 balls of this radius, or a radius of at most 4\.\d+ px for 25"),
        ({"balls": 10**9}, "from 1 to 1000"),
        ({"frames": 0}, "frames is 0; it must be a whole number from 1 to 1000000"),
        ({"frames": 10**12}, "from 1 to 1000000"),
        ({"frames": 1_000_000, "size": 1024}, r"too many for one sequence; at this size at most \d+"),
        ({"size": 7}, "size is 7; it must be a whole number from 8 to 1024"),
        ({"size": 48.5}, "a whole number"),
        ({"size": 100_000}, "from 8 to 1024"),
        ({"preset": "sutzkever"}, "did you mean 'sutskever'"),
        ({"radius_px": 0}, r"radius_px is 0; it must be a number from 0\.75 to 512"),
        ({"radius_px": -3}, "radius_px is -3"),
        ({"radius_px": 30}, r"radius_px is 30\.0; it must be at most half of size \(48 px\)"),
        ({"radius_px": 1e300}, "to 512"),
        ({"radius_px": float("nan")}, "radius_px is nan"),
        ({"radius_px": "big"}, "radius_px is 'big'; it must be a number"),
        ({"radius_px": 20}, "no ball of this radius"),
        (
            {"speed_px_per_frame": (-1, 2)},
            r"is \(-1, 2\); it must be a list of 2, each a number from 0 to 1024",
        ),
        ({"speed_px_per_frame": (1, 1e9)}, "from 0 to 1024"),
        ({"speed_px_per_frame": (1, 49)}, r"at most size \(48 px\) per frame"),
        ({"speed_px_per_frame": (1, float("inf"))}, "each a number"),
        ({"speed_px_per_frame": (4, 3)}, "the smallest speed, then the largest"),
        ({"speed_px_per_frame": 3}, "a list of 2"),
        ({"system_speed_px_per_frame": 3.0}, "give the speed of each ball instead"),
    ],
)
def test_what_cannot_be_used_gets_a_message_that_says_what_can(given, message):
    with pytest.raises(UsageError, match=message):
        BallsConfig(**({"balls": 3} | given))
