"""Batches through a cache are the batches from memory, whatever fits into it."""

from __future__ import annotations

import os
import resource
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from buckets import flip, tree_at

from s2rm_data.core.addresses import store_path
from s2rm_data.core.errors import ConflictError, DamagedStoreError, DiskError, UsageError
from s2rm_data.generators.bballs.making.ball_source import plan
from s2rm_data.learning import FixedBatches, Prefetcher, TrainingBatches, open_source
from s2rm_data.learning.dataset import WindowDataset
from s2rm_data.learning.windows import Share
from s2rm_data.making.run import generate
from s2rm_data.models import Batch
from s2rm_data.store import ShardCache, Store

SHARD = 10 * 12 * 48 * 6  # bytes of a decoded shard of `balls`
TASKS = ["bballs", "sc2"]


@pytest.fixture(scope="module")
def balls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """60 training sequences in shards of 10."""
    path = tmp_path_factory.mktemp("balls") / "data.zarr"
    generate(plan(balls=(3,), train=60, val=10, test=0, frames=12), path, shard_size=10)
    return path


def assert_same(a: Batch, b: Batch) -> None:
    assert torch.equal(a.views, b.views)
    assert torch.equal(a.query_position, b.query_position)
    for one, other in zip(a.targets, b.targets, strict=True):
        assert torch.equal(one, other)


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.rows"))


@pytest.mark.parametrize("task", TASKS)
def test_batches_are_those_from_memory(store: Store, tmp_path: Path, task: str) -> None:
    cached = Store(store.path, cache=ShardCache(tmp_path / "cache", 10**9))
    sources = [open_source(s, task, "train", steps=4) for s in (store, cached)]
    here, there = (TrainingBatches(source, batch_size=4, seed=3) for source in sources)
    for step in range(here.steps_per_epoch):
        assert_same(here.batch(1, step), there.batch(1, step))
    for one, other in zip(*(FixedBatches(s, batch_size=5, drop=0.0) for s in sources), strict=True):
        assert_same(one, other)


def test_the_cache_keeps_its_bound_and_gives_the_same_rows(balls: Path, tmp_path: Path) -> None:
    cache = ShardCache(tmp_path / "cache", 3 * (SHARD + 4))
    plain, through = Store(balls)["bballs/train"]["frames"], Store(balls, cache=cache)["bballs/train"]["frames"]
    random = np.random.default_rng(0)
    for _ in range(20):
        rows = random.integers(0, 60, 7)
        np.testing.assert_array_equal(through[rows], plain[rows])
        assert sum(path.stat().st_size for path in files(cache.folder)) <= cache.most_bytes
    assert len(files(cache.folder)) == 3


