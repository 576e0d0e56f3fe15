"""Generation: sources in, a store out. Resumable, parallel over shards, the same bytes however it is run.

Workers are threads: simulators, renderers, compression, hashing and writing all release the interpreter lock, and
threads share one compiled copy of everything. At most one shard per worker is being made at any time.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import s2rm_data
from s2rm_data.errors import InterruptedRunError, UsageError
from s2rm_data.interrupt import Interrupt
from s2rm_data.making.shards import build_shard
from s2rm_data.progress import Progress
from s2rm_data.registry import WORLDS, plugins_used
from s2rm_data.schema import SplitSource
from s2rm_data.store.conflicts import already_there
from s2rm_data.store.layout import DEFAULT_SHARD_SIZE, shard_sequences
from s2rm_data.store.split import SplitSpec
from s2rm_data.store.writer import SplitWriter, StoreWriter

MOST_WORKERS = 1024  # threads
SAMPLE_SEQUENCES = 32  # from which a plan estimates the size of a split


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a run did: `made` and `found` count sequences; `nbytes` is what the run's groups take on disk."""

    made: int
    found: int
    nbytes: int
    groups: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a run would do. `nbytes` is estimated from a few sequences of each split."""

    group: str
    sequences: int
    found: int  # sequences that are there already
    raw_nbytes: int
    nbytes: int


def split_spec(source: SplitSource, shard_size: int) -> SplitSpec:
    attributes = source.attributes
    plugins = plugins_used((WORLDS, str(source.settings.get("generator")))) | attributes.get("plugins", {})
    return SplitSpec(
        group=source.group,
        first_dim=source.first_dim,
        count=source.count,
        arrays=source.arrays,
        settings=source.settings,
        attributes={
            **attributes,
            **({"plugins": plugins} if plugins else {}),
            "package": f"s2rm-data {s2rm_data.__version__}",
        },
        shard_size=shard_size,
    )


def plan_splits(
    sources: Sequence[SplitSource],
    path: Path,
    *,
    shard_size: int = DEFAULT_SHARD_SIZE,
    overwrite: bool = False,
) -> list[Plan]:
    """Sequences and bytes of each split, and what of it is there, without writing; refuses what a run would refuse."""
    specs = [split_spec(source, shard_size) for source in sources]
    found = already_there(path, [] if overwrite else specs)
    return [_plan(source, found.get(source.group, 0)) for source in sources]


def _plan(source: SplitSource, found: int) -> Plan:
    sample = min(source.count, SAMPLE_SEQUENCES)
    shards = build_shard(source, 0, sample, shard_sequences(source.arrays, sample, sample), lambda done: None)
    nbytes = sum(len(piece) for pieces in shards.values() for piece in pieces)
    return Plan(
        group=source.group,
        sequences=source.count,
        found=found,
        raw_nbytes=source.count * sum(spec.sequence_nbytes for spec in source.arrays),
        nbytes=nbytes * source.count // sample,
    )


def generate(
    sources: Sequence[SplitSource],
    path: Path,
    *,
    workers: int = 1,
    shard_size: int = DEFAULT_SHARD_SIZE,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Outcome:
    """Make what is missing of `sources` in the store at `path`.

    All settings are checked against the store before anything is written. Interrupted by SIGINT or SIGTERM, it drops
    the shards that are being made and raises `InterruptedRunError`.
    """
    if not 1 <= workers <= MOST_WORKERS:
        raise UsageError(f"{workers} workers are not possible; allowed are 1 to {MOST_WORKERS}")
    specs = [split_spec(source, shard_size) for source in sources]
    with StoreWriter(path) as writer:
        if not overwrite:
            writer.check(specs)
        splits = [writer.begin(spec, overwrite=overwrite) for spec in specs]
        made = sum(_missing_sequences(split) for split in splits)
        total = sum(spec.count for spec in specs)
        (progress or Progress()).start(total, total - made)
        _Run(splits, sources, progress or Progress()).run(workers)
        nbytes = sum(writer.manifest.group_nbytes(spec.group) for spec in specs)
    return Outcome(made=made, found=total - made, nbytes=nbytes, groups=tuple(spec.group for spec in specs))


def _missing_sequences(split: SplitWriter) -> int:
    ranges = [split.spec.shard_range(index) for index in split.missing]
    return sum(stop - start for start, stop in ranges)


class _Stopped(Exception):  # noqa: N818 - a message between threads, not an error
    """Raised inside workers when the run is being abandoned."""


class _Run:
    def __init__(self, splits: list[SplitWriter], sources: Sequence[SplitSource], progress: Progress) -> None:
        self._pairs = list(zip(splits, sources, strict=True))
        self._progress = progress
        self._failed = threading.Event()
        self._interrupt = Interrupt()

    def run(self, workers: int) -> None:
        with self._interrupt, ThreadPoolExecutor(workers, thread_name_prefix="shard") as pool:
            pending: set[Future[None]] = set()
            try:
                for task in self._tasks():
                    self._check()
                    pending.add(pool.submit(self._make, *task))
                    if len(pending) >= workers:
                        pending = self._collect(pending)
                while pending:
                    pending = self._collect(pending)
            except _Stopped:
                wait(pending)
                raise InterruptedRunError(
                    "interrupted; everything committed so far is safe. Run the same command again to resume"
                ) from None
            except BaseException:
                self._failed.set()
                raise

    def _check(self) -> None:
        if self._interrupt.asked or self._failed.is_set():
            raise _Stopped

    def _tasks(self) -> Iterator[tuple[Any, ...]]:
        for split, source in self._pairs:
            for index in split.missing:
                yield split, source, index

    def _collect(self, pending: set[Future[None]]) -> set[Future[None]]:
        done, rest = wait(pending, return_when=FIRST_COMPLETED)
        for future in done:
            future.result()
        return rest

    def _make(self, split: SplitWriter, source: SplitSource, index: int) -> None:
        start, stop = split.spec.shard_range(index)
        split.commit(index, build_shard(source, start, stop, split.spec.shard, self._tick))

    def _tick(self, sequences: int) -> None:
        self._check()
        self._progress.advance(sequences)
