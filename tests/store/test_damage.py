"""The store cannot lie: whatever happens to any byte of any object, both `verify` and a reader notice."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from small_stores import read_everything
from toy import ToySplit, tree

from s2rm_data.core.errors import ConflictError, DamagedStoreError
from s2rm_data.core.schema import ArraySpec
from s2rm_data.making.run import generate
from s2rm_data.store import Store, verify

OBJECTS = [
    "zarr.json",
    "toy/zarr.json",
    "toy/train/zarr.json",
    "toy/train/frames/zarr.json",
    "toy/train/frames/c.1.0.0",
    "toy/train/position/c.0.0.0",
    "toy/train/seed/c.2",
]


def assert_noticed(path: Path, name: str) -> None:
    problems = verify(path).problems
    assert any(name in problem for problem in problems), (name, problems)
    with pytest.raises(DamagedStoreError, match=name.rsplit("/", 1)[-1].replace(".", r"\.")):
        read_everything(path)


def test_an_intact_store_has_no_problems(toy_store: Path) -> None:
    report = verify(toy_store)
    assert report.problems == []
    assert set(report.digests) == {"toy/train", "toy/val"}
    read_everything(toy_store)


class OneArray(ToySplit):
    @property
    def arrays(self) -> tuple[ArraySpec, ...]:
        return super().arrays[:1]


@pytest.mark.costs(20)
@pytest.mark.parametrize("stride", [11, pytest.param(1, marks=pytest.mark.whole)])
def test_every_flipped_byte_of_every_object_is_noticed(tmp_path: Path, stride: int) -> None:
    """By a reader one by one; by `verify`, which names all that are damaged, in all objects at once but the root."""
    path = tmp_path / "toy.zarr"
    generate([OneArray(count=2)], path)
    objects = tree(path)
    for position in range(0, max(map(len, objects.values())), stride):
        damaged = {name: flipped(data, position) for name, data in objects.items() if position < len(data)}
        for name, data in damaged.items():
            (path / name).write_bytes(data)
            with pytest.raises(DamagedStoreError):
                read_everything(path)
            if name == "zarr.json":
                assert verify(path).problems[0].startswith(str(path / name)), position
            (path / name).write_bytes(objects[name])
        damaged.pop("zarr.json", None)
        if not damaged:
            continue
        for name, data in damaged.items():
            (path / name).write_bytes(data)
        problems = verify(path).problems
        for name in damaged:
            assert any(problem.startswith(str(path / name)) for problem in problems), (name, position)
            (path / name).write_bytes(objects[name])
    assert verify(path).problems == []


def flipped(data: bytes, position: int) -> bytes:
    changed = bytearray(data)
    changed[position] ^= 1 << position % 8
    return bytes(changed)


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.unlink(),
        lambda path: path.write_bytes(path.read_bytes()[:-1]),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(bytes(path.stat().st_size)),
        lambda path: path.write_bytes(path.read_bytes() + b"\n"),
    ],
    ids=["deleted", "truncated", "emptied", "zeroed", "lengthened"],
)
def test_a_damaged_object_is_named(toy_store: Path, damage: Callable[[Path], object]) -> None:
    for name in OBJECTS:
        sound = (toy_store / name).read_bytes()
        damage(toy_store / name)
        assert_noticed(toy_store, name)
        (toy_store / name).write_bytes(sound)


def test_swapped_shards_of_equal_size_are_noticed(toy_store: Path) -> None:
    first, second = toy_store / "toy/train/seed/c.0", toy_store / "toy/train/seed/c.1"
    one, other = first.read_bytes(), second.read_bytes()
    first.write_bytes(other)
    second.write_bytes(one)
    assert_noticed(toy_store, "toy/train/seed/c.0")


def test_a_folder_in_the_place_of_a_shard_is_noticed(toy_store: Path) -> None:
    (toy_store / "toy/train/seed/c.0").unlink()
    (toy_store / "toy/train/seed/c.0").mkdir()
    assert_noticed(toy_store, "toy/train/seed/c.0")


def test_a_deleted_group_is_noticed(toy_store: Path) -> None:
    shutil.rmtree(toy_store / "toy/val")
    assert_noticed(toy_store, "toy/val/zarr.json")


def test_a_shard_that_nobody_committed_is_noticed(toy_store: Path) -> None:
    shutil.copy(toy_store / "toy/train/seed/c.0", toy_store / "toy/train/seed/c.3")
    assert verify(toy_store).problems == [f"{toy_store}/toy/train/seed/c.3: is not in the manifest"]


def test_damage_in_one_group_leaves_the_others_readable(toy_store: Path) -> None:
    (toy_store / "toy/train/frames/c.0.0.0").unlink()
    Store(toy_store)["toy/val"]["frames"][:]
    Store(toy_store)["toy/train"]["frames"][5]


def test_damage_after_the_first_read_is_noticed_at_the_next(toy_store: Path) -> None:
    frames = Store(toy_store)["toy/train"]["frames"]
    frames[0]
    path = toy_store / "toy/train/frames/c.0.0.0"
    path.write_bytes(bytes(path.stat().st_size))
    with pytest.raises(DamagedStoreError, match=r"c\.0\.0\.0: SHA-256 does not match"):
        frames[0]


def test_shards_swapped_after_the_first_read_are_noticed_at_the_next(toy_store: Path) -> None:
    seeds = Store(toy_store)["toy/train"]["seed"]
    seeds[:]
    first, second = toy_store / "toy/train/seed/c.0", toy_store / "toy/train/seed/c.1"
    first.rename(toy_store / "aside")
    second.rename(first)
    (toy_store / "aside").rename(second)
    with pytest.raises(DamagedStoreError, match=r"seed/c\.0: "):
        seeds[0]


def test_a_store_of_a_later_format_is_refused(toy_store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("s2rm_data.store.manifest.FORMAT_VERSION", 2)
    with pytest.raises(ConflictError, match="format version 1, this program reads version 2"):
        Store(toy_store)


def test_a_later_format_with_another_seal_is_refused_by_its_version(toy_store: Path) -> None:
    meta = toy_store / "zarr.json"
    meta.write_text(meta.read_text().replace('"format_version": 1', '"format_version": 7'))
    with pytest.raises(DamagedStoreError, match="a later program: it says format version 7"):
        Store(toy_store)
