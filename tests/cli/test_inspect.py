"""`s2rm-data stats` as a user meets it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import program

from s2rm_data.store import Store


def run(*arguments: str, cwd: Path) -> tuple[int, str, str]:
    return program.run("stats", *arguments, cwd=cwd)


def test_the_table_names_every_group(store: Store, tmp_path: Path) -> None:
    status, out, err = run(str(store.path), "--table-only", cwd=tmp_path)
    assert status == 0, err
    for words in ("test_1", "train", "2s3z/val", "speed mean, px/frame", "win share", "2 stalker, 3 zealot"):
        assert words in out
    assert list(tmp_path.iterdir()) == []


def test_json_and_figures_of_the_groups_asked_for(store: Store, tmp_path: Path) -> None:
    status, out, _ = run(str(store.path), "bballs/val", "--json", cwd=tmp_path)
    assert status == 0
    assert json.loads(out)["bballs/val"]["sequences"] == 6
    assert {p.name for p in (tmp_path / "stats").iterdir()} == {"stats.json", "bballs.png", "bballs.svg"}


def test_an_unknown_group_is_a_usage_error(store: Store, tmp_path: Path) -> None:
    status, _, err = run(str(store.path), "bballs/vla", cwd=tmp_path)
    assert status == 2 and "did you mean 'bballs/val'" in err


def test_a_file_in_the_way_is_found_before_anything_is_counted(store: Store, tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    status, out, err = run(str(store.path), "-o", "plain", cwd=tmp_path)
    assert (status, out) == (5, "") and "is a file" in err


def test_a_damaged_store_is_named(store: Store, tmp_path: Path) -> None:
    copy = shutil.copytree(str(store.path), tmp_path / "copy.zarr")
    shard = copy / "bballs/val/velocity/c.0.0.0.0"
    shard.unlink()
    status, _, err = run(str(copy), "bballs/val", cwd=tmp_path)
    assert status == 3 and str(shard) in err
