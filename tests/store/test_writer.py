import json
import os
from pathlib import Path

import numpy as np
import pytest
from toy import ToySplit, tree

from s2rm_data.core.errors import ConflictError, DamagedStoreError, DiskError, UnreadableError, UsageError
from s2rm_data.core.write import PARTIAL
from s2rm_data.making.run import generate
from s2rm_data.store import Store, StoreWriter, verify
from s2rm_data.store.place import Version
from s2rm_data.store.places.folder import FolderPlace
from s2rm_data.store.regrouping import remove_group


def test_a_second_writer_is_told_that_there_is_one(toy_store: Path, toy: ToySplit) -> None:
    with StoreWriter(toy_store), pytest.raises(ConflictError, match="another process is writing"):
        generate([toy], toy_store, shard_size=4)
    generate([toy], toy_store, shard_size=4)


def test_other_settings_are_refused_and_nothing_is_touched(toy_store: Path) -> None:
    before = tree(toy_store)
    for other, says in [
        (ToySplit(seed=1), "seed: 0 stored, 1 asked for"),
        (ToySplit(count=11), "sequences: 10 stored"),
    ]:
        with pytest.raises(ConflictError, match=says):
            generate([ToySplit(group="toy/new"), other], toy_store, shard_size=4)
    with pytest.raises(ConflictError, match="shard size: 4 stored, 8 asked for"):
        generate([ToySplit()], toy_store, shard_size=8)
    assert tree(toy_store) == before


def test_overwrite_replaces_the_split_and_no_other(toy_store: Path, tmp_path: Path) -> None:
    before = tree(toy_store)
    generate([ToySplit(seed=1, count=3)], toy_store, overwrite=True)
    after = tree(toy_store)
    assert {k: v for k, v in after.items() if "/val/" in k} == {k: v for k, v in before.items() if "/val/" in k}
    assert verify(toy_store).problems == []
    generate([ToySplit(seed=1, count=3)], tmp_path / "fresh.zarr")
    generate([ToySplit(group="toy/val", count=5)], tmp_path / "fresh.zarr", shard_size=4)
    assert tree(tmp_path / "fresh.zarr") == after


def test_overwrite_mends_a_damaged_split(toy_store: Path, toy: ToySplit) -> None:
    before = tree(toy_store)
    (toy_store / "toy/train/frames/c.0.0.0").unlink()
    (toy_store / "toy/train/zarr.json").write_text("{}")
    generate([toy], toy_store, shard_size=4, overwrite=True)
    assert tree(toy_store) == before


def test_a_missing_shard_is_noticed_when_the_command_is_run_again(toy_store: Path, toy: ToySplit) -> None:
    (toy_store / "toy/train/frames/c.0.0.0").unlink()
    with pytest.raises(
        DamagedStoreError, match=r"frames/c\.0\.0\.0: is missing; `s2rm-data repair .* toy/train` repairs it"
    ):
        generate([toy], toy_store, shard_size=4)


def test_a_zeroed_shard_is_noticed_when_the_command_is_run_again(toy_store: Path, toy: ToySplit) -> None:
    path = toy_store / "toy/train/frames/c.0.0.0"
    path.write_bytes(bytes(path.stat().st_size))
    with pytest.raises(DamagedStoreError, match=r"frames/c\.0\.0\.0: SHA-256 does not match.*--overwrite"):
        generate([toy], toy_store, shard_size=4)


def test_overwrite_mends_the_groups_above(toy_store: Path, toy: ToySplit) -> None:
    before = tree(toy_store)
    (toy_store / "toy/zarr.json").unlink()
    with pytest.raises(DamagedStoreError, match=r"toy/zarr\.json: is missing"):
        generate([toy], toy_store, shard_size=4)
    generate([toy], toy_store, shard_size=4, overwrite=True)
    assert tree(toy_store) == before


class Unfinished(ToySplit):
    def produce(self, start: int, stop: int) -> dict[str, np.ndarray]:
        if start >= 4:
            raise ValueError
        return super().produce(start, stop)


