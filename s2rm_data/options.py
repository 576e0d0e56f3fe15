"""Options of a world: one declaration serves the command line, the shell's completion and Python keywords alike.

A parser takes what a user gave, as text or as a Python value, and returns the value or raises a `UsageError` that says
what is allowed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from s2rm_data.errors import UsageError

Parser = Callable[[Any], Any]


@dataclass(frozen=True, kw_only=True)
class Option:
    """`name` is the Python keyword; on the command line it is spelled `--name`, with dashes.

    `default` None means that the option was not given; `shown` then says in words what happens. `many`: it may be
    repeated or hold a list separated by commas. `choices` are names that the shell completes.
    """

    name: str
    help: str
    parse: Parser = str
    default: Any = None
    shown: str = ""
    metavar: str = ""
    many: bool = False
    choices: Callable[[], Sequence[str]] | None = None

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    def value(self, given: Any) -> Any:
        """What was given, checked; the message of a `UsageError` begins with the option's name."""
        if given is None:
            return None
        try:
            if not self.many:
                return self.parse(given)
            parts = given.split(",") if isinstance(given, str) else [p for part in given for p in str(part).split(",")]
            return tuple(self.parse(part.strip()) for part in parts)
        except UsageError as error:
            raise UsageError(f"{self.name} is {given!r}: {error}") from None


def whole(low: int, high: int = 10**9) -> Parser:
    """A whole number from `low` to `high`."""

    def whole_number(given: Any) -> int:
        try:
            value = int(given)
        except (TypeError, ValueError, OverflowError):
            raise UsageError(f"it must be a whole number from {low} to {high}") from None
        if isinstance(given, bool) or (isinstance(given, float) and given != value) or not low <= value <= high:
            raise UsageError(f"it must be a whole number from {low} to {high}")
        return value

    return whole_number


def integer(given: Any) -> int:
    """Any whole number; the world's config says which ones it takes."""
    try:
        return whole(-(10**12), 10**12)(given)
    except UsageError:
        raise UsageError("it must be a whole number") from None


def number(given: Any) -> float:
    """Any finite number."""
    try:
        value = float(given)
    except (TypeError, ValueError, OverflowError):
        raise UsageError("it must be a number") from None
    if not math.isfinite(value):
        raise UsageError("it must be a finite number")
    return value


def one_of(*names: str) -> Parser:
    def parse(given: Any) -> str:
        if given not in names:
            raise UsageError(f"the choices are {', '.join(names)}")
        return str(given)

    return parse


def whole_numbers(given: Any, least: int = 1) -> tuple[int, ...]:
    """`3`, `1-6` or `1,3-5` (or such numbers in a list) as a sorted tuple of distinct whole numbers from `least`."""
    if isinstance(given, Iterable) and not isinstance(given, str):
        return tuple(sorted({number for part in given for number in whole_numbers(str(part), least)}))
    numbers: set[int] = set()
    for part in str(given).split(","):
        match = re.fullmatch(r"\s*(\d{1,6})\s*(?:-\s*(\d{1,6})\s*)?", part)
        if not match:
            raise UsageError("it is not a set of numbers; write 3, 1-6 or 1,3-5")
        low, high = int(match[1]), int(match[2] or match[1])
        if low < least:
            raise UsageError(f"it contains {low}; the smallest number is {least}")
        if high < low:
            raise UsageError(f"{part.strip()!r} runs backwards; write {high}-{low}")
        if high - low >= 1000:
            raise UsageError(f"{part.strip()!r} spans more than 1000 numbers")
        numbers |= set(range(low, high + 1))
    return tuple(sorted(numbers))


def span(given: Any) -> tuple[float, float]:
    """`2` or `2-4.5` (or a pair of numbers) as a pair (low, high)."""
    if isinstance(given, Sequence) and not isinstance(given, str):
        low, high = (number(part) for part in given) if len(given) == 2 else (math.inf, -math.inf)
    else:
        match = re.fullmatch(r"\s*([0-9.]+(?:e-?\d+)?)\s*(?:-\s*([0-9.]+(?:e-?\d+)?)\s*)?", str(given))
        try:
            low, high = (float(match[1]), float(match[2] or match[1])) if match else (math.inf, math.inf)
        except ValueError:
            low = high = math.inf
    if not (math.isfinite(low) and math.isfinite(high)):
        raise UsageError("it is neither a number nor a range; write 2 or 2-4.5")
    if high < low:
        raise UsageError(f"the range runs backwards; write {high:g}-{low:g}")
    return low, high
