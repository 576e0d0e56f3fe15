from dataclasses import dataclass, field

import pytest

from s2rm_data.config import canonical_json, from_json, to_json
from s2rm_data.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class Inner:
    names: tuple[str, ...] = ("a", "b")


@dataclass(frozen=True, kw_only=True)
class Outer:
    speed: tuple[float, float] = (3.0, 4.5)
    radius: float | None = None
    inner: Inner = field(default_factory=Inner)


def test_a_config_survives_json() -> None:
    config = Outer(radius=2.5, inner=Inner(names=("c",)))
    assert from_json(Outer, to_json(config)) == config
    assert from_json(Outer, {}) == Outer()


def test_whole_numbers_become_floats_where_floats_belong() -> None:
    revived = from_json(Outer, {"radius": 2, "speed": [1, 2]})
    assert isinstance(revived.radius, float)
    assert all(isinstance(value, float) for value in revived.speed)


def test_an_unknown_field_gets_a_suggestion() -> None:
    with pytest.raises(UsageError, match="no field 'raduis'; did you mean 'radius'"):
        from_json(Outer, {"raduis": 1})


def test_canonical_json_has_one_spelling() -> None:
    assert canonical_json({"b": 1.50, "a": [1, 2]}) == b'{"a":[1,2],"b":1.5}'
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json(float("nan"))