def test_a_second_run_finds_the_cache_filled_and_checks_it(
    balls: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read() -> np.ndarray:
        cache = ShardCache(tmp_path / "cache", 10**9)
        found: np.ndarray = Store(balls, cache=cache)["bballs/train"]["frames"][:]
        return found

    first = read()
    victim = files(tmp_path / "cache")[2]
    data = bytearray(victim.read_bytes())
    data[100] ^= 1
    victim.write_bytes(data)
    fetched = []
    real = ShardCache._write
    monkeypatch.setattr(ShardCache, "_write", lambda self, *given: (fetched.append(given[2]), real(self, *given)))
    np.testing.assert_array_equal(read(), first)
    assert fetched == [victim.name]


def test_files_of_the_cache_that_changed_places_are_noticed(balls: Path, tmp_path: Path) -> None:
    first = Store(balls, cache=ShardCache(tmp_path / "cache", 10**9))["bballs/train"]["frames"][:]
    one, other = files(tmp_path / "cache")[:2]
    data = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(data)
    again = Store(balls, cache=ShardCache(tmp_path / "cache", 10**9))["bballs/train"]["frames"][:]
    np.testing.assert_array_equal(again, first)


@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_what_lies_in_the_place_of_a_file_of_the_cache_is_neither_waited_for_nor_believed(
    balls: Path, tmp_path: Path, kind: str
) -> None:
    first = Store(balls, cache=ShardCache(tmp_path / "cache", 10**9))["bballs/val"]["frames"][:]
    (victim,) = files(tmp_path / "cache")
    victim.rename(tmp_path / "elsewhere")
    os.mkfifo(victim) if kind == "pipe" else victim.symlink_to(tmp_path / "elsewhere")
    again = Store(balls, cache=ShardCache(tmp_path / "cache", 10**9))["bballs/val"]["frames"][:]
    np.testing.assert_array_equal(again, first)
    assert victim.is_file() and not victim.is_symlink()


def test_what_happens_to_a_cache_while_it_is_read_changes_nothing(balls: Path, tmp_path: Path) -> None:
    """Files are checked when they are first used, and each row again whenever it is read."""
    folder = tmp_path / "cache"
    array = Store(balls, cache=ShardCache(folder, 10**9))["bballs/train"]["frames"]
    first = array[:]

    def flip_all() -> None:
        for path in files(folder):
            data = bytearray(path.read_bytes())
            data[len(data) // 3] ^= 1
            path.write_bytes(data)

    def cut_all() -> None:
        for path in files(folder):
            os.truncate(path, SHARD // 2)

    for deed in (flip_all, cut_all, lambda: shutil.rmtree(folder), lambda: [path.unlink() for path in files(folder)]):
        deed()
        np.testing.assert_array_equal(array[:], first)


def test_what_others_write_to_a_cache_is_in_nobodys_way(tmp_path: Path) -> None:
    (tmp_path / f"probe-{os.getpid()}.partial").mkdir()  # of a process with this number, in another container
    (tmp_path / "renamed.partial").symlink_to("elsewhere")  # listed, and gone when it is looked at
    ShardCache(tmp_path, 10**9)


def test_a_cache_whose_disk_is_full_is_named(balls: Path, tmp_path: Path) -> None:
    array = Store(balls, cache=ShardCache(tmp_path / "cache", 10**9))["bballs/val"]["seed"]
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, limits[1]))
    try:
        with pytest.raises(DiskError, match=r"the cache .* cannot be written.*give another --cache"):
            array[:]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def orders(source: object, seed: int, epoch: int, shards: int | None) -> np.ndarray:
    batches = TrainingBatches(source, batch_size=5, seed=seed, shuffle_shards=shards)  # type: ignore[arg-type]
    return np.concatenate([batches.request(epoch, step).sequence for step in range(batches.steps_per_epoch)])


def test_a_shuffle_by_shards_is_a_function_of_seed_and_epoch(balls: Path, tmp_path: Path) -> None:
    cached = open_source(Store(balls, cache=ShardCache(tmp_path / "c", 10**9)), "bballs", "train", steps=4)
    memory = open_source(Store(balls), "bballs", "train", steps=4)
    first = orders(cached, 0, 0, 2)
    assert sorted(first) == list(range(60))
    np.testing.assert_array_equal(first, orders(memory, 0, 0, 2))
    for start in range(0, 60, 20):  # two shards at a time
        assert len({number // 10 for number in first[start : start + 20]}) == 2
    assert not np.array_equal(first, orders(cached, 0, 1, 2))
    assert not np.array_equal(first, orders(cached, 1, 0, 2))
    assert len({number // 10 for number in orders(cached, 0, 0, None)[:20]}) > 2


def test_neither_threads_nor_processes_change_what_comes(balls: Path, tmp_path: Path) -> None:
    source = open_source(Store(balls, cache=ShardCache(tmp_path / "c", 3 * (SHARD + 4))), "bballs", "train", steps=4)

    def rows(share: Share, threads: int) -> Iterator[Batch]:
        batches = TrainingBatches(source, batch_size=10, seed=0, share=share, shuffle_shards=1)
        keys = [(epoch, step) for epoch in range(2) for step in range(batches.steps_per_epoch)]
        with Prefetcher(source, keys, lambda key: batches.request(*key), threads=threads) as prefetcher:
            for _, batch in prefetcher:
                yield batch

    alone, threaded = list(rows(Share(), 1)), list(rows(Share(), 3))
    halves = [list(rows(Share(rank=rank, count=2), 2)) for rank in range(2)]
    for n, batch in enumerate(alone):
        assert_same(batch, threaded[n])
        assert torch.equal(batch.views, torch.cat([half[n].views for half in halves]))


def test_the_workers_of_a_data_loader_read_through_the_cache(balls: Path, tmp_path: Path) -> None:
    group = Store(balls, cache=ShardCache(tmp_path / "c", 10**9))["bballs/train"]
    data, plain = (WindowDataset([g], window=4) for g in (group, Store(balls)["bballs/train"]))
    assert torch.equal(data[0]["views"], plain[0]["views"])  # the cache has threads before it is forked
    loader = torch.utils.data.DataLoader(data, batch_size=10, num_workers=2, multiprocessing_context="fork")
    views = torch.cat([items["views"] for items in loader])
    assert torch.equal(views, torch.stack([plain[n]["views"] for n in range(60)]))


def test_a_damaged_shard_is_named_and_not_cached(bucket: str, tmp_path: Path) -> None:
    url = f"{bucket}/balls.zarr"
    generate(plan(balls=(3,), train=20, val=2, test=0, frames=12), store_path(url), shard_size=10)
    assert len(tree_at(url)) > 10
    flip(url, "bballs/train/frames/c.1.0.0.0")
    cache = ShardCache(tmp_path / "cache", 10**9)
    frames = Store(url, cache=cache)["bballs/train"]["frames"]
    assert frames[:10].shape == (10, 12, 48, 48)
    with pytest.raises(DamagedStoreError, match=rf"{url}/bballs/train/frames/c\.1\.0\.0\.0: SHA-256 does not match"):
        frames[11]
    assert [path.suffix for path in cache.folder.iterdir()] == [".rows"]


def test_a_folder_that_cannot_be_a_cache_is_refused(
    balls: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("precious")
    with pytest.raises(ConflictError, match="is a file; give --cache a folder"):
        ShardCache(tmp_path / "file", 10**9)
    with pytest.raises(ConflictError, match="holds other files"):
        ShardCache(tmp_path, 10**9)
    with pytest.raises(UsageError, match="cannot hold one shard"):
        Store(balls, cache=ShardCache(tmp_path / "small", 1000))["bballs/train"]["frames"][0]
    full = Store(balls, cache=ShardCache(tmp_path / "full", 10**9))
    real = Path.open

    class Full:
        def __init__(self, path: Path) -> None:
            self.file = real(path, "wb")
            self.close = self.file.close

        def write(self, data: bytes) -> int:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "open", lambda p, mode="r": Full(p) if mode == "xb" else real(p, mode))
    with pytest.raises(DiskError, match="cannot be written: the disk is full; give another --cache, or a smaller"):
        full["bballs/train"]["frames"][0]
    assert list((tmp_path / "full").iterdir()) == []
