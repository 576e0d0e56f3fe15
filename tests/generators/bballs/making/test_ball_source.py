from __future__ import annotations

import hashlib
import json
import shlex
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from program import output_of

from s2rm_data.core.check import canonical_json, from_json
from s2rm_data.core.errors import UsageError
from s2rm_data.core.schema import SplitSource
from s2rm_data.generators.bballs.making.ball_config import BallsConfig
from s2rm_data.generators.bballs.making.ball_render import render
from s2rm_data.generators.bballs.making.ball_simulate import simulate_sequences
from s2rm_data.generators.bballs.making.ball_source import BallsSplit, plan


def _split(**given):
    return BallsSplit(**({"config": BallsConfig(balls=3), "split": "train", "count": 50, "seed": 4} | given))


def test_arrays_have_the_shapes_and_types_they_announce():
    split: SplitSource = _split(config=BallsConfig(balls=2, size=50, frames=30))
    made = split.produce(10, 17)
    assert list(made) == [spec.name for spec in split.arrays]
    for spec in split.arrays:
        assert made[spec.name].shape == (7, *spec.shape), spec.name
        assert made[spec.name].dtype == spec.dtype, spec.name
        assert made[spec.name].flags.c_contiguous, spec.name
        assert len(spec.dims) == len(spec.shape), spec.name
        assert spec.description


def test_frames_can_be_drawn_again_from_the_stored_states():
    config = BallsConfig(balls=3, preset="sutskever")
    made = _split(config=config).produce(0, 50)
    assert (render(made["position"], made["radius"], config) == made["frames"]).all()


def test_a_sequence_can_be_made_again_from_its_stored_seed_and_settings():
    split = _split()
    made = split.produce(20, 22)
    settings = json.loads(canonical_json(split.settings))
    position, velocity, _, _ = simulate_sequences(made["seed"], from_json(BallsConfig, settings["config"]))
    assert (position.astype(np.float32) == made["position"]).all()
    assert (velocity.astype(np.float32) == made["velocity"]).all()


def test_any_cut_into_ranges_and_threads_gives_the_same_bytes():
    split = _split()
    whole = split.produce(0, 50)
    cuts = [0, 1, 8, 9, 30, 50]
    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(lambda k: split.produce(cuts[k], cuts[k + 1]), range(5)))
    for name, values in whole.items():
        assert np.concatenate([part[name] for part in parts]).tobytes() == values.tobytes(), name


def test_other_splits_and_other_seeds_have_other_sequences():
    splits = [_split(), _split(split="val"), _split(split="test_3"), _split(seed=5)]
    seeds = np.concatenate([split.produce(0, 50)["seed"] for split in splits])
    assert len(np.unique(seeds)) == 200
    assert len({split.produce(0, 1)["position"].tobytes() for split in splits}) == 4


def test_sequences_outside_the_split_are_not_made():
    with pytest.raises(IndexError):
        _split().produce(40, 51)


GOLDEN = {
    "kvae": "fdbf6bf88cab3f188de2826e2639b1b16612a9728bce03904f477214be24a5e8",
    "sutskever": "145e3064f2c3bc94e418490fb0c712f217cfdcb6e86e1dc001dd5f06c5d88174",
}


@pytest.mark.parametrize("preset", GOLDEN)
def test_stored_arrays_have_the_same_bytes_on_every_machine(preset):
    made = _split(config=BallsConfig(balls=3, preset=preset), seed=0).produce(0, 16)
    digest = hashlib.sha256()
    for name in sorted(made):
        digest.update(made[name].astype(made[name].dtype.newbyteorder("<")).tobytes())
    assert digest.hexdigest() == GOLDEN[preset]


PRINT_DIGEST = """
import hashlib
from s2rm_data.generators.bballs.making.ball_config import BallsConfig
from s2rm_data.generators.bballs.making.ball_source import BallsSplit
digest = hashlib.sha256()
for preset, balls in (("kvae", 3), ("sutskever", 10)):
    config = BallsConfig(balls=balls, preset=preset, frames=15)
    for values in BallsSplit(config=config, split="train", count=3).produce(0, 3).values():
        digest.update(values.tobytes())
print(digest.hexdigest())
"""


