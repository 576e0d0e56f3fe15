from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from s2rm_data.generators.bballs.making.ball_contacts import arrival, disc_contact, first_descent


def exact_descents(coefficients, limit):
    """Real roots in (0, limit) at which the polynomial falls, to 60 digits."""
    with mpmath.workdps(60):
        top = [mpmath.mpf(c) for c in reversed(coefficients)]
        while top and top[0] == 0:
            top.pop(0)
        roots = mpmath.polyroots(top, maxsteps=500, extraprec=500) if len(top) > 1 else []
        real = [mpmath.re(r) for r in roots if abs(mpmath.im(r)) < mpmath.mpf(10) ** -25]
        found = [r for r in real if 0 < r < limit and mpmath.polyval(top, r, derivative=1)[1] < 0]
        return sorted(float(r) for r in found)


@settings(max_examples=150, deadline=None)
@given(
    roots=st.lists(st.floats(-3, 6), min_size=4, max_size=4, unique=True),
    scale=st.floats(0.01, 100),
    limit=st.floats(0.5, 8),
)
def test_the_first_descent_of_a_quartic_is_its_first_falling_root(roots, scale, limit):
    ordered = sorted(roots)
    assume(min(np.diff(ordered)) > 1e-2 and min(abs(r) for r in ordered) > 1e-2)
    assume(min(abs(r - limit) for r in ordered) > 1e-2)
    coefficients = scale * np.poly(ordered)[::-1]
    found = first_descent(*coefficients, 0.0, limit)
    falling = [r for r in (ordered[0], ordered[2]) if 0 < r < limit]  # a quartic falls through its 1st and 3rd root
    if np.polyval(coefficients[::-1], 0.0) < 0 and np.polyval(np.polyder(coefficients[::-1]), 0.0) < 0:
        falling = [0.0]  # below zero and still falling: at once
    elif np.polyval(coefficients[::-1], 0.0) < 0:
        inside = [r for r in ordered if r > 0]
        assume(inside)  # rises through the next root first, unless it turns below zero
        assume(not any(0 < t < inside[0] for t in np.roots(np.polyder(coefficients[::-1])).real))
    assert found == pytest.approx(falling[0], abs=1e-9) if falling else found == np.inf


@settings(max_examples=60, deadline=None)
@given(
    place=st.tuples(st.floats(-30, 30), st.floats(-30, 30)),
    velocity=st.tuples(st.floats(-5, 5), st.floats(-5, 5)),
    gravity=st.tuples(st.floats(-1, 1), st.floats(0.01, 1)),
    reach=st.floats(1.5, 12),
)
def test_a_ball_meets_a_point_when_60_digits_say_so(place, velocity, gravity, reach):
    distance = np.hypot(*place)
    assume(distance > reach + 1e-3)
    limit = 20.0
    x, v, g = (np.array(a) for a in (place, velocity, gravity))
    coefficients = [x @ x - reach**2, 2 * x @ v, v @ v + x @ g, v @ g, g @ g / 4]
    exact = exact_descents(coefficients, limit)
    found = disc_contact(*place, *velocity, *gravity, reach, 1e-12, limit)
    if exact and exact[0] < limit - 1e-6:
        slope = np.polyval(np.polyder(coefficients[::-1]), exact[0])
        assume(abs(slope) > 1e-3)  # a graze may be taken for a miss
        assert found == pytest.approx(exact[0], abs=1e-9)
    elif not exact:
        assert found == np.inf


def test_a_graze_that_goes_less_deep_than_rounding_is_a_miss():
    # (t - 2)^2 - depth: the lowest point is `depth` below zero
    assert first_descent(4.0 - 1e-15, -4.0, 1.0, 0.0, 0.0, 1e-13, 10.0) == np.inf
    assert first_descent(4.0 - 1e-6, -4.0, 1.0, 0.0, 0.0, 1e-13, 10.0) == pytest.approx(2 - 1e-3)


def test_what_leaves_and_falls_back_arrives_after_the_whole_hop():
    # on the surface, leaving at speed 1 under gravity 0.5: back after 2 v / g
    assert arrival(0.0, -1.0, 0.5) == pytest.approx(4.0)
    assert arrival(3.0, 1.0, 0.0) == 3.0
    assert arrival(3.0, -1.0, 0.0) == np.inf
    assert arrival(3.0, 1.0, -0.5) == np.inf  # turns back 1 px from the start
    assert arrival(-3.0, 1.0, 0.5) == np.inf  # behind it, and moving away
    assert arrival(-3.0, -4.0, 0.5) == pytest.approx((4 + np.sqrt(13)) / 0.5)
