"""Two commands that write to one bucket, where there is no lock: one of them is told, and nothing is lost or mixed."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from toy import ToySplit, tree

from s2rm_data.core.addresses import Url
from s2rm_data.core.errors import ConflictError, S2RMError
from s2rm_data.making.parts import generate_part, merge
from s2rm_data.making.run import generate
from s2rm_data.store.parts import Part
from s2rm_data.store.places.bucket import ObjectPlace

pytestmark = pytest.mark.costs(1)

memory = pytest.importorskip("obstore.store").MemoryStore
SCHEDULES = 15


class Turns:
    """Lets two rivals send one request at a time, in a random order that a seed decides."""

    def __init__(self, seed: int, count: int) -> None:
        self._chance, self._there = random.Random(seed), [*range(count)]
        self._changed = threading.Condition()
        self._now = 0

    def take(self, who: int) -> None:
        with self._changed:
            self._choose()
            self._changed.wait_for(lambda: self._now == who)

    def leave(self, who: int) -> None:
        with self._changed:
            self._there.remove(who)
            self._choose()

    def _choose(self) -> None:
        if self._there:
            self._now = self._chance.choice(self._there)
            self._changed.notify_all()


class TurnPlace(ObjectPlace):
    """A bucket whose user waits for a turn before every request."""

    def __init__(self, client: Any, turns: Turns, who: int) -> None:
        super().__init__(Url("s3://memory/toy.zarr"), client)
        self._turns, self._who, self._requests = turns, who, self._obstore
        self._obstore = self  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._requests, name)
        if name not in ("put", "get", "head", "delete", "list", "list_with_delimiter", "get_ranges"):
            return found

        def request(*arguments: Any, **options: Any) -> Any:
            self._turns.take(self._who)
            return found(*arguments, **options)

        return request


def race(client: Any, seed: int, works: Sequence[Callable[[TurnPlace], Any]]) -> list[S2RMError | None]:
    """What each of the rivals was told; None for one that has done its work."""
    turns = Turns(seed, len(works))

    def run(who: int) -> S2RMError | None:
        try:
            works[who](TurnPlace(client, turns, who))
        except S2RMError as error:
            return error
        finally:
            turns.leave(who)
        return None

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(run, range(len(works))))


def bytes_in(client: Any) -> dict[str, bytes]:
    place = ObjectPlace(Url("s3://memory/toy.zarr"), client)
    return {name: place.read(name, 10**9) for name in sorted(place.names())}


def splits(seed: int) -> list[ToySplit]:
    return [ToySplit(seed=seed), ToySplit(group="toy/val", count=5, seed=seed)]


def maker(seed: int, **options: Any) -> Callable[[TurnPlace], Any]:
    return lambda place: generate(splits(seed), place, shard_size=4, **options)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, bytes]]:
    """By seed, the store that a command makes that is alone."""
    paths = [Path(tmp_path_factory.mktemp("alone")) / "toy.zarr" for _ in range(2)]
    for seed, path in enumerate(paths):
        generate(splits(seed), path, shard_size=4)
    return [tree(path) for path in paths]


def test_of_two_commands_that_make_the_same_nothing_is_lost(whole: list[dict[str, bytes]]) -> None:
    told = 0
    for seed in range(SCHEDULES):
        client = memory()
        found = race(client, seed, [maker(0), maker(0)])
        told += assert_told(found)
        assert None in found
        assert bytes_in(client) == whole[0], seed
    assert told > 0


def test_of_two_commands_that_make_different_data_one_wins(whole: list[dict[str, bytes]]) -> None:
    winners = set()
    for seed in range(SCHEDULES):
        client = memory()
        found = race(client, seed, [maker(0), maker(1)])
        assert assert_told(found) == 1
        winner = found.index(None)
        assert bytes_in(client) == whole[winner], seed
        winners.add(winner)
    assert winners == {0, 1}


def assert_told(found: Sequence[S2RMError | None]) -> int:
    """How many were refused; each with a reason that says who is in the way."""
    errors = [error for error in found if error]
    for error in errors:
        words = ("another process is writing to", "by another process meanwhile", "with other settings")
        assert any(reason in str(error) for reason in words), error
        # What the other has just written, before either has committed, cannot be told from what a server has garbled.
        assert isinstance(error, ConflictError) or "holds other bytes" in str(error), error
    return len(errors)


def test_two_that_overwrite_each_other_leave_what_one_of_them_made_or_say_what_is_damaged(
    whole: list[dict[str, bytes]],
) -> None:
    for seed in range(SCHEDULES):
        client = memory()
        maker(0)(TurnPlace(client, Turns(0, 1), 0))
        found = race(client, seed, [maker(0, overwrite=True), maker(1, overwrite=True)])
        assert_told(found)
        if None in found:
            assert bytes_in(client) in whole, seed


def test_of_two_merges_both_or_one_succeed(whole: list[dict[str, bytes]]) -> None:
    for seed in range(SCHEDULES):
        client = memory()
        for number in (1, 2):
            alone: Any = TurnPlace(client, Turns(0, 1), 0)
            generate_part(splits(0), alone, Part(number, 2), shard_size=4)
        found = race(client, seed, [merge, merge])  # type: ignore[list-item]
        assert None in found, found
        for error in found:
            assert error is None or any(w in str(error) for w in ("no parts to merge", "is writing to", "is missing"))
        assert bytes_in(client) == whole[0], seed


def test_of_parts_of_two_runs_those_of_the_second_are_refused(whole: list[dict[str, bytes]]) -> None:
    def part(seed: int) -> Callable[[TurnPlace], Any]:
        return lambda place: generate_part(splits(seed), place, Part(1, 1), shard_size=4)  # type: ignore[arg-type]

    for seed in range(SCHEDULES):
        client = memory()
        found = race(client, seed, [part(0), part(1)])
        assert sum(isinstance(error, ConflictError) for error in found) == 1, found
        place: Any = ObjectPlace(Url("s3://memory/toy.zarr"), client)
        merge(place, verify=True)
        assert bytes_in(client) == whole[found.index(None)], seed


def test_an_object_that_is_replaced_while_it_is_read_is_no_fault_of_the_server() -> None:
    place = ObjectPlace(Url("s3://memory/toy.zarr"), memory())
    place.write_whole("toy", [b"old"])
    with place.opened("toy") as found:
        place.write_whole("toy", [b"new"], replace=True)
        with pytest.raises(ConflictError, match="replaced by another process meanwhile"):
            list(found.pieces())
