"""Groups removed and renamed: one commit decides, and a kill at any moment loses nothing."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from toy import ToySplit, tree

from s2rm_data.core.errors import ConflictError, DamagedStoreError, UsageError
from s2rm_data.making.run import generate
from s2rm_data.store import Store, StoreWriter, verify
from s2rm_data.store.documents import json_bytes
from s2rm_data.store.places.folder import FolderPlace
from s2rm_data.store.regrouping import remove_group, rename_group


def test_a_removed_group_leaves_no_trace(toy_store: Path, tmp_path: Path) -> None:
    generate([ToySplit(group="toy/val", count=5)], tmp_path / "other.zarr", shard_size=4)
    assert remove_group(toy_store, "toy/train") > 1000
    assert tree(toy_store) == tree(tmp_path / "other.zarr")
    remove_group(toy_store, "toy/val")
    assert list(tree(toy_store)) == ["zarr.json"]
    assert Store(toy_store).groups == []
    assert not (toy_store / "toy").exists()


def test_what_was_removed_can_be_made_again(toy_store: Path, toy: ToySplit) -> None:
    before = tree(toy_store)
    remove_group(toy_store, "toy/train")
    generate([toy], toy_store, shard_size=4)
    assert tree(toy_store) == before


def test_a_renamed_group_has_the_same_bytes_and_can_be_renamed_back(toy_store: Path) -> None:
    before, digest = tree(toy_store), Store(toy_store)["toy/train"].content_digest()
    frames = Store(toy_store)["toy/train"]["frames"][:]
    rename_group(toy_store, "toy/train", "toy/old/train")
    assert Store(toy_store).groups == ["toy/old/train", "toy/val"]
    assert verify(toy_store).problems == []
    assert Store(toy_store)["toy/old/train"].content_digest() == digest
    np.testing.assert_array_equal(Store(toy_store)["toy/old/train"]["frames"][:], frames)
    assert not (toy_store / "toy/train").exists()
    rename_group(toy_store, "toy/old/train", "toy/train")
    assert tree(toy_store) == before


def test_other_readers_see_the_new_name(toy_store: Path) -> None:
    zarr = pytest.importorskip("zarr")
    rename_group(toy_store, "toy/train", "toy/first")
    assert sorted(zarr.open_group(toy_store, mode="r")["toy"].group_keys()) == ["first", "val"]


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("toy/val", ConflictError, "has a group toy/val already"),
        ("toy/val/x", ConflictError, "cannot hold each other"),
        ("other/train", UsageError, "with the world, as in toy/train"),
        ("dev", UsageError, "with the world, as in toy/dev"),
        ("toy", UsageError, "toy is not a name in toy"),
        ("toy/../x", UsageError, "cannot be the name of a group"),
    ],
)
def test_a_name_that_is_not_possible_is_refused(toy_store: Path, name: str, error: type, words: str) -> None:
    before = tree(toy_store)
    with pytest.raises(error, match=words):
        rename_group(toy_store, "toy/train", name)
    assert tree(toy_store) == before


def test_a_damaged_group_is_not_renamed(toy_store: Path) -> None:
    shard = toy_store / "toy/train/frames/c.0.0.0"
    shard.write_bytes(shard.read_bytes()[:-1])
    with pytest.raises(DamagedStoreError, match="frames/c"):
        rename_group(toy_store, "toy/train", "toy/first")
    assert Store(toy_store).groups == ["toy/train", "toy/val"]


def test_unknown_groups_and_missing_stores_are_refused(toy_store: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"toy in .* is not one group but 2"):
        remove_group(toy_store, "toy")
    with pytest.raises(UsageError, match="no group 'toy/trian'; did you mean 'toy/train'"):
        rename_group(toy_store, "toy/trian", "toy/x")
    with pytest.raises(UsageError, match="there is no store"):
        remove_group(tmp_path / "none.zarr", "toy/train")
    assert not (tmp_path / "none.zarr").exists()


def test_what_was_never_a_group_is_not_removed(toy_store: Path) -> None:
    for name in ("analysis/mine", "toy/mine"):
        folder = toy_store / name
        folder.mkdir(parents=True)
        (folder / "thesis.txt").write_text("precious")
        (folder / "zarr.json").write_text("precious")
        before = tree(toy_store)
        with pytest.raises(UsageError, match="has no group"):
            remove_group(toy_store, name)
        assert tree(toy_store) == before


def test_a_rename_writes_over_nothing(toy_store: Path) -> None:
    (toy_store / "toy/first").mkdir()
    (toy_store / "toy/first/thesis.txt").write_text("precious")
    rename_group(toy_store, "toy/train", "toy/first")
    assert (toy_store / "toy/first/thesis.txt").read_text() == "precious"
    (toy_store / "toy/second/frames").mkdir(parents=True)
    (toy_store / "toy/second/frames/zarr.json").write_text("precious")
    before = tree(toy_store)
    with pytest.raises(ConflictError, match="is there, but it is not in the manifest"):
        rename_group(toy_store, "toy/first", "toy/second")
    assert tree(toy_store) == before


@pytest.mark.parametrize("name", ["../victim/zarr.json", "/etc/passwd", "toy/notes.txt", "toy/../../zarr.json", 7])
def test_a_sealed_intent_removes_nothing_but_objects_of_the_store(toy_store: Path, name: object) -> None:
    document = {"format": "s2rm-data intent 1", "names": [name], "replace": {}}
    seal = hashlib.sha256(json_bytes(document)).hexdigest()
    (toy_store / "_intent.json").write_bytes(json_bytes({**document, "sha256": seal}))
    before = tree(toy_store)
    with pytest.raises(DamagedStoreError, match="names what is no object of a store"):
        remove_group(toy_store, "toy/train")
    assert tree(toy_store) == before


class Killed(BaseException):
    """In place of SIGKILL."""


WORKS: dict[str, Callable[[Path], object]] = {
    "remove": lambda path: remove_group(path, "toy/train"),
    "rename": lambda path: rename_group(path, "toy/train", "toy/first"),
    "overwrite": lambda path: generate([ToySplit(seed=1, count=13)], path, shard_size=4, overwrite=True),
}


@pytest.mark.parametrize("work", WORKS.values(), ids=WORKS)
def test_a_kill_at_any_write_leaves_a_store_that_the_same_command_finishes(
    toy_store: Path, tmp_path: Path, work: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = tmp_path / "whole.zarr"
    shutil.copytree(toy_store, whole)
    work(whole)
    for moment in range(1000):
        path = tmp_path / f"{moment}.zarr"
        shutil.copytree(toy_store, path)
        mine = [path / "toy/train/labels.csv", path / "toy/first/thesis.txt", path / "toy/notes.partial"]
        for file in mine:
            file.parent.mkdir(exist_ok=True)
            file.write_text("precious")
        if not _killed_at(moment, lambda path=path: work(path), monkeypatch):  # type: ignore[misc]
            break
        assert set(Store(path).groups) in ({"toy/train", "toy/val"}, {"toy/val"}, {"toy/first", "toy/val"})
        for group in Store(path).groups:
            try:
                assert Store(path)[group]["frames"][:].size, moment
            except ConflictError as error:
                assert "toy/train is just being replaced" in str(error)
        if _without(path, mine) != tree(whole):
            work(path)
        assert _without(path, mine) == tree(whole), moment
        assert [file.read_text() for file in mine] == ["precious"] * 3
    assert moment > 2


def _without(path: Path, mine: Sequence[Path]) -> dict[str, bytes]:
    return {name: data for name, data in tree(path).items() if path / name not in mine}


def _killed_at(moment: int, work: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the work was ended before its write or removal number `moment`."""
    left = moment

    def counted(method: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object, **options: object) -> object:
            nonlocal left
            if left == 0:
                raise Killed
            left -= 1
            return method(*arguments, **options)

        return call

    with monkeypatch.context() as patch:
        for name in ("write_whole", "replace_root", "move", "remove"):
            patch.setattr(FolderPlace, name, counted(getattr(FolderPlace, name)))
        try:
            work()
        except Killed:
            return True
    return False


def test_a_kill_after_dropping_the_only_group_leaves_a_store(tmp_path: Path) -> None:
    """As overwriting it does first: documents above it that nobody needs any more are dropped, too."""
    path = tmp_path / "one.zarr"
    generate([ToySplit()], path)
    with StoreWriter(path) as writer:
        writer.manifest.drop_group("toy/train")
        writer.manifest.save(writer.place)
    assert Store(path).groups == []


def test_verify_beside_a_writer_tells_what_is_being_made_and_finds_no_problem(toy_store: Path, toy: ToySplit) -> None:
    with StoreWriter(toy_store) as writer:
        shard = next((toy_store / "toy/train/frames").glob("c.*"))
        writer.place.write_whole("toy/train/frames/c.9.0.0", [shard.read_bytes()])  # written, and not yet committed
        report = verify(toy_store)
        assert report.problems == []
    assert "c.9.0.0: is not in the manifest" in verify(toy_store).problems[0]