def test_the_interpreter_makes_the_same_bytes_as_the_compiled_code():
    assert output_of(PRINT_DIGEST, NUMBA_DISABLE_JIT="1") == output_of(PRINT_DIGEST)


def test_the_paper_plan_has_its_splits_and_counts():
    splits = plan(balls=range(1, 7))
    assert [(s.group, s.config.balls, s.count) for s in splits] == [
        ("bballs/train", 3, 20_000),
        ("bballs/val", 3, 1_000),
        *[(f"bballs/test_{n}", n, 1_000) for n in range(1, 7)],
    ]
    assert {(s.config.frames, s.config.size, s.config.preset, s.seed) for s in splits} == {(100, 48, "kvae", 0)}


def test_without_three_balls_training_takes_the_smallest_count():
    assert [s.config.balls for s in plan(balls=[5, 2, 4], test=0)] == [2, 2]
    assert [s.config.balls for s in plan(balls=[5, 2, 4], test=0, train_balls=4)] == [4, 4]


def test_a_count_of_zero_leaves_the_split_out():
    assert [s.split for s in plan(balls=[3, 7, 3], train=0, val=0)] == ["test_3", "test_7"]
    assert [s.split for s in plan(balls=[3], train=10, val=0, test=0)] == ["train"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"balls": []}, "no number of balls"),
        ({"balls": [0]}, "balls is 0; it must be"),
        ({"balls": [3, 99]}, "99 balls of radius 4.5 px do not fit"),
        ({"balls": [3], "train_balls": 99}, "99 balls of radius 4.5 px do not fit"),
        ({"balls": [3], "train": -1}, "train is -1; it must be a whole number from 0 to 100000000"),
        ({"balls": [3], "train": 0, "val": 0, "test": 0}, "all splits are left out"),
        ({"balls": [3], "seed": -1}, "seed is -1; it must be a whole number from 0"),
        ({"balls": [3], "preset": "kvea"}, "did you mean 'kvae'"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(given, message):
    with pytest.raises(UsageError, match=message):
        plan(**given)


def test_a_split_of_another_number_of_balls_is_refused():
    with pytest.raises(UsageError, match="the choices are train, val and test_3"):
        _split(split="test_4")


def _plan_of(command):
    """What the command's words would plan, read without the command line's own parser."""
    words = shlex.split(command)
    assert words[:2] == ["s2rm-data", "bballs"]
    given = dict(zip((w.removeprefix("--") for w in words[2::2]), words[3::2], strict=True))
    speed = given.pop("speed", None)
    kinds = {"preset": str, "radius": float}
    options = {name: kinds.get(name, int)(value) for name, value in given.items()}
    return plan(balls=[options.pop("balls")], speed=tuple(map(float, speed.split("-"))) if speed else None, **options)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"preset": "sutskever", "size": 50, "seed": 12},
        {"radius": 1 / 3 + 1, "speed": (1e-7, 2.0), "frames": 7},
        {"preset": "sutskever", "speed": (0.0, 1.5)},
    ],
)
def test_the_stored_command_makes_this_split_and_no_other(given):
    for split in plan(balls=[1, 3], train=5, val=4, test=3, **given):
        assert split.attributes["command"] == split.command
        assert _plan_of(split.command) == [split]


def test_settings_and_attributes_are_json():
    split = _split()
    assert split.settings["config"]["radius_px"] == 4.5
    assert split.settings | {"config": None} == {
        "generator": "bballs",
        "generator_version": 1,
        "config": None,
        "seed": 4,
        "split": "train",
    }
    canonical_json(split.settings)
    canonical_json(split.attributes)
    assert split.arrays[0].attributes["packed_bits"] == 48
