from __future__ import annotations

import itertools

import pytest
import torch

from s2rm_data.learning import Prefetcher, TrainingBatches, open_source
from s2rm_data.store import Store


@pytest.mark.parametrize("task", ["bballs", "sc2"])
@pytest.mark.parametrize("threads", [1, 4])
def test_batches_come_in_order_and_are_the_same_for_any_number_of_threads(
    store: Store, task: str, threads: int
) -> None:
    source = open_source(store, task, "train", steps=4)
    batches = TrainingBatches(source, batch_size=4, seed=0)
    keys = list(itertools.islice(batches.keys_from(0, 1), 7))
    with Prefetcher(source, keys, lambda key: batches.request(*key), threads=threads) as prefetcher:
        found = list(prefetcher)
    assert [key for key, _ in found] == keys
    for key, batch in found:
        torch.testing.assert_close(batch.views, batches.batch(*key).views, rtol=0, atol=0)
        torch.testing.assert_close(batch.query_position, batches.batch(*key).query_position, rtol=0, atol=0)


def test_an_error_in_a_thread_reaches_the_consumer(store: Store) -> None:
    source = open_source(store, "bballs", "train", steps=4)
    batches = TrainingBatches(source, batch_size=4, seed=0)
    with (
        Prefetcher(source, [(0, 0), (0, 999)], lambda key: batches.request(*key)) as prefetcher,
        pytest.raises(IndexError, match="step 999"),
    ):
        list(prefetcher)


def test_waiting_is_counted(store: Store) -> None:
    source = open_source(store, "bballs", "train", steps=4)
    batches = TrainingBatches(source, batch_size=4, seed=0)
    with Prefetcher(source, [(0, 0)], lambda key: batches.request(*key)) as prefetcher:
        list(prefetcher)
        assert prefetcher.waited_seconds > 0
