"""What a value may be, said in one way: for fields of configs, arguments, options and documents on the disk.

A hint is a type with its limits, each with its name: `Annotated[int, between(1, 1000)]` is "a whole number from 1 to
1000". A `Check` asks whether a value fits a hint; what came and what is allowed is said in one style.

    checked("steps", steps, Annotated[int, between(1, 1000)])    # an argument: the value, or a `UsageError`
    whole(1, 1000)("7")                                          # an option, as text or as a Python value: 7
    whole(1, 1000).fitted("steps of the plan", document["n"])    # a document: the value, or a `Misfit`

Configs are frozen keyword-only dataclasses that go to JSON and back unchanged. A field says what it takes where it is
declared, as in `gait: Annotated[str, one_of("walk", "run")] = "walk"`; `check_fields`, called from `__post_init__`,
sees to it, and rules between fields follow as `require`."""

from __future__ import annotations

import dataclasses
import json
import math
import operator
import reprlib
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Annotated, Any, TypeVar

from s2rm_data.core.errors import UsageError, did_you_mean

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
    hints, fields = typing.get_type_hints(cls), dataclasses.fields(cls)  # type: ignore[arg-type]
    names = [f.name for f in fields]
    for key in data:
        if key not in names:
            it_has = f"it has {', '.join(names)}"
            raise UsageError(f"{cls.__name__} has no field {key!r}{did_you_mean(key, names, it_has)}")
    if missing := [f.name for f in fields if f.default is f.default_factory and f.name not in data]:
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
        hints = typing.get_args(hint)
        hints = hints[:1] * len(value) if hints[-1] is Ellipsis else hints
        return tuple(map(_revive, hints, value)) if len(hints) == len(value) else tuple(value)
    if hint is float and isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**1000:
        return float(value)
    return value


# -- what a field takes


@dataclass(frozen=True, kw_only=True)
class Bounds:
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


@dataclass(frozen=True, init=False)
class one_of:  # noqa: N801
    """Some names; the message suggests the nearest one."""

    names: tuple[str, ...]

    def __init__(self, *names: str) -> None:
        object.__setattr__(self, "names", names)

    def allows(self, value: str) -> bool:
        return value in self.names

    def __str__(self) -> str:
        return f"one of {', '.join(self.names)}"


# -- checking


class Misfit(ValueError):  # noqa: N818 - whoever asked makes an error of it
    """What came and what is allowed; becomes a `UsageError`, or a `DamagedStoreError` that names the document."""


class Check:
    """A hint, ready to be asked; as text, what it allows. Called, it takes what a user gave an option."""

    def __init__(self, hint: Any) -> None:
        self.hint, self._fit = hint, _fitter(hint)

    def __str__(self) -> str:
        return _allowed(self.hint)

    @property
    def is_number(self) -> bool:
        return _kind(self.hint) in (int, float)

    def fitted(self, name: str, value: Any) -> Any:
        """The value in the type of the hint, or a `Misfit` that calls it `name`."""
        try:
            return self._fit(value)
        except _DoesNotFit:
            raise Misfit(f"{name} is {shown(value)}; it must be {self}{_suggestion(self.hint, value)}") from None

    def __call__(self, given: Any) -> Any:
        """The value of what was given, as text or as a Python value, or a `UsageError`."""
        try:
            return self._fit(_from_text(_kind(self.hint), given))
        except _DoesNotFit:
            raise UsageError(f"it must be {self}{_suggestion(self.hint, given)}") from None


def whole(low: int, high: int = 10**9) -> Check:
    return Check(Annotated[int, between(low, high)])


def named(*names: str) -> Check:
    return Check(Annotated[str, one_of(*names)])


def check_fields(config: Any) -> None:
    """Check every field of a config dataclass against its declaration; a `UsageError` names the first that is wrong.
    None passes where the type says so or where it is the default. Values are kept in the type of their field."""
    cls: Any = type(config)
    checks = _checks(cls)
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if value is not None or field.default is not None:
            object.__setattr__(config, field.name, _asked(checks[field.name], field.name, value))


def checked(name: str, value: Any, hint: Any) -> Any:
    """The value in the type of the hint, or a `UsageError` that calls it `name`."""
    return _asked(Check(hint), name, value)


def _asked(check: Check, name: str, value: Any) -> Any:
    try:
        return check.fitted(name, value)
    except Misfit as problem:
        raise UsageError(str(problem)) from None


def require(config: Any, name: str, holds: bool, allowed: str) -> None:
    """A rule that concerns several fields: what `name` must be if it does not hold."""
    if not holds:
        raise UsageError(f"{name} is {shown(getattr(config, name))}; it must be {allowed}")


def expect(holds: bool, problem: str) -> None:
    """A rule of a document; a `Misfit` says what is wrong."""
    if not holds:
        raise Misfit(problem)


