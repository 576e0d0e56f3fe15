"""Configs: frozen keyword-only dataclasses that become JSON and come back unchanged, and the canonical form of JSON."""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from typing import Any, TypeVar

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
            raise UsageError(
                f"{cls.__name__} has no field {key!r}{did_you_mean(key, names)}; it has {', '.join(names)}"
            )
    fields = dataclasses.fields(cls)  # type: ignore[arg-type]
    given = {*data, *(f.name for f in fields if f.default is not f.default_factory)}
    missing = [f.name for f in fields if f.name not in given]
    if missing:
        raise UsageError(f"{cls.__name__} needs a value for each of: {', '.join(missing)}")
    return cls(**{key: _revive(hints[key], value) for key, value in data.items()})


def _revive(hint: Any, value: Any) -> Any:
    if value is None:
        return None
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        hint = next(arg for arg in typing.get_args(hint) if arg is not type(None))
        origin = typing.get_origin(hint)
    if dataclasses.is_dataclass(hint) and isinstance(value, dict):
        return from_json(typing.cast(type, hint), value)
    if origin is tuple and isinstance(value, list | tuple):
        args = typing.get_args(hint)
        inner = args[0] if len(args) == 2 and args[1] is Ellipsis else None
        return tuple(_revive(inner or a, v) for a, v in zip(args * len(value) if inner else args, value, strict=False))
    if hint is float and isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**1000:
        return float(value)
    return value
