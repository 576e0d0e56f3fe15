"""General worlds from the options to the store and its readers."""

from __future__ import annotations

import hashlib
import json
import shlex

import numpy as np
import pytest
from program import output_of

from s2rm_data.core.check import canonical_json
from s2rm_data.core.errors import UsageError
from s2rm_data.core.progress import Progress
from s2rm_data.generators.bballs.inspection.ball_scene import ball_scene, levels
from s2rm_data.generators.bballs.making import ball_source as source
from s2rm_data.generators.bballs.making.ball_config import BallsConfig, GeneralConfig
from s2rm_data.generators.bballs.making.ball_render import PALETTE, STANDING, render
from s2rm_data.generators.bballs.making.ball_source import split_from_settings
from s2rm_data.generators.bballs.world import WORLD
from s2rm_data.learning import TrainingBatches, open_source
from s2rm_data.making.run import generate
from s2rm_data.store import Store

OPTIONS = {option.name: option for option in WORLD.options}
FEW = {"balls": "3", "train": 6, "val": 2, "test": 2, "frames": 12}
FALLING = {"gravity": "0.1", "radius": "2.5-5", "walls": "4,30,20,36;30,8,44,14", "fixed": "36,36;24,18,3"}


def plan(**given):
    return WORLD.plan(**{name: OPTIONS[name].value(value) for name, value in (FEW | given).items()}).splits


