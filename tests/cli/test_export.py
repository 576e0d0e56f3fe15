"""`s2rm-data export` as a user meets it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import program
import pytest

from s2rm_data.store import Store


def run(*arguments: str, cwd: Path) -> tuple[int, str, str]:
    return program.run("export", *arguments, cwd=cwd)


def test_groups_are_exported_and_named(store: Store, tmp_path: Path) -> None:
    status, out, err = run(str(store.path), "bballs/test_1", "sc2/1s2z/val", "--json", cwd=tmp_path)
    assert status == 0, err
    assert set(json.loads(out)["made"]) == {"exports/bballs-test_1.npz", "exports/sc2-1s2z-val.npz"}
    assert np.load(tmp_path / "exports/bballs-test_1.npz")["frames"].shape == (4, 12, 48, 48)
    status, _, err = run(str(store.path), "bballs/test_1", cwd=tmp_path)
    assert status == 5 and "--overwrite" in err


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (["bballs/tset_1"], 2, "did you mean 'bballs/test_1'"),
        (["bballs/test_1", "-f", "hdf"], 2, "did you mean 'hdf5'"),
        (["bballs/test_1", "-n", "0"], 2, "1 or more"),
        ([], 2, "GROUP"),
    ],
)
def test_bad_arguments_get_one_message(
    store: Store, tmp_path: Path, arguments: list[str], status: int, says: str
) -> None:
    got, out, err = run(str(store.path), *arguments, cwd=tmp_path)
    assert (got, out) == (status, "")
    assert says in err
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_to_is_a_disk_error(store: Store, tmp_path: Path) -> None:
    if os.geteuid() == 0:
        folder = Path("/proc")
    else:
        folder = tmp_path / "closed"
        folder.mkdir(mode=0o555)
    status, _, err = run(str(store.path), "bballs/val", "-o", str(folder / "exports"), cwd=tmp_path)
    assert status == 6 and "cannot write" in err


def test_a_damaged_store_is_named_and_nothing_is_left(store: Store, tmp_path: Path) -> None:
    copy = shutil.copytree(str(store.path), tmp_path / "copy.zarr")
    shard = copy / "bballs/val/position/c.0.0.0.0"
    shard.write_bytes(shard.read_bytes()[:-1])
    status, _, err = run(str(copy), "bballs/val", cwd=tmp_path)
    assert status == 3 and str(shard) in err
    assert not list(tmp_path.rglob("*.npz*"))


def test_code_of_the_current_folder_is_not_run(store: Store, tmp_path: Path) -> None:
    for name in ("random", "h5py", "json"):
        (tmp_path / f"{name}.py").write_text("open('HACKED', 'w').close()\n")
    status, _, err = run(str(store.path), "bballs/val", "-f", "hdf5", cwd=tmp_path)
    assert status == 0, err
    assert not (tmp_path / "HACKED").exists()
