from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
import pytest

from s2rm_data.core.check import (
    Misfit,
    above,
    at_least,
    between,
    canonical_json,
    check_fields,
    exactly,
    expect,
    from_json,
    multiple_of,
    named,
    number,
    one_of,
    require,
    shown,
    table,
    to_json,
    whole,
)
from s2rm_data.core.errors import UsageError


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


@dataclass(frozen=True, kw_only=True)
class Walk:
    steps: Annotated[int, between(1, 1000)] = 100
    speed: Annotated[float, above(0, at_most=10)] = 1.0
    slope: Annotated[float, at_least(0, below=1)] = 0.0
    feet: Annotated[int, at_least(2), multiple_of(2)] = 2
    gait: Annotated[str, one_of("walk", "run")] = "walk"
    rests: Annotated[int, between(1, 1000)] | None = None
    goal: tuple[Annotated[float, between(-5, 5)], Annotated[float, between(-5, 5)]] = (0.0, 0.0)
    stops: tuple[Annotated[int, at_least(0)], ...] = ()
    weight: float = None  # type: ignore[assignment]  # None is replaced on construction
    inner: Inner = field(default_factory=Inner)
    notes: dict[str, Any] = field(default_factory=dict)
    wet: bool = False

    def __post_init__(self) -> None:
        check_fields(self)
        if self.weight is None:
            object.__setattr__(self, "weight", 70.0)
        require(self, "rests", (self.rests or 0) <= self.steps, f"at most steps ({self.steps})")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"steps": 0}, "steps is 0; it must be a whole number from 1 to 1000"),
        ({"steps": 10**5000}, None),
        ({"steps": 3.0}, "steps is 3.0; it must be a whole number from 1 to 1000"),
        ({"steps": None}, "steps is None; it must be a whole number from 1 to 1000"),
        ({"steps": True}, "steps is True; it must be a whole number from 1 to 1000"),
        ({"speed": 0}, "speed is 0; it must be a number above 0 and of at most 10"),
        ({"speed": "1"}, "speed is '1'; it must be a number above 0 and of at most 10"),
        ({"speed": float("inf")}, "speed is inf; it must be a number above 0 and of at most 10"),
        ({"speed": 10**400}, None),
        ({"slope": 1.0}, "slope is 1.0; it must be a number of at least 0 and below 1"),
        ({"feet": 3}, "feet is 3; it must be a whole number of at least 2, a multiple of 2"),
        ({"gait": "runs"}, "gait is 'runs'; it must be one of walk, run; did you mean 'run'?"),
        ({"gait": 3}, "gait is 3; it must be one of walk, run"),
        ({"rests": 0}, "rests is 0; it must be a whole number from 1 to 1000"),
        ({"rests": 200}, "rests is 200; it must be at most steps (100)"),
        ({"goal": (1, 2, 3)}, "goal is (1, 2, 3); it must be a list of 2, each a number from -5 to 5"),
        ({"goal": 1}, "goal is 1; it must be a list of 2, each a number from -5 to 5"),
        ({"goal": (1, 9)}, "goal is (1, 9); it must be a list of 2, each a number from -5 to 5"),
        ({"stops": (1, -1)}, "stops is (1, -1); it must be a list, each a whole number of at least 0"),
        ({"inner": {}}, "inner is {}; it must be of type Inner"),
        ({"notes": []}, "notes is []; it must be of type dict"),
        ({"wet": 1}, "wet is 1; it must be true or false"),
    ],
)
def test_what_a_field_does_not_take_gets_one_style_of_message(given: dict[str, Any], message: str | None) -> None:
    with pytest.raises(UsageError) as caught:
        Walk(**given)
    assert message is None or str(caught.value) == message
    assert len(str(caught.value)) < 250


@pytest.mark.parametrize("given", [{"goal": [1, 2, 3]}, {"goal": 7}, {"steps": "many"}, {"inner": 3}])
def test_json_of_the_wrong_shape_is_refused_by_the_config_itself(given: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=f"{next(iter(given))} is "):
        from_json(Walk, given)


def test_values_are_kept_in_the_type_of_their_field() -> None:
    walk = Walk(steps=np.int64(7), speed=2, goal=[np.float32(0.5), 1], stops=[1, 2])
    assert to_json(walk) == to_json(Walk()) | {"steps": 7, "speed": 2.0, "goal": [0.5, 1.0], "stops": [1, 2]}
    assert [type(value) for value in (walk.steps, walk.speed, walk.goal, *walk.goal)] == [
        int, float, tuple, float, float,
    ]  # fmt: skip
    assert from_json(Walk, to_json(walk)) == walk


def test_none_passes_where_it_is_the_default() -> None:
    assert Walk().weight == 70.0
    assert Walk(weight=3).weight == 3.0


def test_a_check_reads_what_a_user_gives_as_text_or_as_a_value() -> None:
    for check, given, value in (
        (whole(1, 9), "7", 7), (whole(1, 9), " 7 ", 7), (whole(1, 9), np.int64(7), 7), (whole(1, 9), 7.0, 7),
        (number, "1e-3", 0.001), (number, 2, 2.0), (named("walk", "run"), "run", "run"),
    ):  # fmt: skip
        assert check(given) == value and type(check(given)) is type(value), (str(check), given)
    for check, given, says in (
        (whole(1, 9), "0", "it must be a whole number from 1 to 9"),
        (whole(1, 9), "7.0", "it must be a whole number from 1 to 9"),
        (whole(1, 9), 7.5, "it must be a whole number from 1 to 9"),
        (whole(1, 9), True, "it must be a whole number from 1 to 9"),
        (whole(1, 9), "9" * 5000, "it must be a whole number from 1 to 9"),
        (number, "nan", "it must be a number"),
        (number, [1], "it must be a number"),
        (named("walk", "run"), "runs", "it must be one of walk, run; did you mean 'run'?"),
        (named("walk", "run"), 3, "it must be one of walk, run"),
    ):
        with pytest.raises(UsageError) as caught:
            check(given)
        assert str(caught.value) == says, (str(check), given)


def test_a_document_that_is_not_as_it_must_be_is_a_misfit() -> None:
    for ask, says in (
        (lambda: whole(1, 9).fitted("shards", "3"), "shards is '3'; it must be a whole number from 1 to 9"),
        (lambda: table("groups", [], 2, str.isalpha), "groups is []; it must be a table"),
        (lambda: table("groups", {"a": 1, "b": 2}, 1, str.isalpha), "groups has 2 entries; at most 1 are allowed"),
        (lambda: table("groups", {"../a": 1}, 2, str.isalpha), "groups has an entry '../a', which is not allowed"),
        (lambda: exactly("the plan", {"a": 1}, ("a", "b")), "the plan must be a table of just a, b"),
        (lambda: exactly("the plan", {"a": 1, "b": 1, "c": 1}, ("a", "b")), "the plan must be a table of just a, b"),
        (lambda: expect(False, "it lies"), "it lies"),
    ):
        with pytest.raises(Misfit) as caught:
            ask()
        assert str(caught.value) == says
    assert table("groups", {"a": 1}, 1, str.isalpha) == exactly("groups", {"a": 1}, ("a",)) == {"a": 1}


def test_a_value_in_a_message_is_short_whatever_it_is() -> None:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    for value in ("x" * 10**7, ["x" * 10**6] * 1000, dict.fromkeys(range(10**5)), deep, 10**5000, b"\x00" * 10**6):
        assert len(shown(value)) <= 100