def test_an_unfinished_overwrite_leaves_what_it_replaces_and_is_resumed(toy_store: Path, toy: ToySplit) -> None:
    before, frames = tree(toy_store), Store(toy_store)["toy/train"]["frames"][:]
    with pytest.raises(ValueError):
        generate([Unfinished()], toy_store, shard_size=4, overwrite=True)
    store = Store(toy_store)
    assert store.groups == ["toy/train", "toy/val"] and store.unfinished == {"toy/train.new": (1, 3)}
    np.testing.assert_array_equal(store["toy/train"]["frames"][:], frames)
    outcome = generate([toy], toy_store, shard_size=4, overwrite=True)
    assert (outcome.made, outcome.found) == (6, 4)
    assert tree(toy_store) == before


def test_a_damaged_unfinished_group_is_no_obstacle_to_others(toy_store: Path, toy: ToySplit) -> None:
    before = tree(toy_store)
    with pytest.raises(ValueError):
        generate([Unfinished()], toy_store, shard_size=4, overwrite=True)
    (toy_store / "toy/train/seed/zarr.json").unlink()
    generate([ToySplit(group="other/val")], toy_store)
    with pytest.raises(DamagedStoreError, match=r"seed/zarr\.json: is missing"):
        generate([toy], toy_store, shard_size=4)
    generate([toy], toy_store, shard_size=4, overwrite=True)
    assert {k: v for k, v in tree(toy_store).items() if k.startswith("toy")} == {
        k: v for k, v in before.items() if k.startswith("toy")
    }


def test_an_unfinished_overwrite_with_other_settings_is_begun_again(toy_store: Path, toy: ToySplit) -> None:
    before = tree(toy_store)
    with pytest.raises(ValueError):
        generate([Unfinished(seed=1, count=9)], toy_store, shard_size=4, overwrite=True)
    assert generate([toy], toy_store, shard_size=4, overwrite=True).made == 10
    assert tree(toy_store) == before


def test_a_reader_of_what_was_replaced_is_told_to_open_the_store_again(toy_store: Path) -> None:
    frames = Store(toy_store)["toy/train"]["frames"]
    generate([ToySplit(seed=1)], toy_store, shard_size=4, overwrite=True)
    with pytest.raises(ConflictError, match="has been replaced since this store was opened; open it again"):
        frames[:]


