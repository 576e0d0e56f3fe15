"""The table of directions against 90-digit arithmetic."""

import mpmath
import numpy as np
import pytest

from s2rm_data.starcraft.polar import direction, directions


@pytest.mark.parametrize("count", [3, 7, 32, 48, 100, 360])
def test_every_entry_is_the_nearest_float_of_cosine_and_sine(count: int) -> None:
    with mpmath.workprec(300):
        for numerator in range(count):
            angle = 2 * mpmath.pi * numerator / count
            exact = float(mpmath.cos(angle)), float(mpmath.sin(angle))
            for value, expected in zip(direction(numerator, count), exact, strict=True):
                assert value == (expected if abs(expected) > 1e-30 else 0.0)


@pytest.mark.parametrize("half_step", [False, True])
def test_a_half_turn_is_an_exact_negation(half_step: bool) -> None:
    table = directions(48, half_step=half_step)
    assert np.array_equal(table[24:], -table[:24])


def test_the_four_winds_are_exact() -> None:
    assert directions(4).tolist() == [[1, 0], [0, 1], [-1, 0], [0, -1]]
