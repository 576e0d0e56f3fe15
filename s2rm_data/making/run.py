"""Generation: sources in, a store out. Resumable, parallel over shards, the same bytes however it is run.

Workers are threads: simulators, renderers, compression, hashing and writing all release the interpreter lock, and
threads share one compiled copy of everything. At most one shard per worker is being made at any time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

import s2rm_data
from s2rm_data.addresses import StorePath
from s2rm_data.errors import InterruptedRunError, UsageError
from s2rm_data.interrupt import SAME_COMMAND, Interrupt, interrupt_message
from s2rm_data.making.shards import build_shard
from s2rm_data.progress import Progress
from s2rm_data.registry import WORLDS, plugins_used
from s2rm_data.schema import SplitSource
from s2rm_data.store.conflicts import already_there
from s2rm_data.store.layout import DEFAULT_SHARD_SIZE, grown_shard_size, shard_sequences
from s2rm_data.store.parts import Part
from s2rm_data.store.place import place_of
from s2rm_data.store.split import SplitSpec
from s2rm_data.store.writer import Pacer, StoreWriter

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


@dataclass(frozen=True, kw_only=True)
class ShardSize:
    """Sequences per shard: what was `asked` for, or else `usual`, and more for a split of very many sequences."""

    asked: int | None = None
    usual: int = DEFAULT_SHARD_SIZE

    def of(self, source: SplitSource) -> int:
        return self.asked if self.asked is not None else grown_shard_size(self.usual, source.count)


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


def split_specs(sources: Sequence[SplitSource], shard_size: int | ShardSize | None) -> list[SplitSpec]:
    sizes = shard_size if isinstance(shard_size, ShardSize) else ShardSize(asked=shard_size)
    return [split_spec(source, sizes.of(source)) for source in sources]


def plan_splits(
    sources: Sequence[SplitSource],
    path: StorePath,
    *,
    shard_size: int | ShardSize | None = None,
    overwrite: bool = False,
    part: Part | None = None,
) -> list[Plan]:
    """Sequences and bytes of each split, and what of it is there, without writing; refuses what a run would refuse.

    With `part`, only the splits and sequences of that part.
    """
    specs = split_specs(sources, shard_size)
    found = already_there(place_of(path), [] if overwrite else specs)
    if part is None:
        return [_plan(source, source.count, found.get(source.group, 0)) for source in sources]
    shards = [(s, spec.shard_range(i)) for s, spec in enumerate(specs) for i in range(spec.shards)]
    counts = [0] * len(specs)
    for s, (start, stop) in (shards[i] for i in part.of(len(shards))):
        counts[s] += stop - start
    return [_plan(source, count, 0) for source, count in zip(sources, counts, strict=True) if count]


def _plan(source: SplitSource, count: int, found: int) -> Plan:
    sample = min(source.count, SAMPLE_SEQUENCES)
    shards = build_shard(source, 0, sample, shard_sequences(source.arrays, sample, sample), lambda done: None)
    nbytes = sum(len(piece) for pieces in shards.values() for piece in pieces)
    return Plan(
        group=source.group,
        sequences=count,
        found=found,
        raw_nbytes=count * sum(spec.sequence_nbytes for spec in source.arrays),
        nbytes=nbytes * count // sample,
    )


def generate(
    sources: Sequence[SplitSource],
    path: StorePath,
    *,
    workers: int = 1,
    shard_size: int | ShardSize | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Outcome:
    """Make what is missing of `sources` in the store at `path`.

    All settings are checked against the store before anything is written. Interrupted by SIGINT or SIGTERM, it drops
    the shards that are being made and raises `InterruptedRunError`.
    """
    check_workers(workers)
    specs = split_specs(sources, shard_size)
    progress = progress or Progress()
    with StoreWriter(path) as writer:
        if not overwrite:
            writer.check(specs)
        splits = [writer.begin(spec, overwrite=overwrite) for spec in specs]
        tasks = [
            Task(split.spec, source, index, split.add)
            for split, source in zip(splits, sources, strict=True)
            for index in split.missing
        ]
        made = sum(task.sequences for task in tasks)
        total = sum(spec.count for spec in specs)
        progress.start(total, total - made)
        run_tasks(tasks, writer.pacer, workers, progress)
        nbytes = sum(writer.manifest.group_nbytes(spec.group) for spec in specs)
    return Outcome(made=made, found=total - made, nbytes=nbytes, groups=tuple(spec.group for spec in specs))


def check_workers(workers: int) -> None:
    if not 1 <= workers <= MOST_WORKERS:
        raise UsageError(f"{workers} workers are not possible; allowed are 1 to {MOST_WORKERS}")


@dataclass(frozen=True)
class Task:
    """One shard to be made, and where its arrays' bytes go."""

    spec: SplitSpec
    source: SplitSource
    index: int
    add: Callable[[int, Mapping[str, Sequence[bytes]]], None]

    @property
    def sequences(self) -> int:
        start, stop = self.spec.shard_range(self.index)
        return stop - start


class _Stopped(Exception):  # noqa: N818 - a message between threads, not an error
    """Raised inside workers when the run is being abandoned."""


def run_tasks(tasks: Iterable[Task], pacer: Pacer, workers: int, progress: Progress) -> None:
    """Make shards in threads; what is made is committed now and then."""
    _Run(pacer, progress).run(tasks, workers)


class _Run:
    def __init__(self, pacer: Pacer, progress: Progress) -> None:
        self._pacer, self._progress = pacer, progress
        self._failed = threading.Event()
        self._interrupt = Interrupt(SAME_COMMAND)

    def run(self, tasks: Iterable[Task], workers: int) -> None:
        with self._interrupt, ThreadPoolExecutor(workers, thread_name_prefix="shard") as pool:
            pending: set[Future[None]] = set()
            try:
                for task in tasks:
                    self._check()
                    pending.add(pool.submit(self._make, task))
                    while len(pending) >= workers:
                        pending = self._collect(pending)
                while pending:
                    pending = self._collect(pending)
            except _Stopped:
                wait(pending)
                raise InterruptedRunError(interrupt_message()) from None
            except BaseException:
                self._failed.set()
                raise

    def _check(self) -> None:
        if self._interrupt.asked or self._failed.is_set():
            raise _Stopped

    def _collect(self, pending: set[Future[None]]) -> set[Future[None]]:
        """Wait for a shard, and meanwhile commit what has waited long enough."""
        done, rest = wait(pending, timeout=self._pacer.seconds_left, return_when=FIRST_COMPLETED)
        for future in done:
            future.result()
        if self._pacer.seconds_left == 0:
            self._pacer.commit()
        return rest

    def _make(self, task: Task) -> None:
        start, stop = task.spec.shard_range(task.index)
        task.add(task.index, build_shard(task.source, start, stop, task.spec.shard, self._tick))

    def _tick(self, sequences: int) -> None:
        self._check()
        self._progress.advance(sequences)