def table(name: str, value: Any, most: int, allows: Callable[[str], bool]) -> Mapping[str, Any]:
    """A JSON object with at most `most` keys, each of which is allowed; or a `Misfit`."""
    if not isinstance(value, dict):
        raise Misfit(f"{name} is {shown(value)}; it must be a table")
    expect(len(value) <= most, f"{name} has {len(value):,} entries; at most {most:,} are allowed")
    for key in value:
        if not allows(key):
            raise Misfit(f"{name} has an entry {shown(key)}, which is not allowed")
    return dict(value)


def exactly(name: str, value: Any, keys: tuple[str, ...]) -> Mapping[str, Any]:
    """A JSON object with just these keys; or a `Misfit`."""
    if not isinstance(value, dict) or value.keys() != {*keys}:
        raise Misfit(f"{name} must be a table of just {', '.join(keys)}")
    return dict(value)


_SHORT = reprlib.Repr()  # which looks at some parts of what is large
_SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxdict = 30
_SHORT.maxstring = _SHORT.maxother = 200
_SHORT.maxlong = 5000


def shown(value: Any) -> str:
    """A value for a message, however long or odd it is."""
    try:
        words = _SHORT.repr(value)
    except ValueError:  # Python prints no whole number of more than 4,300 digits
        words = "too long to print"
    return words if len(words) <= 100 else words[:97] + "..."


class _DoesNotFit(Exception):  # noqa: N818
    pass


@cache
def _checks(cls: Any) -> dict[str, Check]:
    return {name: Check(hint) for name, hint in typing.get_type_hints(cls, include_extras=True).items()}


def _fitter(hint: Any) -> Callable[[Any], Any]:
    """What gives a value in the type of the hint, or raises `_DoesNotFit`; looks at the hint only once."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return partial(_limited, _fitter(args[0]), args[1:])
    if origin in (typing.Union, types.UnionType):
        return partial(_fitted_to_any, list(map(_fitter, args)))
    if origin is tuple:
        each = args[-1] is Ellipsis
        return partial(_listed, list(map(_fitter, args[:1] if each else args)), each)
    if hint is Any:
        return lambda value: value
    return partial(_number, hint) if hint in (int, float) else partial(_instance, origin or hint)


def _limited(inner: Callable[[Any], Any], limits: Sequence[Any], value: Any) -> Any:
    fitted = inner(value)
    if not all(limit.allows(fitted) for limit in limits):
        raise _DoesNotFit
    return fitted


def _fitted_to_any(inner: Sequence[Callable[[Any], Any]], value: Any) -> Any:
    for fit in inner:
        try:
            return fit(value)
        except _DoesNotFit:
            continue
    raise _DoesNotFit


def _listed(inner: Sequence[Callable[[Any], Any]], each: bool, value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple) or (len(value) != len(inner) and not each):
        raise _DoesNotFit
    return tuple(fit(part) for fit, part in zip([*inner] * (len(value) if each else 1), value, strict=True))


def _number(kind: type, value: Any) -> int | float:
    """A whole number, or a finite one, of Python or NumPy; neither a truth value nor text."""
    if type(value) is kind is int:
        return value
    if isinstance(value, bool | str | bytes):
        raise _DoesNotFit
    try:
        found = operator.index(value) if kind is int else float(value)
    except (TypeError, ValueError, OverflowError):
        raise _DoesNotFit from None
    if kind is float and not math.isfinite(found):
        raise _DoesNotFit
    return found


def _instance(kind: type, value: Any) -> Any:
    if not isinstance(value, kind):
        raise _DoesNotFit
    return value


def _from_text(kind: Any, given: Any) -> Any:
    """What a user gave, in the words of Python: a text of a number as that number."""
    if kind is int and isinstance(given, float) and given.is_integer():
        return int(given)
    if kind not in (int, float) or not isinstance(given, str):
        return given
    try:
        return kind(given)
    except ValueError:
        raise _DoesNotFit from None


def _kind(hint: Any) -> Any:
    return typing.get_args(hint)[0] if typing.get_origin(hint) is Annotated else hint


# -- messages


def _allowed(hint: Any) -> str:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        choices = [limit for limit in args[1:] if isinstance(limit, one_of)]
        return str(choices[0]) if choices else _allowed(args[0]) + "".join(str(limit) for limit in args[1:])
    if origin in (typing.Union, types.UnionType):
        return ", or ".join(_allowed(arg) for arg in args if arg is not type(None))
    if origin is tuple:
        each = f"each {_allowed(args[0])}"
        return f"a list, {each}" if args[-1] is Ellipsis else f"a list of {len(args)}, {each}"
    nouns = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
    return nouns.get(hint) or f"of type {getattr(origin or hint, '__name__', hint)}"


def _suggestion(hint: Any, value: Any) -> str:
    if isinstance(hint, one_of):
        return did_you_mean(value, hint.names) if isinstance(value, str) else ""
    return "".join(_suggestion(part, value) for part in typing.get_args(hint))


def _plain(number: float) -> str:
    return str(number) if isinstance(number, int) else f"{number:g}"


integer = Check(Annotated[int, between(-(10**12), 10**12)])
number = Check(float)
text = Check(str)
