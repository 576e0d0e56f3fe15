"""What the options of general worlds take. Cheap to import."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from s2rm_data.errors import UsageError
from s2rm_data.options import Parser, integer, number, span


def radius(given: Any) -> float | tuple[float, float]:
    """`4.5` as a number, `3-6` as a pair."""
    try:
        return number(given)
    except UsageError:
        low, high = span(given)
        return low if low == high else (low, high)


def gravity(given: Any) -> tuple[float, float]:
    """`0.2`, downwards, or `x,y`, as a pair (x, y)."""
    parts = _numbers(given)
    if len(parts) not in (1, 2):
        raise UsageError("it must be one number, downwards, or two as x,y, in px/frame²")
    return (0.0, parts[0]) if len(parts) == 1 else (parts[0], parts[1])


def mass(given: Any) -> str | tuple[float, float]:
    """`equal`, `area`, or a number or range as a pair."""
    if given in ("equal", "area"):
        return str(given)
    try:
        return span(given)
    except UsageError:
        raise UsageError("it must be equal, area, or a range of masses such as 1-4") from None


def lists(counts: Sequence[int], form: str) -> Parser:
    """`none`, or lists of as many numbers as one of `counts`, separated by semicolons."""

    def parse(given: Any) -> tuple[tuple[float, ...], ...]:
        parts = [] if given == "none" else given.split(";") if isinstance(given, str) else list(given)
        values = tuple(_numbers(part) for part in parts)
        if any(len(value) not in counts for value in values):
            raise UsageError(f"it must be {form}, several separated by ';', or none")
        return values

    return parse


def fixed(given: Any) -> int | tuple[tuple[float, ...], ...]:
    """A whole number of balls at random places, or the places of balls as lists."""
    try:
        return integer(given)
    except UsageError:
        return lists((2, 3), "a number of fixed balls, or x,y or x,y,radius of a fixed ball")(given)


def _numbers(given: Any) -> tuple[float, ...]:
    parts = given.split(",") if isinstance(given, str) else given if isinstance(given, Sequence) else [given]
    return tuple(number(part) for part in parts)
