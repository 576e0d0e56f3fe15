from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from hostile_stores import reseal

from s2rm_data.core.errors import UsageError
from s2rm_data.learning import groups_of, open_source, tasks_of
from s2rm_data.learning.dataset import unfinished_groups
from s2rm_data.store import Store
from s2rm_data.training.resolve import Overrides, resolve


def test_the_groups_of_a_split_are_those_of_all_scenarios(store: Store) -> None:
    assert groups_of(store, "bballs", "train") == ["bballs/train"]
    assert groups_of(store, "sc2", "train") == ["sc2/1s2z/train", "sc2/2s3z/train"]
    assert tasks_of(store) == ["bballs", "sc2"]


def test_a_split_that_is_not_there_is_refused_with_what_is(store: Store) -> None:
    with pytest.raises(UsageError, match=r"no split 'test_9'.*did you mean 'test_.'.*bballs/test_1"):
        open_source(store, "bballs", "test_9")


def test_limit_takes_the_first_sequences(store: Store) -> None:
    assert len(open_source(store, "bballs", "train", limit=5)) == 5
    assert len(open_source(store, "sc2", "train", limit=2)) == 4


def test_an_unfinished_group_is_left_out_and_blocks_no_other(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "data.zarr"
    shutil.copytree(store.path, path)

    def forget(document: dict[str, Any]) -> None:
        """As if a run had been stopped before its first shard."""
        objects = document["attributes"]["manifest"]["objects"]
        for name in [name for name in objects if name.startswith("sc2/2s3z/train/") and "/c." in name]:
            del objects[name]
        metadata = document["consolidated_metadata"]["metadata"]
        for name in [name for name in metadata if name.startswith("sc2/2s3z/train")]:
            del metadata[name]

    reseal(path, forget)
    cut = Store(path)
    assert groups_of(cut, "sc2", "train") == ["sc2/1s2z/train"]
    assert unfinished_groups(cut, "sc2", "train") == ["sc2/2s3z/train"]
    said: list[str] = []
    resolve(cut, Overrides(task="sc2", preset="smoke", device="cpu"), said.append)
    assert any("sc2/2s3z/train is unfinished and left out" in text for text in said)
