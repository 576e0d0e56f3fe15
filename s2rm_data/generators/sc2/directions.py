"""Directions on the circle, the same bits on every machine.

The C library's sin and cos may differ in the last bit from one machine to the next, and a unit on the edge between two
cells would then be stored in another cell. Here cosine and sine are Taylor sums over Python's integers, rounded once.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

_BITS = 160  # of the fixed point; the sums are wrong by a few units of 2^-160
_KEPT = 120  # rounding to 2^-120 removes those, so that cos(90 degrees) is 0 and not 1e-48
_ONE = 1 << _BITS


def _inverse_arctan(n: int) -> int:
    """arctan(1/n) in fixed point."""
    total, term, k = 0, _ONE // n, 0
    while term:
        total += (-1) ** k * (term // (2 * k + 1))
        term //= n * n
        k += 1
    return total


@lru_cache(maxsize=1)
def _two_pi() -> int:
    return 8 * (4 * _inverse_arctan(5) - _inverse_arctan(239))  # Machin's formula


def _taylor(angle: int, first: int) -> int:
    """Cosine (first = 0) or sine (first = 1) of a fixed-point angle."""
    total, term, k = 0, _ONE if first == 0 else angle, first
    while term:
        total += term
        term = -(((term * angle) >> _BITS) * angle >> _BITS) // ((k + 1) * (k + 2))
        if term == -1:  # a floor division of a negative rest never reaches 0
            break
        k += 2
    return total


def _to_float(value: int) -> float:
    drop = _BITS - _KEPT
    return ((value + (1 << (drop - 1))) >> drop) / (1 << _KEPT)


@lru_cache(maxsize=256)
def direction(numerator: int, denominator: int) -> tuple[float, float]:
    """(cos, sin) of the fraction numerator/denominator of a full turn, each the nearest float64."""
    angle = _two_pi() * (numerator % denominator) // denominator
    return _to_float(_taylor(angle, 0)), _to_float(_taylor(angle, 1))


def directions(count: int, *, half_step: bool = False) -> NDArray[np.float64]:
    """(count, 2) unit vectors at j/count of a turn from the east, counter-clockwise; or at (j + 1/2)/count."""
    shift = 1 if half_step else 0
    return np.array([direction(2 * j + shift, 2 * count) for j in range(count)], dtype=np.float64).reshape(count, 2)
