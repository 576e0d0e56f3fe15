"""A folder that merely holds a store is not one, and a store that has lost its root is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from toy import ToySplit, tree

from s2rm_data.core.errors import ConflictError, DamagedStoreError, DiskError, UnreadableError, UsageError
from s2rm_data.making.run import generate
from s2rm_data.store import Store, verify
from s2rm_data.store.places.folder import FolderPlace


@pytest.fixture
def folder(toy_store: Path) -> Path:
    """A folder with a store and much else in it."""
    for number in range(3):
        (toy_store.parent / f"notes-{number}" / "deep").mkdir(parents=True)
    return toy_store.parent


def test_a_folder_that_holds_a_store_is_not_a_store(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    with pytest.raises(UsageError, match=r"\. is not an s2rm-data store; toy\.zarr, which is in it, is one"):
        Store(".")


def test_nothing_is_written_into_a_folder_that_holds_a_store(
    folder: Path, toy: ToySplit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    before = tree(folder)
    with pytest.raises(ConflictError, match=r"toy\.zarr, which is in it, is one; choose another --out"):
        generate([toy], Path())
    assert tree(folder) == before


def test_a_folder_is_not_searched_below_what_is_directly_in_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    real = os.scandir

    def counted(path: str | os.PathLike[str]) -> object:
        looked.append(str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", counted)
    monkeypatch.setattr(os, "walk", lambda *_: pytest.fail("walked the whole tree"))
    with pytest.raises(UsageError, match="is not an s2rm-data store"):
        Store(folder)
    assert set(looked) == {str(folder)}


def test_other_folders_with_zarr_groups_in_them_are_not_damaged_stores(tmp_path: Path) -> None:
    import zarr

    zarr.create_group(str(tmp_path / "all" / "a.zarr")).create_array("x", shape=(2,), dtype="u1")
    with pytest.raises(UsageError, match="is not an s2rm-data store"):
        Store(tmp_path / "all")


def test_a_store_without_its_root_is_damaged(toy_store: Path) -> None:
    (toy_store / "zarr.json").unlink()
    for open_it in (Store, lambda path: generate([ToySplit()], path)):
        with pytest.raises(DamagedStoreError, match=r"zarr\.json: is missing, and the manifest with it"):
            open_it(toy_store)


def test_a_cut_flipped_or_foreign_root_is_damage_of_the_store(toy_store: Path) -> None:
    meta = toy_store / "zarr.json"
    sound = meta.read_bytes()
    damaged = [sound[:length] for length in range(0, len(sound), 37)]
    for position in range(0, len(sound), 11):
        flipped = bytearray(sound)
        flipped[position] ^= 1 << position % 8
        damaged.append(bytes(flipped))
    damaged += [b'{"zarr_format": 3, "node_type": "group", "attributes": {}}', b"\0" * len(sound)]
    for data in damaged:
        meta.write_bytes(data)
        with pytest.raises(DamagedStoreError, match=r"zarr\.json"):
            Store(toy_store)


def test_verify_takes_a_path_as_text(toy_store: Path) -> None:
    assert verify(str(toy_store)).problems == []


def test_a_folder_that_cannot_be_listed_is_an_error_of_the_disk(
    toy_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not a mistake of the user, and not an empty folder, which would leave things behind."""

    def fails(path: object) -> object:
        raise OSError(5, "Input/output error", str(path))

    place = FolderPlace(toy_store)
    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", fails)
        for look in (lambda: place.children(), lambda: list(place.names())):
            with pytest.raises(DiskError, match="cannot be read: Input/output error"):
                look()


def test_a_root_that_cannot_be_read_now_is_not_called_damaged(toy_store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(descriptor: int, size: int) -> bytes:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch, pytest.raises(UnreadableError, match="Input/output error") as refused:
        patch.setattr(os, "read", fails)
        Store(toy_store)
    assert refused.value.exit_status == 6


def test_what_lies_inside_a_store_is_not_a_damaged_one(toy_store: Path) -> None:
    before = tree(toy_store)
    group = next(iter(Store(toy_store).groups))
    world = group.partition("/")[0]
    for inside, what in ((world, "a world"), (group, "a group"), (f"{group}/frames", "a part")):
        with pytest.raises(UsageError, match=f"is {what} inside the store {toy_store}; give {toy_store}$") as refused:
            Store(toy_store / inside)
        assert refused.value.__suppress_context__, "its traceback begins with the alarm that it corrects"
    with pytest.raises(UsageError, match=f"give {toy_store}$"):
        generate([ToySplit()], toy_store / world)
    assert tree(toy_store) == before
