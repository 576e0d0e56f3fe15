"""Configs: frozen keyword-only dataclasses, checked when made, that go to JSON and back unchanged.

A field says what it takes where it is declared; `check_fields`, called from `__post_init__`, sees to it, and rules
between fields follow as `require`:

    @dataclass(frozen=True, kw_only=True)
    class WalkConfig:
        steps: Annotated[int, between(1, 1000)] = 100
        speed: Annotated[float, above(0, at_most=10)] = 1.0
        gait: Annotated[str, one_of("walk", "run")] = "walk"
        rests: Annotated[int, between(1, 1000)] | None = None

        def __post_init__(self) -> None:
            check_fields(self)
            require(self, "rests", (self.rests or 0) <= self.steps, f"at most steps ({self.steps})")
"""

from __future__ import annotations

import dataclasses
import json
import math
import operator
import types
import typing
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, NoReturn, TypeVar

from s2rm_data.errors import UsageError, did_you_mean

C = TypeVar("C")


def canonical_json(value: Any) -> bytes:
    """One spelling for one value: sorted keys, no blanks, shortest round-trip floats, no NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def to_json(config: Any) -> dict[str, Any]:
    """A config dataclass as plain JSON types (tuples become lists)."""
    return typing.cast(dict[str, Any], json.loads(canonical_json(dataclasses.asdict(config))))


def from_json(cls: type[C], data: dict[str, Any]) -> C:
    """The inverse of `to_json`; an unknown key is an error, a missing one takes its default if it has any."""
    if not isinstance(data, dict):
        raise UsageError(f"{cls.__name__} cannot be read from {type(data).__name__}; it is a table of fields")
    hints = typing.get_type_hints(cls)
    names = [f.name for f in dataclasses.fields(cls)]  # type: ignore[arg-type]
    for key in data:
        if key not in names:
            it_has = f"it has {', '.join(names)}"
            raise UsageError(f"{cls.__name__} has no field {key!r}{did_you_mean(key, names, it_has)}")
    fields = dataclasses.fields(cls)  # type: ignore[arg-type]
    given = {*data, *(f.name for f in fields if f.default is not f.default_factory)}
    missing = [f.name for f in fields if f.name not in given]
    if missing:
        raise UsageError(f"{cls.__name__} needs a value for each of: {', '.join(missing)}")
    return cls(**{key: _revive(hints[key], value) for key, value in data.items()})


def _revive(hint: Any, value: Any) -> Any:
    """A value of JSON as its hint wants it; one that does not fit stays as it is, for the config to refuse."""
    if value is None:
        return None
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        hint = next(arg for arg in typing.get_args(hint) if arg is not type(None))
    if dataclasses.is_dataclass(hint) and isinstance(value, dict):
        return from_json(typing.cast(type, hint), value)
    if typing.get_origin(hint) is tuple and isinstance(value, list | tuple):
        hints = _element_hints(hint, value)
        return tuple(map(_revive, hints, value)) if len(hints) == len(value) else tuple(value)
    if hint is float and isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**1000:
        return float(value)
    return value


# -- what a field takes


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """Numbers between two bounds, each included or not."""

    low: float = -math.inf
    high: float = math.inf
    low_included: bool = True
    high_included: bool = True

    def allows(self, value: float) -> bool:
        above_low = value >= self.low if self.low_included else value > self.low
        return above_low and (value <= self.high if self.high_included else value < self.high)

    def __str__(self) -> str:
        if self.low_included and self.high_included and math.isfinite(self.low) and math.isfinite(self.high):
            return f" from {_plain(self.low)} to {_plain(self.high)}"
        low = f" {'of at least' if self.low_included else 'above'} {_plain(self.low)}"
        high = f" {'of at most' if self.high_included else 'below'} {_plain(self.high)}"
        return " and".join(text for text, bound in ((low, self.low), (high, self.high)) if math.isfinite(bound))


def at_least(low: float, *, below: float = math.inf) -> Bounds:
    return Bounds(low=low, high=below, high_included=math.isinf(below))


def between(low: float, high: float) -> Bounds:
    """Both bounds are allowed."""
    return Bounds(low=low, high=high)


def above(low: float, *, at_most: float = math.inf) -> Bounds:
    return Bounds(low=low, high=at_most, low_included=False)


@dataclass(frozen=True)
class multiple_of:  # noqa: N801 (reads as a function, like its neighbours)
    divisor: int

    def allows(self, value: int) -> bool:
        return value % self.divisor == 0

    def __str__(self) -> str:
        return f", a multiple of {self.divisor}"


class one_of:  # noqa: N801
    """Some names; the message suggests the nearest one."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def allows(self, value: str) -> bool:
        return value in self.names

    def __str__(self) -> str:
        return f"one of {', '.join(self.names)}"


