"""Pictures of a battle: right size, wedges where the units are, errors that name what is there."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from s2rm_data.core.errors import UsageError
from s2rm_data.generators.sc2.making.battle_config import Sc2Config
from s2rm_data.generators.sc2.making.battle_source import Sc2Split
from s2rm_data.starcraft import drawing as draw
from s2rm_data.starcraft.battle_paint import HEAT, polar_cells, rgb, wedge_corners
from s2rm_data.starcraft.codes import UNIT_TYPE
from s2rm_data.starcraft.drawing import PANEL_PIXELS, PANEL_PLACES, Episode
from s2rm_data.starcraft.polar import terrain_height

OPTIONS: dict[str, Any] = {"radius": 9.0, "terrain": terrain_height("2s3z")}


@cache
def episode() -> Episode:
    source = Sc2Split(config=Sc2Config(scenario="2s3z", policy="smac"), seed=0, split="train", count=1)
    return {name: values[0] for name, values in source.produce(0, 1).items()}


def frames(*args: Any, **options: Any) -> list[NDArray[np.uint8]]:
    return [np.asarray(picture) for picture in draw.frames(*args, **options)]


def test_a_picture_is_drawn_for_every_step_asked_for_and_they_differ() -> None:
    first, later = frames(episode(), agent=0, steps=[0, 15], **OPTIONS)
    assert first.dtype == np.uint8 and first.ndim == 3 and first.shape[2] == 3
    assert first.shape == later.shape and not np.array_equal(first, later)


def test_drawing_a_step_again_gives_the_same_picture() -> None:
    once, other, again = frames(episode(), agent=1, steps=[4, 12, 4], **OPTIONS)
    assert np.array_equal(once, again) and not np.array_equal(once, other)


def friendly_pixels(picture: NDArray[np.uint8]) -> int:
    """Pixels of the friends' colour in the right half, where the polar images are."""
    right = picture[:, picture.shape[1] // 2 :]
    return int((right == (0x2B, 0x6C, 0xB0)).all(axis=-1).sum())


def test_a_living_agent_sees_its_friends_and_a_dead_one_nobody() -> None:
    alive, last = episode()["agent_alive"], int(episode()["length"]) - 1
    agent = int(np.argmin(alive.sum(axis=0)))
    last = last if not alive[last, agent] else int(np.argmin(alive[:, agent]))
    assert alive[0, agent] and not alive[last, agent]
    before, after = frames(episode(), agent=agent, steps=[0, last], **OPTIONS)
    assert friendly_pixels(before) > 50 and friendly_pixels(after) == 0


def test_units_out_of_sight_have_no_outline_beside_the_disc() -> None:
    enemies = slice(episode()["action"].shape[1], None)
    moved = {**episode(), "unit_position": episode()["unit_position"].copy()}
    near, far = (moved["unit_position"][0, 0] + np.array((x, 0.0)) for x in (8.5, 9.1))
    moved["unit_position"][0, enemies] = near
    (seen,) = frames(moved, agent=0, steps=[0], **OPTIONS)
    moved["unit_position"][0, enemies] = far
    (unseen,) = frames(moved, agent=0, steps=[0], **OPTIONS)
    x, y = PANEL_PLACES[0]
    panel = np.s_[y : y + PANEL_PIXELS, x : x + PANEL_PIXELS]
    red = [int((picture[panel] == (0xC5, 0x30, 0x30)).all(axis=-1).sum()) for picture in (seen, unseen)]
    assert red[0] > 5 and red[1] == 0


def test_panels_of_numbers_have_a_colour_bar() -> None:
    """From the colour of a small value to that of a full one, below health, energy, cooldown and shield."""
    (picture,) = frames(episode(), agent=0, steps=[0], **OPTIONS)
    for x, y in PANEL_PLACES[4:]:
        below = picture[y + PANEL_PIXELS : y + PANEL_PIXELS + 30, x : x + PANEL_PIXELS].astype(int)
        for colour in (rgb(HEAT[0]), rgb(HEAT[-1])):
            assert (np.abs(below - colour).max(axis=-1) < 12).any()


def test_pixels_of_a_panel_lie_in_the_cells_that_wedges_bound() -> None:
    cells, corners = polar_cells(16, 48, 101), wedge_corners(16, 48, 1.0)
    assert cells[50, 50] == 0 and cells[0, 0] == -1
    for row, column in ((50, 80), (20, 50), (70, 30), (90, 45)):
        ring, sector = divmod(int(cells[row, column]), 48)
        x, y = (column + 0.5) / 101 * 2 - 1, 1 - (row + 0.5) / 101 * 2
        inner, outer = np.hypot(*corners[ring, sector]), np.hypot(*corners[ring + 1, sector])
        turned = (np.arctan2(y, x) - 2 * np.pi * sector / 48 + np.pi) % (2 * np.pi) - np.pi
        assert inner <= np.hypot(x, y) <= outer and abs(turned) <= np.pi / 48 + 1e-9


def test_wedges_lie_around_the_units_they_show() -> None:
    corners = wedge_corners(16, 48, 9.0)
    assert corners.shape == (17, 49, 2)
    shown = episode()
    image = shown["categories"][10, 0, ..., UNIT_TYPE]
    offsets = (shown["unit_position"][10] - shown["unit_position"][10, 0])[shown["unit_alive"][10]]
    r, angle = np.hypot(*offsets.T), np.arctan2(offsets[:, 1], offsets[:, 0])
    for i, j in np.argwhere(image[1:]) + np.array((1, 0)):
        inner, outer = np.hypot(*corners[i, j]), np.hypot(*corners[i + 1, j])
        turned = (angle - 2 * np.pi * j / 48 + np.pi) % (2 * np.pi) - np.pi
        assert ((inner <= r) & (r <= outer) & (abs(turned) <= np.pi / 48 + 1e-6)).any()


@pytest.mark.parametrize(
    ("options", "message"), [({"agent": 5}, "agents 0 to 4"), ({"agent": 0, "steps": [100]}, "step 100")]
)
def test_what_is_not_there_is_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        frames(episode(), **options, **OPTIONS)
