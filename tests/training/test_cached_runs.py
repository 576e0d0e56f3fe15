"""Runs that read their data through a cache: the same losses, whatever fits into it, and damage is named."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from buckets import flip
from killed_runs import KillAt, Killed
from small_stores import make_small_store
from tiny_runs import make_run

import s2rm_data as s2
from s2rm_data.core.addresses import store_path
from s2rm_data.core.errors import DamagedStoreError, UsageError
from s2rm_data.generators.bballs.making.ball_source import plan
from s2rm_data.making.run import generate
from s2rm_data.store import ShardCache, Store
from s2rm_data.training.config import TrainConfig
from s2rm_data.training.data import RunData
from s2rm_data.training.listener import Listener
from s2rm_data.training.protocol import RunOptions, Session

SHARD = 10 * 12 * 48 * 6 + 4  # bytes of a decoded shard, and its checksum


def trained(config: TrainConfig, store: Store, out: Path, listener: Listener | None = None, **order: Any) -> bytes:
    Session(listener).train(config, store, RunOptions(out=out, **order))
    return (out / "log.jsonl").read_bytes()


@pytest.mark.parametrize("task", ["bballs", "sc2"])
def test_a_run_through_a_cache_is_the_run_from_memory(
    tiny: Callable[..., TrainConfig], store: Store, tmp_path: Path, task: str
) -> None:
    config = tiny(task, steps=3)
    through = Store(store.path, cache=ShardCache(tmp_path / "cache", 10**9))
    assert trained(config, through, tmp_path / "b") == trained(config, store, tmp_path / "a")


def test_a_small_cache_decides_the_order_which_the_run_then_keeps(
    tiny: Callable[..., TrainConfig], tmp_path: Path
) -> None:
    path = tmp_path / "data.zarr"
    generate(plan(balls=(3,), train=100, val=4, test=0, frames=12), path, shard_size=10)
    config = tiny(steps=9, checkpoint_seconds=1e-3)

    def small() -> Store:
        return Store(path, cache=ShardCache(tmp_path / "cache", 7 * SHARD))

    log = trained(config, small(), tmp_path / "whole")
    assert json.loads((tmp_path / "whole/config.json").read_text())["config"]["shuffle_shards"] == 3
    with pytest.raises(Killed):
        trained(config, small(), tmp_path / "killed", KillAt(5))
    # Resumed from memory, and so without any need of that order: it is kept.
    assert trained(config, Store(path), tmp_path / "killed", resume=True) == log
    chosen = dataclasses.replace(config, shuffle_shards=3)
    assert trained(chosen, Store(path), tmp_path / "memory") == log
    says = r"a cache of [\d.]+kB is too small for training on .*; give --cache-size at least ([\d.]+)kB"
    with pytest.raises(UsageError, match=says) as refused:
        trained(config, Store(path, cache=ShardCache(tmp_path / "cache", 2 * SHARD)), tmp_path / "none")
    found = re.search(says, str(refused.value))
    assert found
    enough = Store(path, cache=ShardCache(tmp_path / "cache", int(1000 * float(found[1]))))
    assert RunData(enough, config).shuffle_shards() == 1


def test_a_flipped_object_in_a_bucket_stops_training_and_evaluation(
    tiny: Callable[..., TrainConfig], store: Store, bucket: str, tmp_path: Path
) -> None:
    url = f"{bucket}/data.zarr"
    make_small_store(store_path(url))  # type: ignore[arg-type]
    assert trained(tiny(steps=2), s2.open(url), tmp_path / "a") == trained(tiny(steps=2), store, tmp_path / "b")
    flip(url, "bballs/train/frames/c.1.0.0.0")
    cached = s2.open(url, cache=tmp_path / "cache", cache_size="1GB")
    for opened in (s2.open(url), cached):
        with pytest.raises(DamagedStoreError, match=rf"{url}/bballs/train/frames/c\.1\.0\.0\.0: SHA-256"):
            trained(tiny(steps=6), opened, tmp_path / "c", overwrite=True)
    flip(url, "bballs/test_3/frames/c.0.0.0.0")
    run = make_run(tmp_path / "run", "s2gru", "bballs")
    with pytest.raises(DamagedStoreError, match=rf"{url}/bballs/test_3/frames/c\.0\.0\.0\.0: SHA-256"):
        s2.evaluate([run], cached, quick=True, quiet=True)
