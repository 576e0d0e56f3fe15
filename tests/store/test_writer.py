from pathlib import Path

import numpy as np
import pytest
from toy import ToySplit, tree

from s2rm_data.errors import ConflictError, DamagedStoreError, UsageError
from s2rm_data.making import generate
from s2rm_data.store import StoreWriter, verify


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


def test_an_unfinished_overwrite_is_gone_on_with(toy_store: Path, toy: ToySplit) -> None:
    before = tree(toy_store)
    with pytest.raises(ValueError):
        generate([Unfinished()], toy_store, shard_size=4, overwrite=True)
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
    (toy_store / "toy/train/frames/c.9.0.0.partial").write_bytes(b"half")
    (toy_store / "zarr.json.partial").write_bytes(b"half")
    generate([toy], toy_store, shard_size=4)
    assert tree(toy_store) == before


def test_the_order_in_which_groups_are_added_does_not_matter(tmp_path: Path) -> None:
    one, two = ToySplit(), ToySplit(group="other/val", count=3)
    generate([one], tmp_path / "a.zarr")
    generate([two], tmp_path / "a.zarr")
    generate([two, one], tmp_path / "b.zarr")
    assert tree(tmp_path / "a.zarr") == tree(tmp_path / "b.zarr")