@pytest.fixture(scope="module", params=["binary", "grey", "colour"])
def store(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("general") / "data.zarr"
    generate(plan(**FALLING, render=request.param), path)
    return Store(path)


def test_no_option_of_a_general_world_means_the_plain_one():
    assert all(isinstance(split.config, BallsConfig) for split in plan())
    assert all(isinstance(split.config, BallsConfig) for split in plan(radius="4-4", speed="2-3"))
    assert plan(radius="4.5")[0].settings == plan()[0].settings


@pytest.mark.parametrize(
    "given",
    [
        FALLING,
        {"gravity": "-0.05,0.1", "mass": "1-4"},
        {"render": "grey", "preset": "sutskever", "size": 50},
        {"fixed": "none", "mass": "equal", "render": "colour"},
        {"radius": "3-4.25", "speed": "0-2"},
        {"fixed": "3", "walls": "4,30,20,36"},
    ],
)
def test_settings_and_the_stored_command_make_the_same_split(given):
    for split in plan(**given):
        assert split_from_settings(json.loads(canonical_json(split.settings)), split.count) == split
        words = shlex.split(split.attributes["command"])[2:]
        told = dict(word.removeprefix("--").split("=", 1) for word in words)
        assert told.pop("seed") == "0"
        assert plan(**told) == [split]


def test_arrays_are_as_announced_and_do_not_depend_on_the_range():
    for render_name in ("binary", "grey", "colour"):
        split = plan(**FALLING, render=render_name)[0]
        whole, part = split.produce(0, 6), split.produce(2, 5)
        assert list(whole) == [spec.name for spec in split.arrays]
        for spec in split.arrays:
            assert whole[spec.name].shape == (6, *spec.shape)
            assert whole[spec.name].dtype == spec.dtype
            assert len(spec.dims) == len(spec.shape)
            assert part[spec.name].tobytes() == whole[spec.name][2:5].tobytes()


def test_stored_arrays_have_the_same_bytes_on_every_machine():
    digest = hashlib.sha256()
    for render_name in ("binary", "grey", "colour"):
        for name, values in sorted(plan(**FALLING, render=render_name)[0].produce(0, 6).items()):
            digest.update(name.encode() + values.astype(values.dtype.newbyteorder("<")).tobytes())
    assert digest.hexdigest() == "acaae1d9a93777a8b7e3fea1e3327347c4e7567ac8a1679606f2c52b0879846b"


PRINT_DIGEST = """
import hashlib
from s2rm_data.generators.bballs.making.ball_config import GeneralConfig
from s2rm_data.generators.bballs.making.ball_source import BallsSplit
digest = hashlib.sha256()
config = GeneralConfig(
    balls=3, size=16, frames=15, radius_px=(1, 2), gravity=(0, 0.1), walls=((2, 12, 7, 13),), render="colour"
)
for values in BallsSplit(config=config, split="train", count=2).produce(0, 2).values():
    digest.update(values.tobytes())
print(digest.hexdigest())
"""


def test_the_interpreter_makes_the_same_bytes_as_the_compiled_code():
    assert output_of(PRINT_DIGEST, NUMBA_DISABLE_JIT="1") == output_of(PRINT_DIGEST)


def test_radii_and_masses_are_drawn_as_asked():
    made = plan(**FEW | {"train": 200, "radius": "3-5", "mass": "1-4"})[0].produce(0, 200)
    assert 3 <= made["radius"].min() < 3.1 < 4.9 < made["radius"].max() < 5
    assert 1 <= made["mass"].min() < 1.1 < 3.9 < made["mass"].max() < 4
    by_area = plan(radius="3-5")[0].produce(0, 6)
    np.testing.assert_allclose(by_area["mass"], np.pi * by_area["radius"] ** 2)


def test_binary_frames_of_a_plain_world_are_the_plain_frames():
    position = np.random.default_rng(0).uniform(5, 43, (2, 3, 4, 2))
    config = GeneralConfig(balls=4)
    radius = np.full((2, 4), 4.5)
    assert (render(position, radius, config) == render(position, radius, BallsConfig(balls=4))).all()


def test_every_pixel_shows_the_share_that_is_covered():
    still = {"fixed": ((6, 6, 2),), "walls": ((4, 20, 20, 17),)}
    config = GeneralConfig(balls=1, size=24, radius_px=(3, 3), render="grey", **still)
    position, radius = np.array([[[[15.3, 8.6]]]]), np.array([[3.0]])
    (frame,) = render(position, radius, config)[0].astype(float)
    fine = (np.arange(24 * 40) + 0.5) / 40
    x, y = np.meshgrid(fine, fine)
    covered = ((x - 15.3) ** 2 + (y - 8.6) ** 2 <= 9) | ((x - 6) ** 2 + (y - 6) ** 2 <= 4)
    share = np.clip(((x - 4) * 16 + (y - 20) * -3) / (16**2 + 9), 0, 1)
    covered |= (x - 4 - share * 16) ** 2 + (y - 20 + share * 3) ** 2 <= 0.75**2
    expected = 255 * covered.reshape(24, 40, 24, 40).mean((1, 3))
    assert np.abs(frame - expected).max() < 255 * 0.06
    assert frame.sum() == pytest.approx(expected.sum(), rel=0.005)


def test_colours_tell_balls_and_what_stands_still_apart():
    config = GeneralConfig(balls=2, render="colour")
    (frame,) = render(np.array([[[[10, 10], [38, 10]]]]), np.full((1, 2), 4.0), config)[0]
    assert [tuple(frame[10, x]) for x in (10, 38)] == list(PALETTE[:2])
    assert tuple(frame[24, 24]) == STANDING
    assert tuple(frame[40, 5]) == (0, 0, 0)


def test_a_store_of_a_general_world_can_be_looked_at(store):
    group, looking = store["bballs/train"], WORLD.inspection()
    pictures = list(looking.pictures(group, 0))
    preview = looking.preview(group, 0, 2, Progress())
    assert len(pictures) == len(list(preview.images)) == 12
    stats = looking.statistics(group, Progress())
    assert 0.05 < stats.row["pixels_on_share"] < 0.4
    assert 0 < stats.row["collisions_per_ball_and_frame"] < 0.9  # falling alone is not a collision
    scene = looking.scene(group, 0)
    assert ("gravity", "0, 0.1 px/frame²") in scene.facts
    whole = next(c for c in scene.panels[1].curves if c.title == "all, with potential energy")
    np.testing.assert_allclose(whole.values, whole.values[0], rtol=1e-5)


def test_models_learn_from_binary_frames_only(store):
    render_name = store["bballs/train"].settings["config"]["render"]
    if render_name != "binary":
        with pytest.raises(UsageError, match=f"has {render_name} frames; .* --render binary"):
            open_source(store, "bballs", "train", steps=5)
        return
    source = open_source(store, "bballs", "train", steps=5)
    assert TrainingBatches(source, batch_size=2, seed=1).batch(0, 0).views.shape == (2, 5, 10, 1, 11, 11)
    always_on = np.asarray(store["bballs/train"]["frames"][0]).all(0)
    fixed = source.fixed_ball.numpy()
    assert fixed[36, 36] and fixed[18, 24] and fixed[33, 12]  # two balls and a wall
    assert always_on[fixed].all()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"gravity": "down"}, "gravity is 'down': it must be a number"),
        ({"gravity": "1,2,3"}, "one number, downwards, or two as x,y"),
        ({"gravity": "100"}, r"at most size \(48\) px/frame"),
        ({"gravity": "1e-12"}, "0 or at least 1e-09"),
        ({"radius": "3-x"}, "neither a number nor a range"),
        ({"radius": "3-30"}, r"less than half of size \(48 px\)"),
        ({"radius": "0.1-3"}, r"from 0\.75 to 512"),
        ({"mass": "heavy"}, "equal, area, or a range"),
        ({"mass": "0-2"}, "above 0"),
        ({"fixed": "12,1,2,3"}, "x,y or x,y,radius of a fixed ball"),
        ({"fixed": "-1"}, "fixed is -1"),
        ({"fixed": "40"}, "40 fixed balls of radius 4.5 px find no places"),
        ({"fixed": "2,12,4"}, "fixed ball 2,12,4 sticks out of the box"),
        ({"fixed": "12,12,4;14,14,4"}, "fixed balls 14,14,4 and 12,12,4 overlap"),
        ({"walls": "1,2,3"}, "x0,y0,x1,y1 of an inner wall"),
        ({"walls": "1,2,60,2"}, "wall 1,2,60,2 ends outside the box"),
        ({"walls": "9,9,9,9"}, "has no length"),
        ({"walls": "10,24,40,24"}, "runs through fixed ball 24,24,4.5"),
        ({"balls": "20", "gravity": "0.1", "radius": "6"}, "do not find places in a box"),
        ({"render": "sepia"}, "it must be one of binary, grey, colour"),
        ({"render": "colour", "frames": 10**6}, "too many for one sequence"),
    ],
)
def test_what_cannot_be_is_refused_with_what_can(given, message):
    with pytest.raises(UsageError, match=message):
        plan(**given)


