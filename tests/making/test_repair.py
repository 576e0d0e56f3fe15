"""Repair makes again exactly what is missing or damaged, and refuses what would be something else."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hostile_stores import change_group, replace_object
from toy import tree

from s2rm_data.core.errors import ConflictError, DamagedStoreError, UsageError
from s2rm_data.generators.bballs.making.ball_source import plan as plan_balls
from s2rm_data.generators.sc2.making.battle_source import plan as plan_battles
from s2rm_data.making.repair import repair
from s2rm_data.making.run import generate
from s2rm_data.store import StoreWriter, verify

OBJECTS = (
    "bballs/zarr.json",
    "bballs/train/zarr.json",
    "bballs/train/frames/zarr.json",
    "bballs/train/frames/c.1.0.0.0",
    "sc2/3m/train/hecs/c.0.0.0.0.0.0",
)
BALLS = {"balls": [2], "train": 17, "val": 3, "test": 0, "frames": 5}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("repair") / "data.zarr"
    generate(plan_balls(**BALLS), path, shard_size=10)
    generate(plan_battles(scenario=["3m"], train=3, val=0, steps=10), path, shard_size=2)
    return path


@pytest.fixture
def store(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "data.zarr")
    return tmp_path / "data.zarr"


def test_a_sound_group_is_left_alone(store: Path) -> None:
    stamps = {p: p.stat().st_mtime_ns for p in store.rglob("*") if p.is_file()}
    assert repair(store, "bballs/train").objects == ()
    assert {p: p.stat().st_mtime_ns for p in store.rglob("*") if p.is_file()} == stamps


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.unlink(),
        lambda path: path.write_bytes(bytes(path.stat().st_size)),
        lambda path: path.write_bytes(path.read_bytes()[:-1]),
        lambda path: (path.unlink(), path.mkdir()),
        lambda path: (path.unlink(), path.symlink_to("/dev/zero")),
        lambda path: (path.unlink(), os.mkfifo(path)),
    ],
    ids=["deleted", "zeroed", "truncated", "a folder", "a link", "a pipe"],
)
def test_a_damaged_object_is_made_again_and_no_other(store: Path, damage: Callable[[Path], object]) -> None:
    before = tree(store)
    for name in OBJECTS:
        stamps = {p: p.stat().st_mtime_ns for p in store.rglob("*") if p.is_file() and p != store / name}
        damage(store / name)
        group = "sc2/3m/train" if name.startswith("sc2") else "bballs/train"
        assert repair(store, group).objects == (name,), name
        assert tree(store) == before, name
        assert {p: p.stat().st_mtime_ns for p in stamps} == stamps, name


def test_a_whole_deleted_group_is_made_again(store: Path) -> None:
    before = tree(store)
    shutil.rmtree(store / "sc2")
    repair(store, "sc2/3m/train")
    assert tree(store) == before
    assert verify(store).problems == []


def test_what_is_not_as_promised_is_not_written(store: Path) -> None:
    name = "bballs/train/seed/c.0"
    replace_object(store, name, b"something else that was committed")
    (store / name).unlink()
    with pytest.raises(ConflictError, match=r"seed/c\.0: cannot be repaired, this program, or its zstd library"):
        repair(store, "bballs/train")
    assert not (store / name).exists()


def test_a_group_of_another_generator_version_is_refused(store: Path) -> None:
    change_group(store, "bballs/train", lambda d: d["attributes"]["settings"].__setitem__("generator_version", 99))
    (store / "bballs/train/seed/c.0").unlink()
    with pytest.raises(ConflictError, match=r"generator version 99, this program's is 1"):
        repair(store, "bballs/train")


@pytest.mark.parametrize(
    "settings",
    [
        {"generator": "../x"},
        {"generator": "os"},
        {"generator": None},
        {"seed": "x"},
        {"config": []},
        {"config": {"balls": "x"}},
        {"split": 3},
    ],
    ids=str,
)
def test_settings_that_make_no_sense_are_refused(store: Path, settings: dict[str, object]) -> None:
    change_group(store, "bballs/train", lambda d: d["attributes"]["settings"].update(settings))
    (store / "bballs/train/seed/c.0").unlink()
    with pytest.raises((UsageError, DamagedStoreError, ConflictError)):
        repair(store, "bballs/train")


def test_battles_of_the_real_game_are_not_made_again_by_the_engine(store: Path) -> None:
    change_group(store, "sc2/3m/train", lambda d: d["attributes"]["settings"].__setitem__("backend", "starcraft2"))
    (store / "sc2/3m/train/seed/c.0").unlink()
    with pytest.raises(UsageError, match=r"cannot be made again exactly.*starcraft2"):
        repair(store, "sc2/3m/train")


def test_a_group_that_nobody_can_make_again_is_named(toy_store: Path) -> None:
    (toy_store / "toy/train/seed/c.0").unlink()
    with pytest.raises(UsageError, match="toy/train was made by 'toy', a world that is not installed"):
        repair(toy_store, "toy/train")
    with pytest.raises(UsageError, match=r"toy in .* is not one group but 2: toy/train, toy/val; name one"):
        repair(toy_store, "toy")
    with pytest.raises(UsageError, match=r"no group 'toy/trian'; did you mean 'toy/train'"):
        repair(toy_store, "toy/trian")


def test_metadata_are_restored_also_where_the_data_cannot_be_made_again(toy_store: Path) -> None:
    before = tree(toy_store)
    (toy_store / "toy/train/zarr.json").unlink()
    (toy_store / "toy/train/seed/zarr.json").write_text("{}")
    assert len(repair(toy_store, "toy/train").objects) == 2
    assert tree(toy_store) == before


def test_two_repairs_at_once_are_refused(store: Path) -> None:
    with StoreWriter(store), pytest.raises(ConflictError, match="another process is writing"):
        repair(store, "bballs/train")