# -- checking


def check_fields(config: Any) -> None:
    """Check every field of a config dataclass against its declaration; a `UsageError` names the first that is wrong.

    None passes where the type says so or where it is the default. Values are kept in the type of their field: whole
    numbers become floats where floats belong, lists tuples, and NumPy's numbers Python's.
    """
    cls: Any = type(config)
    hints = _hints(cls)
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if value is not None or field.default is not None:
            object.__setattr__(config, field.name, checked(field.name, value, hints[field.name]))


def checked(name: str, value: Any, hint: Any) -> Any:
    """The value in the type of the hint, or a `UsageError` that calls it `name`."""
    try:
        return _fitted(hint, value)
    except _DoesNotFit:
        _refuse(name, value, _allowed(hint) + _suggestion(hint, value))


def require(config: Any, name: str, holds: bool, allowed: str) -> None:
    """A rule that concerns several fields: what `name` must be if it does not hold."""
    if not holds:
        _refuse(name, getattr(config, name), allowed)


def _refuse(name: str, value: Any, allowed: str) -> NoReturn:
    try:
        shown = repr(value)
    except ValueError:  # Python prints no whole number of more than 4,300 digits
        shown = "too long to print"
    raise UsageError(f"{name} is {shown if len(shown) <= 100 else shown[:97] + '...'}; it must be {allowed}")


class _DoesNotFit(Exception):  # noqa: N818
    pass


@cache
def _hints(cls: Any) -> dict[str, Any]:
    return typing.get_type_hints(cls, include_extras=True)


def _fitted(hint: Any, value: Any) -> Any:
    """The value in the type of the hint; raises `_DoesNotFit`."""
    origin = typing.get_origin(hint)
    if origin is Annotated:
        inner, *limits = typing.get_args(hint)
        fitted = _fitted(inner, value)
        return fitted if all(limit.allows(fitted) for limit in limits) else _give_up()
    if origin in (typing.Union, types.UnionType):
        return _fitted_to_any(typing.get_args(hint), value)
    if origin is tuple:
        hints = _element_hints(hint, value) if isinstance(value, list | tuple) else _give_up()
        return tuple(map(_fitted, hints, value)) if len(hints) == len(value) else _give_up()
    if hint is Any:
        return value
    if hint in (int, float):
        return _number(hint, value)
    return value if isinstance(value, origin or hint) else _give_up()


def _give_up() -> NoReturn:
    raise _DoesNotFit


def _fitted_to_any(hints: Sequence[Any], value: Any) -> Any:
    for hint in hints:
        try:
            return _fitted(hint, value)
        except _DoesNotFit:
            continue
    raise _DoesNotFit


def _number(kind: type, value: Any) -> int | float:
    """A whole number, or a finite one, of Python or NumPy; neither a truth value nor text."""
    if isinstance(value, bool | str | bytes):
        raise _DoesNotFit
    try:
        if kind is int:
            return operator.index(value)
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise _DoesNotFit from None
    return number if math.isfinite(number) else _give_up()


def _element_hints(hint: Any, value: Sequence[Any]) -> Sequence[Any]:
    """Hints of the elements of tuple[X, Y], or as many as there are values of tuple[X, ...]."""
    hints = typing.get_args(hint)
    return hints[:1] * len(value) if hints[-1] is Ellipsis else hints


# -- messages

_NOUNS = {int: "a whole number", float: "a number", bool: "true or false", str: "a text", type(None): "None"}


def _allowed(hint: Any) -> str:
    """What a hint takes, in words."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        choices = [limit for limit in args[1:] if isinstance(limit, one_of)]
        return str(choices[0]) if choices else _allowed(args[0]) + "".join(str(limit) for limit in args[1:])
    if origin in (typing.Union, types.UnionType):
        return ", or ".join(_allowed(arg) for arg in args)
    if origin is tuple:
        each = f"each {_allowed(args[0])}"
        return f"a list, {each}" if args[-1] is Ellipsis else f"a list of {len(args)}, {each}"
    return _NOUNS.get(hint) or f"of type {getattr(origin or hint, '__name__', hint)}"


def _suggestion(hint: Any, value: Any) -> str:
    if isinstance(hint, one_of):
        return did_you_mean(value, hint.names) if isinstance(value, str) else ""
    return "".join(_suggestion(part, value) for part in typing.get_args(hint))


def _plain(number: float) -> str:
    return str(number) if isinstance(number, int) else f"{number:g}"