def test_space_for_both_is_looked_for_before_a_split_is_replaced(
    toy_store: Path, toy: ToySplit, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tree(toy_store)
    monkeypatch.setattr(FolderPlace, "free_nbytes", lambda place: 500)
    with pytest.raises(DiskError, match=r"so both have to fit.*and 500 are free"):
        generate([toy], toy_store, shard_size=4, overwrite=True)
    assert tree(toy_store) == before


def test_a_read_that_fails_once_drops_nothing(toy_store: Path, toy: ToySplit, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unfinished split is continued with --overwrite, too; that it cannot be read now is no reason to drop it."""
    remove_group(toy_store, "toy/train")
    with pytest.raises(ValueError):
        generate([Unfinished()], toy_store, shard_size=4)
    before, read = tree(toy_store), os.read
    left = 0

    def fails_once(descriptor: int, size: int) -> bytes:
        nonlocal left
        left -= 1
        if left == 0 and "toy/train" in str(Path(f"/proc/self/fd/{descriptor}").readlink()):
            raise OSError(5, "Input/output error")
        return read(descriptor, size)

    refused = 0
    with monkeypatch.context() as patch:
        patch.setattr(os, "read", fails_once)
        patch.setattr(os, "pread", lambda descriptor, size, offset: fails_once(descriptor, size))
        for moment in range(1, 40):
            left = moment
            try:
                generate([Unfinished()], toy_store, shard_size=4, overwrite=True)
            except UnreadableError:
                refused += 1
            except ValueError:
                pass
            assert tree(toy_store) == before, moment
    assert refused > 3


def test_what_is_not_of_the_store_is_left_alone(tmp_path: Path, toy: ToySplit) -> None:
    path = tmp_path / "toy.zarr"
    generate([ToySplit(group="toy/val", count=5)], path)
    mine = [path / "toy/train/labels.csv", path / "notes.partial", path / "toy/val/frames/mine.partial"]
    for file in mine:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("precious")
    generate([toy], path, shard_size=4)
    generate([toy], path, shard_size=8, overwrite=True)
    assert [file.read_text() for file in mine] == ["precious"] * 3
    assert verify(path).problems == []


@pytest.mark.parametrize("name", ["zarr.json", "seed/zarr.json", "frames/c.2.0.0"])
def test_data_of_somebody_else_in_the_place_of_a_group_are_refused(tmp_path: Path, toy: ToySplit, name: str) -> None:
    path = tmp_path / "toy.zarr"
    generate([ToySplit(group="toy/val", count=5)], path)
    file = path / "toy/train" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("precious")
    before = tree(path)
    with pytest.raises(ConflictError, match="is there, but it is not in the manifest"):
        generate([toy], path, shard_size=4)
    assert tree(path) == before


@pytest.mark.parametrize("group", ["toy", "toy/train/more"])
def test_a_group_cannot_hold_another(toy_store: Path, group: str) -> None:
    before = tree(toy_store)
    for overwrite in (False, True):
        with pytest.raises(ConflictError, match="cannot hold each other"):
            generate([ToySplit(group=group)], toy_store, overwrite=overwrite)
    assert tree(toy_store) == before


@pytest.mark.parametrize("group", ["../toy", "toy//train", "", "toy/.hidden"])
def test_a_group_needs_a_proper_name(tmp_path: Path, group: str) -> None:
    with pytest.raises(UsageError, match="cannot be the name of a group"):
        generate([ToySplit(group=group)], tmp_path / "toy.zarr")


def test_places_that_cannot_become_a_store_are_refused(tmp_path: Path, toy: ToySplit) -> None:
    with pytest.raises(UsageError, match="does not exist; create it first"):
        generate([toy], tmp_path / "missing" / "data.zarr")
    (tmp_path / "file").write_text("precious")
    with pytest.raises(ConflictError, match="is a file"):
        generate([toy], tmp_path / "file")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "notes.partial").write_text("precious")
    with pytest.raises(ConflictError, match="holds something else"):
        generate([toy], tmp_path / "folder", overwrite=True)
    assert (tmp_path / "folder" / "notes.partial").read_text() == "precious"


def test_a_zarr_of_something_else_is_refused_even_with_overwrite(tmp_path: Path, toy: ToySplit) -> None:
    import zarr

    zarr.create_group(str(tmp_path / "foreign.zarr")).create_array("x", shape=(2,), dtype="u1")
    before = tree(tmp_path / "foreign.zarr")
    with pytest.raises(ConflictError, match="a Zarr of something else"):
        generate([toy], tmp_path / "foreign.zarr", overwrite=True)
    assert tree(tmp_path / "foreign.zarr") == before


def test_a_store_without_its_root_is_damaged_not_empty(toy_store: Path, toy: ToySplit) -> None:
    (toy_store / "zarr.json").unlink()
    with pytest.raises(DamagedStoreError, match=r"zarr\.json: is missing, and the manifest with it"):
        generate([toy], toy_store, shard_size=4)


def test_what_a_kill_left_behind_is_cleared_away(toy_store: Path, toy: ToySplit) -> None:
    before = tree(toy_store)
    (toy_store / "toy/train/frames/c.2.0.0.partial").write_bytes(b"half")
    (toy_store / "zarr.json.partial").write_bytes(b"half")
    generate([toy], toy_store, shard_size=4)
    assert tree(toy_store) == before


def test_what_the_manifest_names_is_on_the_disk_before_the_manifest(
    tmp_path: Path, toy: ToySplit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """First an object's bytes, then its name in the folder, then the manifest."""
    synced: list[str] = []
    sync, save = os.fsync, FolderPlace.replace_root

    def checked(place: FolderPlace, data: bytes, previous: Version) -> Version:
        for name in json.loads(data)["attributes"]["manifest"]["objects"]:
            path = tmp_path / "toy.zarr" / name
            bytes_at = synced.index(f"{path}{PARTIAL}")
            assert str(path.parent) in synced[bytes_at:], name
        return save(place, data, previous)

    monkeypatch.setattr(os, "fsync", lambda it: synced.append(str(Path(f"/proc/self/fd/{it}").readlink())) or sync(it))
    monkeypatch.setattr(FolderPlace, "replace_root", checked)
    generate([toy], tmp_path / "toy.zarr", shard_size=4)
    assert synced[-1] == str(tmp_path / "toy.zarr")  # and the manifest's own name


def test_the_order_in_which_groups_are_added_does_not_matter(tmp_path: Path) -> None:
    one, two = ToySplit(), ToySplit(group="other/val", count=3)
    generate([one], tmp_path / "a.zarr")
    generate([two], tmp_path / "a.zarr")
    generate([two, one], tmp_path / "b.zarr")
    assert tree(tmp_path / "a.zarr") == tree(tmp_path / "b.zarr")
