"""What the viewer's page is told: of any world, checked, and never more than it asks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scene_bytes import unpacked
from toy import ToySplit

from s2rm_data.core.errors import UsageError
from s2rm_data.inspection.viewer.answers import Answers
from s2rm_data.making.run import generate
from s2rm_data.store import Store


@pytest.fixture(scope="module")
def answers(store: Store) -> Answers:
    return Answers(store)


def table(answers: Answers, route: str, **given: str) -> Any:
    kind, content = answers.answer(route, given)
    assert kind == "application/json"
    return json.loads(content)


def scene(answers: Answers, route: str, **given: str) -> tuple[dict[str, Any], list[np.ndarray]]:
    kind, content = answers.answer(route, given)
    assert kind == "application/octet-stream"
    return unpacked(content)


def test_the_catalogue_lists_worlds_and_groups(answers: Answers, store: Store) -> None:
    found = table(answers, "catalogue")
    assert [world["title"] for world in found["worlds"]] == ["Bouncing balls", "StarCraft II"]
    assert [path for world in found["worlds"] for path in world["groups"]] == store.groups
    assert found["store"] == "data.zarr" and found["runs"] == []


def test_a_group_tells_how_many_sequences_it_has(answers: Answers) -> None:
    assert table(answers, "group", group="bballs/train") == {"count": 24, "unit": "sequence"}
    assert table(answers, "group", group="sc2/2s3z/val") == {"count": 3, "unit": "episode"}


def test_the_frames_and_crops_of_a_sequence_are_those_of_the_store(answers: Answers, store: Store) -> None:
    body, arrays = scene(answers, "episode", group="bballs/val", number="2")
    group = store["bballs/val"]
    raster, boxes, discs, _ = body["layers"]
    np.testing.assert_array_equal(arrays[raster["values"]["array"]], group["frames"].packed(2))
    np.testing.assert_array_equal(arrays[discs["position"]["array"]], group["position"][2])
    frames, centre = group["frames"][2], arrays[boxes["centre"]["array"]] - 0.5
    for view, picture in enumerate(body["panels"][0]["pictures"]):
        for step, (x, y) in enumerate(centre[:, view].astype(int)):
            expected = np.pad(frames[step], 5)[y : y + 11, x : x + 11]
            np.testing.assert_array_equal(arrays[picture["values"]["array"]][step], expected)


def test_the_energy_of_all_balls_stays_and_is_the_sum_of_theirs(answers: Answers) -> None:
    body, arrays = scene(answers, "episode", group="bballs/val", number="0")
    *balls, total = (arrays[curve["values"]["array"]] for curve in body["panels"][1]["curves"])
    np.testing.assert_allclose(sum(balls), total, rtol=1e-5)
    np.testing.assert_allclose(total, total[0], rtol=1e-4)


def test_a_collision_is_marked_where_a_velocity_changes(answers: Answers, store: Store) -> None:
    body, arrays = scene(answers, "episode", group="bballs/val", number="1")
    marks = next(layer for layer in body["layers"] if layer["kind"] == "Marks")
    velocity = store["bballs/val"]["velocity"][1]
    turned = np.abs(np.diff(velocity, axis=0)).max(-1) > 1e-3
    changed = [step + 1 for step in np.nonzero(turned)[0]]
    assert sorted(arrays[marks["step"]["array"]]) == changed and changed


def test_a_battle_ends_when_it_was_over(answers: Answers, store: Store) -> None:
    group = store["sc2/2s3z/train"]
    for number in range(3):
        body, arrays = scene(answers, "episode", group=group.path, number=str(number))
        length = int(group["length"][number])
        units = next(layer for layer in body["layers"] if layer["kind"] == "Discs")
        assert body["steps"] == length
        np.testing.assert_array_equal(arrays[units["position"]["array"]], group["unit_position"][number][:length])
        facts = dict(body["facts"])
        assert facts["outcome"] == group.attributes["outcomes"][int(group["outcome"][number])]
        assert facts["policy"] == group.attributes["policies"][int(group["policy"][number])]


def test_orders_point_at_the_targets_of_the_living(answers: Answers, store: Store) -> None:
    group = store["sc2/2s3z/train"]
    body, arrays = scene(answers, "episode", group=group.path, number="0")
    orders = next(layer for layer in body["layers"] if layer["title"] == "orders and targets")
    there, end = arrays[orders["there"]["array"]], arrays[orders["end"]["array"]]
    target, position = group["unit_target"][0], group["unit_position"][0]
    aimed = [(t, u) for t, u in zip(*np.nonzero(there), strict=True) if target[t, u] >= 0]
    assert aimed
    for t, u in aimed:
        np.testing.assert_array_equal(end[t, u], position[t, target[t, u]])
    assert not there[group["unit_health"][0][: len(there)] == 0].any()


def test_details_are_the_polar_images_of_one_agent(answers: Answers, store: Store) -> None:
    group = store["sc2/2s3z/train"]
    body, arrays = scene(answers, "details", group=group.path, number="1", index="3")
    images = [arrays[picture["values"]["array"]] for picture in body["panels"][0]["pictures"]]
    length = len(images[0])
    stored = [*np.moveaxis(group["categories"][1], -1, 0), group["height"][1] / np.float32(255)]
    stored += [*np.moveaxis(group["hecs"][1], -1, 0)]
    for image, expected in zip(images, stored, strict=True):
        np.testing.assert_array_equal(image, expected[:length, 3].astype(image.dtype))


def test_any_arrays_become_a_scene(tmp_path: Path) -> None:
    generate([ToySplit()], tmp_path / "toy.zarr", shard_size=4)
    from s2rm_data.inspection.world_inspection import Inspection

    group = Store(tmp_path / "toy.zarr")["toy/train"]
    found = Inspection().scene(group, 1)
    assert found.steps >= 1 and (found.layers or found.panels or found.facts)


@pytest.mark.parametrize(
    ("route", "given", "message"),
    [
        ("episode", {"group": "bballs/val", "number": "6"}, "bballs/val has 0 to 5"),
        ("episode", {"group": "bballs/val", "number": "-1"}, "must be a whole number"),
        ("episode", {"group": "bballs/val", "number": "²"}, "must be a whole number"),
        ("episode", {"group": "../etc", "number": "0"}, "has no group"),
        ("episode", {"group": "bballs/val"}, "episode takes group, number"),
        ("catalogue", {"more": "1"}, "catalogue takes nothing"),
        ("details", {"group": "sc2/2s3z/val", "number": "0", "index": "5"}, "agents 0 to 4"),
        ("enclaves", {"run": "x"}, "there is no run 'x'"),
    ],
)
def test_a_question_that_cannot_be_answered_is_refused(
    answers: Answers, route: str, given: dict[str, str], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        answers.answer(route, given)
