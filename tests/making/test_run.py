import errno
import threading
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from toy import ToySplit, tree

from s2rm_data.core.errors import ConflictError, DiskError, InterruptedRunError, UsageError
from s2rm_data.making.run import generate, plan_splits
from s2rm_data.store import Store, verify


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_the_bytes_do_not_depend_on_the_number_of_workers(toy_store: Path, tmp_path: Path, workers: int) -> None:
    path = tmp_path / "again.zarr"
    generate([ToySplit(), ToySplit(group="toy/val", count=5)], path, shard_size=4, workers=workers)
    assert tree(path) == tree(toy_store)


def test_running_again_finds_everything_done(toy_store: Path, toy: ToySplit) -> None:
    before = tree(toy_store)
    outcome = generate([toy], toy_store, shard_size=4)
    assert (outcome.made, outcome.found) == (0, 10)
    assert tree(toy_store) == before


@dataclass(frozen=True)
class Stopping(ToySplit):
    """Interrupts after some calls, as Ctrl-C would: in the thread that waits, not in the worker."""

    after: int = 1
    calls: list[int] = field(default_factory=list)

    def produce(self, start: int, stop: int) -> dict[str, np.ndarray]:
        self.calls.append(start)
        if len(self.calls) > self.after:
            import _thread

            _thread.interrupt_main()
            threading.Event().wait(0.05)
        return super().produce(start, stop)


def test_an_interrupted_run_goes_on_where_it_stopped(toy_store: Path, tmp_path: Path) -> None:
    path = tmp_path / "again.zarr"
    splits = [ToySplit(), ToySplit(group="toy/val", count=5)]
    with pytest.raises(InterruptedRunError, match="Run the same command again"):
        generate([Stopping(after=1), splits[1]], path, shard_size=4)
    committed = Store(path).unfinished["toy/train"][0]
    assert 1 <= committed < 3
    outcome = generate(splits, path, shard_size=4)
    assert outcome.found >= 4
    assert tree(path) == tree(toy_store)


def test_a_full_disk_is_reported_and_nothing_committed_is_lost(
    toy_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import os

    path = tmp_path / "again.zarr"
    real, count = os.fsync, [0]

    def full(descriptor: int) -> None:
        count[0] += 1
        if count[0] > 40:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DiskError, match="the disk is full"):
        generate([ToySplit(), ToySplit(group="toy/val", count=5)], path, shard_size=4)
    monkeypatch.setattr(os, "fsync", real)
    assert not list(path.rglob("*.partial"))
    generate([ToySplit(), ToySplit(group="toy/val", count=5)], path, shard_size=4)
    assert tree(path) == tree(toy_store)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None)
@given(count=st.integers(1, 30), shard_size=st.integers(1, 40), workers=st.integers(1, 3))
def test_any_count_and_shard_size_reads_back(
    tmp_path_factory: pytest.TempPathFactory, count: int, shard_size: int, workers: int
) -> None:
    path = tmp_path_factory.mktemp("any") / "toy.zarr"
    split = ToySplit(count=count)
    generate([split], path, shard_size=shard_size, workers=workers)
    assert verify(path).problems == []
    for name, values in split.produce(0, count).items():
        np.testing.assert_array_equal(Store(path)["toy/train"][name].packed(slice(None)), values)


def test_no_worker_is_refused(tmp_path: Path, toy: ToySplit) -> None:
    with pytest.raises(UsageError, match="--workers 0 is not possible"):
        generate([toy], tmp_path / "toy.zarr", workers=0)
    assert not (tmp_path / "toy.zarr").exists()


def test_a_plan_counts_sequences_and_bytes_and_writes_nothing(tmp_path: Path, toy: ToySplit) -> None:
    (plan,) = plan_splits([toy], tmp_path / "toy.zarr")
    assert (plan.group, plan.sequences, plan.found, plan.raw_nbytes) == ("toy/train", 10, 0, 10 * (6 + 24 + 3 + 8))
    assert 0 < plan.nbytes < 10_000
    assert list(tmp_path.iterdir()) == []


def test_a_plan_tells_what_is_there_and_refuses_what_a_run_would(toy_store: Path, toy: ToySplit) -> None:
    before = tree(toy_store)
    (plan,) = plan_splits([toy], toy_store, shard_size=4)
    assert plan.found == 10
    (plan,) = plan_splits([toy], toy_store, shard_size=4, overwrite=True)
    assert plan.found == 0
    with pytest.raises(ConflictError, match="seed: 0 stored, 1 asked for"):
        plan_splits([ToySplit(seed=1)], toy_store, shard_size=4)
    with pytest.raises(UsageError, match="does not exist"):
        plan_splits([toy], toy_store / "nowhere" / "data.zarr")
    assert tree(toy_store) == before


def test_a_source_that_breaks_its_promise_is_caught(tmp_path: Path) -> None:
    class Wrong(ToySplit):
        def produce(self, start: int, stop: int) -> dict[str, np.ndarray]:
            made = super().produce(start, stop)
            return {**made, "alive": made["alive"].astype(np.uint8)}

    with pytest.raises(TypeError, match="alive: got uint8"):
        generate([Wrong()], tmp_path / "toy.zarr")
