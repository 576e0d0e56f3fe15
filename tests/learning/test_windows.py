from __future__ import annotations

import dataclasses

import pytest
import torch

from s2rm_data.core.errors import UsageError
from s2rm_data.learning import FixedBatches, TrainingBatches, open_source
from s2rm_data.learning.windows import Share
from s2rm_data.models import Batch
from s2rm_data.store import Store

TASKS = ["bballs", "sc2"]


def tensors(batch: Batch) -> list[torch.Tensor]:
    values = [getattr(batch, f.name) for f in dataclasses.fields(batch)]
    return [v for v in (*values, *batch.targets) if isinstance(v, torch.Tensor)]


def assert_same(a: Batch, b: Batch) -> None:
    for x, y in zip(tensors(a), tensors(b), strict=True):
        torch.testing.assert_close(x, y, rtol=0, atol=0)


@pytest.mark.parametrize("task", TASKS)
def test_a_batch_is_a_function_of_seed_epoch_and_step(store: Store, task: str) -> None:
    source = open_source(store, task, "train", steps=4)
    fresh = TrainingBatches(open_source(store, task, "train", steps=4), batch_size=4, seed=3)
    used = TrainingBatches(source, batch_size=4, seed=3)
    for epoch, step in [(0, 0), (5, 1), (2, 2)]:
        used.batch(epoch, step)
    assert_same(used.batch(1, 2), fresh.batch(1, 2))
    others = [TrainingBatches(source, batch_size=4, seed=seed).batch(1, 2).views for seed in range(4, 8)]
    assert any(not torch.equal(other, used.batch(1, 2).views) for other in others if other.shape)


@pytest.mark.parametrize("task", TASKS)
def test_an_epoch_takes_every_sequence_once(store: Store, task: str) -> None:
    source = open_source(store, task, "train", steps=4)
    batches = TrainingBatches(source, batch_size=4, seed=0)
    field = "sequence" if task == "bballs" else "episode"
    seen = [n for step in range(batches.steps_per_epoch) for n in getattr(batches.request(7, step), field)]
    assert sorted(seen) == list(range(len(source)))


@pytest.mark.parametrize("task", TASKS)
def test_processes_share_the_batch_of_one_process(store: Store, task: str) -> None:
    source = open_source(store, task, "train", steps=4)
    whole = TrainingBatches(source, batch_size=4, seed=0).batch(0, 1)
    parts = [
        TrainingBatches(source, batch_size=4, seed=0, share=Share(rank=rank, count=2)).batch(0, 1) for rank in (0, 1)
    ]
    for w, a, b in zip(*map(tensors, (whole, *parts)), strict=True):
        torch.testing.assert_close(w, torch.cat([a, b]), rtol=0, atol=0)


@pytest.mark.parametrize("task", TASKS)
def test_evaluation_does_not_depend_on_the_batch_size(store: Store, task: str) -> None:
    source = open_source(store, task, "val")
    drop = 0.5
    together = next(iter(FixedBatches(source, batch_size=6, drop=drop)))
    one_by_one = [tensors(batch) for batch in FixedBatches(source, batch_size=1, drop=drop)]
    for whole, *parts in zip(tensors(together), *one_by_one, strict=True):
        torch.testing.assert_close(whole, torch.cat(parts), rtol=0, atol=0)


def test_evaluation_takes_every_sequence_once_whatever_the_number_of_processes(store: Store) -> None:
    source = open_source(store, "bballs", "val")
    shares = [FixedBatches(source, batch_size=2, share=Share(rank=rank, count=4)) for rank in range(4)]
    assert [n for share in shares for r in share.requests() for n in r.sequence] == list(range(6))


def test_keys_go_on_from_any_step(store: Store) -> None:
    batches = TrainingBatches(open_source(store, "bballs", "train", steps=4), batch_size=8, seed=0)
    keys = batches.keys_from(1, 2)
    assert [next(keys) for _ in range(3)] == [(1, 2), (2, 0), (2, 1)]


def test_a_batch_larger_than_the_data_is_filled_by_repetition(store: Store) -> None:
    batches = TrainingBatches(open_source(store, "bballs", "val", steps=4), batch_size=8, seed=0)
    assert batches.steps_per_epoch == 1
    assert set(batches.request(0, 0).sequence) == set(range(6))


def test_batches_that_processes_cannot_share_evenly_are_refused(store: Store) -> None:
    source = open_source(store, "bballs", "train", steps=4)
    with pytest.raises(UsageError, match="multiple of 3"):
        TrainingBatches(source, batch_size=8, seed=0, share=Share(rank=0, count=3))
