from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s2rm_data.core.errors import UsageError
from s2rm_data.generators.bballs.making.ball_packing import (
    CLEARANCE,
    MAX_BALLS,
    MIN_RADIUS_PX,
    capacity,
    check_fit,
    largest_radius_px,
    sites,
)


@settings(max_examples=200, deadline=None)
@given(size=st.integers(8, 200), share=st.floats(0.03, 0.6))
def test_sites_are_clear_of_each_other_of_the_walls_and_of_the_fixed_ball(size, share):
    radius = share * size
    points = sites(size, radius)
    apart = 2 * radius * CLEARANCE * (1 - 1e-9)
    if len(points):
        assert points.min() >= radius
        assert points.max() <= size - radius
        assert np.sqrt(((points - size / 2) ** 2).sum(-1)).min() >= apart
        i, j = np.triu_indices(len(points), 1)
        assert (np.sqrt(((points[i] - points[j]) ** 2).sum(-1)) >= apart).all()


@pytest.mark.parametrize(
    ("size", "radius_px", "at_least"),
    [
        (48, 4.5, 24),  # five by five around the fixed ball
        (48, 5.76, 12),  # a ring along the walls
        (48, 3.0, 56),  # hexagonal beats the 48 of a square grid
        (48, 9.8, 4),  # one in each corner
    ],
)
def test_dense_packings_are_found(size, radius_px, at_least):
    assert capacity(size, radius_px) >= at_least


def test_nothing_fits_where_a_corner_is_too_small():
    # Corner and fixed ball touch at size = (2 + 2 sqrt 2) radius.
    assert capacity(48, 48 / (2 + 2 * np.sqrt(2)) + 0.01) == 0
    assert capacity(48, 48 / (2 + 2 * np.sqrt(2)) - 0.11) == 4


@pytest.mark.parametrize("balls", [1, 4, 6, 25, 100])
def test_the_largest_radius_is_accepted_and_a_clearly_larger_one_is_not(balls):
    radius = largest_radius_px(48, balls)
    check_fit(48, radius, balls)
    with pytest.raises(UsageError):
        check_fit(48, radius + 0.2, balls)


def test_the_error_names_a_count_and_a_radius_that_are_then_accepted():
    with pytest.raises(UsageError, match=r"30 balls of radius 4\.5 px do not fit in a box of 48 x 48 px") as caught:
        check_fit(48, 4.5, 30)
    message = str(caught.value)
    count = int(message.split("at most ")[1].split()[0])
    radius = float(message.split("a radius of at most ")[1].split()[0])
    check_fit(48, 4.5, count)
    check_fit(48, radius, 30)


def test_a_ball_as_large_as_the_box_is_told_what_would_fit():
    with pytest.raises(UsageError, match=r"no ball of this radius, or a radius of at most 9\.\d+ px for 1"):
        check_fit(48, 24.0, 1)


def test_a_number_that_fits_at_no_radius_is_told_so():
    assert largest_radius_px(8, MAX_BALLS) is None
    with pytest.raises(UsageError, match="never as many as 500"):
        check_fit(8, MIN_RADIUS_PX, 500)