def test_a_number_of_fixed_balls_stands_at_places_that_the_seed_decides():
    places = [source.plan(balls=(3,), fixed=3, seed=seed)[0].config.fixed for seed in (0, 0, 1)]
    assert places[0] == places[1] != places[2] and all(len(place) == 3 for place in places)
    assert len({split.config.fixed for split in plan(fixed="3", balls="2-4")}) == 1
    assert plan(fixed="0")[0].config == plan(fixed="none")[0].config


def test_the_viewer_shows_frames_as_they_were_rendered(store):
    group = store["bballs/train"]
    scene = ball_scene(group, 1, 80)
    raster, crops = scene.layers[0], scene.panels[0].pictures
    frames, render_name = group["frames"][1], group.settings["config"]["render"]
    if render_name == "binary":
        assert raster.bits and np.array_equal(np.unpackbits(raster.values, axis=-1, count=48), frames)
    elif render_name == "grey":
        assert np.array_equal(raster.values, frames) and raster.palette.high == 255
    else:
        assert np.array_equal(raster.values, levels(frames)) and raster.values.shape == (12, 48, 48, 3)
        assert raster.palette.names == ["nothing", "fixed balls and walls", "ball 1", "ball 2", "ball 3"]
    assert crops[0].values.shape == (12, 11, 11, *frames.shape[3:])


def test_plain_settings_have_no_new_field():
    assert set(plan()[0].settings["config"]) == {
        "balls", "frames", "size", "preset", "radius_px", "speed_px_per_frame", "system_speed_px_per_frame",
    }  # fmt: skip
    assert "physics" not in plan()[0].settings
    assert plan()[0].config == BallsConfig(balls=3, frames=12)
