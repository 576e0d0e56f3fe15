"""Parts of a run, made one by one and merged, are the run: every byte of it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from buckets import tree_at
from patience import finish
from program import run, start_forked
from toy import ToySplit, tree

from s2rm_data.core.addresses import StorePath, store_path
from s2rm_data.core.errors import ConflictError, DamagedStoreError, UsageError
from s2rm_data.making.parts import generate_part, merge
from s2rm_data.making.run import generate, plan_splits
from s2rm_data.store import Store, parts, verify
from s2rm_data.store.parts import Part
from s2rm_data.store.places.folder import FolderPlace

SPLITS = [ToySplit(), ToySplit(group="toy/val", count=5)]  # five shards of four sequences
OTHER = ToySplit(group="other/train", count=6)


def make_parts(path: StorePath, count: int, *, without: tuple[int, ...] = (), **options: Any) -> None:
    for number in range(1, count + 1):
        if number not in without:
            generate_part(SPLITS, path, Part(number, count), **{"shard_size": 4, **options})


def files(path: StorePath) -> dict[str, bytes]:
    return tree(path) if isinstance(path, Path) else tree_at(str(path))


@pytest.fixture(params=["folder", "bucket"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> StorePath:
    if request.param == "folder":
        return tmp_path / "parts.zarr"
    return store_path(f"{request.getfixturevalue('bucket')}/parts.zarr")


def test_parts_and_merge_make_the_store_of_one_process(place: StorePath, toy_store: Path) -> None:
    make_parts(place, 3)
    done = merge(place, verify=True)
    assert (done.parts, done.groups) == (3, ("toy/train", "toy/val"))
    assert files(place) == tree(toy_store)


def test_parts_are_added_to_a_store_that_has_other_groups(place: StorePath, toy_store: Path) -> None:
    generate([OTHER], place, shard_size=4)
    make_parts(place, 7)  # more than there are shards
    assert Store(place).groups == ["other/train"]
    assert verify(place).problems == []
    merge(place)
    generate([OTHER], toy_store, shard_size=4)
    assert files(place) == tree(toy_store)


def test_merge_names_what_is_missing_and_changes_nothing(place: StorePath, toy_store: Path) -> None:
    make_parts(place, 5, without=(2, 4))
    before = files(place)
    with pytest.raises(DamagedStoreError, match=r"cannot be merged yet: missing of 5 parts: 2, 4\. Run these parts"):
        merge(place)
    with pytest.raises(UsageError, match="holds parts of a store; put them together with: s2rm-data merge"):
        Store(place)
    assert files(place) == before
    make_parts(place, 5, without=(1, 3, 5))
    merge(place)
    assert files(place) == tree(toy_store)


class Killed(BaseException):
    """Stands for a kill: nothing catches it or cleans up after it."""


@dataclass(frozen=True)
class Dying(ToySplit):
    def produce(self, start: int, stop: int) -> dict[str, np.ndarray]:
        if start >= 8:
            raise Killed
        return super().produce(start, stop)


def test_a_part_that_was_killed_is_named_and_resumed(tmp_path: Path, toy_store: Path) -> None:
    path = tmp_path / "parts.zarr"
    with pytest.raises(Killed):
        generate_part([Dying(), SPLITS[1]], path, Part(1, 1), shard_size=4)
    with pytest.raises(DamagedStoreError, match=r"part 1/1 has not made \d+ of its objects yet \(toy/train/alive/c\.2"):
        merge(path)
    outcome = generate_part(SPLITS, path, Part(1, 1), shard_size=4)
    assert (outcome.made, outcome.found) == (7, 8)
    merge(path)
    assert tree(path) == tree(toy_store)


def test_a_part_that_was_damaged_meanwhile_is_found_out(tmp_path: Path, toy_store: Path) -> None:
    path = tmp_path / "parts.zarr"
    make_parts(path, 2)
    shard = path / "toy/train/frames/c.0.0.0"
    sound = shard.read_bytes()
    shard.write_bytes(sound[:-1] + bytes([sound[-1] ^ 1]))
    with pytest.raises(DamagedStoreError, match=r"frames/c\.0\.0\.0: SHA-256 does not match"):
        merge(path, verify=True)
    shard.write_bytes(sound[:-1])
    with pytest.raises(DamagedStoreError, match=r"frames/c\.0\.0\.0: has \d+ bytes where its part made"):
        merge(path)
    assert generate_part(SPLITS, path, Part(1, 2), shard_size=4).made == 4
    merge(path)
    assert tree(path) == tree(toy_store)


class DyingPlace(FolderPlace):
    """A folder whose user is killed at its n-th deed."""

    left = 10**9

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name not in ("write_whole", "sync", "replace_root", "remove", "tidy"):
            return found

        def deed(*arguments: Any, **options: Any) -> Any:
            type(self).left -= 1
            if type(self).left < 0:
                raise Killed
            return found(*arguments, **options)

        return deed


def test_a_merge_that_is_killed_at_any_step_is_finished_by_the_next(
    tmp_path: Path, toy_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deeds, finished = 0, False
    while not finished:
        path = tmp_path / f"{deeds}.zarr"
        generate([OTHER], path, shard_size=4)
        make_parts(path, 2)
        monkeypatch.setattr(DyingPlace, "left", deeds)
        try:
            merge(DyingPlace(path))  # type: ignore[arg-type]
            finished = True
        except Killed:
            assert Store(path).groups in (["other/train"], ["other/train", "toy/train", "toy/val"])
            assert verify(path).problems == []
            if (path / "_parts/plan.json").exists():
                merge(path)
        if deeds == 0:
            generate([OTHER], toy_store, shard_size=4)
        assert tree(path) == tree(toy_store)
        deeds += 1
    assert deeds > 20  # each metadata document is written and synced, the root replaced, the parts removed


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda monkeypatch: {"shard_size": 8}, "chunk_shape"),
        (lambda monkeypatch: monkeypatch.setattr(parts.s2rm_data, "__version__", "9"), "package version: s2rm-data"),
        (
            lambda monkeypatch: monkeypatch.setattr(parts.zstandard, "__version__", "9"),
            r"zstandard version: .* there, 9",
        ),
    ],
)
def test_parts_of_unlike_settings_or_versions_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[..., Any], says: str
) -> None:
    path = tmp_path / "parts.zarr"
    make_parts(path, 2, without=(2,))
    before = tree(path)
    options = change(monkeypatch) or {}
    with pytest.raises(ConflictError, match=f"holds parts of another run, which wait to be merged: .*{says}"):
        make_parts(path, 2, without=(1,), **options)
    assert tree(path) == before


def test_parts_of_another_seed_or_number_are_refused(place: StorePath) -> None:
    make_parts(place, 2, without=(2,))
    with pytest.raises(ConflictError, match=r"settings\.seed: 0 there, 1 here\. Use the same command"):
        generate_part([ToySplit(seed=1), SPLITS[1]], place, Part(2, 2), shard_size=4)
    with pytest.raises(ConflictError, match="parts: 2 there, 3 here"):
        generate_part(SPLITS, place, Part(2, 3), shard_size=4)
    with pytest.raises(ConflictError, match="groups toy/train, toy/val there, toy/train here"):
        generate_part(SPLITS[:1], place, Part(2, 2), shard_size=4)
    with pytest.raises(ConflictError, match="holds parts that wait to be merged"):
        generate([OTHER], place)


def test_a_group_that_is_there_with_other_settings_is_refused(toy_store: Path) -> None:
    before = tree(toy_store)
    with pytest.raises(ConflictError, match="seed: 0 stored, 1 asked for"):
        generate_part([ToySplit(seed=1)], toy_store, Part(1, 2), shard_size=4)
    assert tree(toy_store) == before


@pytest.mark.parametrize(
    ("text", "says"),
    [("0/3", "no part 0 of 3"), ("4/3", "no part 4 of 3; parts count from 1 to 3"), ("1/0", "0 parts"), ("x", "3/20")],
)
def test_a_part_that_cannot_be_is_refused(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        Part.parse(text)


def test_nothing_to_merge_is_said(toy_store: Path) -> None:
    with pytest.raises(UsageError, match="has no parts to merge"):
        merge(toy_store)


def test_a_merge_beside_a_running_part_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "parts.zarr"
    make_parts(path, 1)
    with FolderPlace(path).writing(shared=True):
        generate_part(SPLITS, path, Part(1, 1), shard_size=4)  # parts do not mind each other
        with pytest.raises(ConflictError, match="another process is writing"):
            merge(path)
    merge(path)


@pytest.mark.parametrize("damage", ["flip", "plan", "name"])
def test_a_damaged_part_manifest_is_named(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "parts.zarr"
    make_parts(path, 2)
    victim = path / ("_parts/plan.json" if damage == "plan" else "_parts/00002-of-00002.json")
    if damage == "name":
        victim.rename(path / "_parts/00002-of-00003.json")
        with pytest.raises(ConflictError, match=r"00002-of-00003\.json: is not one of 2 parts"):
            merge(path)
        return
    victim.write_bytes(victim.read_bytes().replace(b'"bytes"', b'"bites"').replace(b'"toy"', b'"tog"'))
    with pytest.raises(DamagedStoreError, match=rf"{victim.name}: is damaged"):
        merge(path)


def test_a_plan_of_a_part_counts_what_the_part_makes(tmp_path: Path) -> None:
    plans = [plan_splits(SPLITS, tmp_path / "x.zarr", shard_size=4, part=Part(n, 2)) for n in (1, 2)]
    assert [{p.group: p.sequences for p in found} for found in plans] == [
        {"toy/train": 8},
        {"toy/train": 2, "toy/val": 5},
    ]


BALLS = ["bballs", "--balls", "3", "--train", "12", "--val", "4", "--test", "4", "--frames", "8", "--shard-size", "5"]
BATTLES = ["sc2", "--scenario", "2s3z", "--train", "4", "--val", "2", "--steps", "6", "--shard-size", "2"]


def test_processes_that_know_nothing_of_each_other_make_both_worlds(tmp_path: Path) -> None:
    for words in (BALLS, [*BATTLES, "--backend", "engine"]):
        started = []
        for number in (1, 2):
            part = ["-q", "-j", "1", "--part", f"{number}/2", "-o", "parts.zarr"]
            started.append(start_forked(*words, *part, cwd=tmp_path))
            if words is not BALLS:  # the first process compiles the engine, for both
                started[-1].wait(300)
        for process in started:
            _, err = finish(process)
            assert process.returncode == 0, err
        status, out, err = run("merge", "parts.zarr", "--verify", "--json", cwd=tmp_path)
        assert status == 0, err
        assert json.loads(out)["parts"] == 2
        generate(_sources(words), tmp_path / "one.zarr", shard_size=5 if words is BALLS else 2)
    assert tree(tmp_path / "parts.zarr") == tree(tmp_path / "one.zarr")
    status, _, err = run(*BALLS, "--part", "3/2", "-o", "parts.zarr", cwd=tmp_path)
    assert (status, "no part 3 of 2" in err) == (2, True)
    status, _, err = run(*BALLS, "--part", "1/2", "--overwrite", cwd=tmp_path)
    assert (status, "--overwrite does not go with --part" in err) == (2, True)


def _sources(words: list[str]) -> Any:
    from s2rm_data.generators.bballs.making.ball_source import plan as balls
    from s2rm_data.generators.sc2.making.battle_source import plan as battles

    if words[0] == "bballs":
        return balls(balls=(3,), train=12, val=4, test=4, frames=8)
    return battles(scenario=["2s3z"], train=4, val=2, steps=6)


@pytest.fixture
def rivals(place: StorePath) -> Iterator[list[subprocess.Popen[str]]]:
    make_parts(place, 2)
    code = f"import s2rm_data as s2; s2.merge({str(place)!r}, quiet=True)"
    yield [subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True) for _ in range(2)]


def test_of_two_merges_at_once_one_wins_and_the_other_says_so(
    place: StorePath, rivals: list[subprocess.Popen[str]], toy_store: Path
) -> None:
    said = [finish(rival)[1] for rival in rivals]
    assert any(rival.returncode == 0 for rival in rivals), said
    for rival, err in zip(rivals, said, strict=True):
        assert rival.returncode == 0 or any(
            words in err for words in ("no parts to merge", "is writing to", "is missing", "there is no store")
        ), err
    assert files(place) == tree(toy_store)
