"""Generation: sources in, a store out. Resumable, parallel over shards, the same bytes however it is run. Workers are
threads: what they do releases the interpreter lock. At most one shard per worker is being made at any time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import s2rm_data
from s2rm_data.core.addresses import StorePath
from s2rm_data.core.errors import InterruptedRunError, UsageError
from s2rm_data.core.machine import available_cores
from s2rm_data.core.progress import Progress
from s2rm_data.core.registry import WORLDS, plugins_used
from s2rm_data.core.schema import ArraySpec, SplitSource
from s2rm_data.core.signals import SAME_COMMAND, Interrupt, interrupt_message
from s2rm_data.store.codec import assemble_shard, encode_chunk
from s2rm_data.store.existing import already_there
from s2rm_data.store.layout import DEFAULT_SHARD_SIZE, SplitSpec, grown_shard_size, shard_sequences
from s2rm_data.store.parts import Part
from s2rm_data.store.place import place_of
from s2rm_data.store.writer import Pacer, StoreWriter

MOST_WORKERS = 1024  # threads
SAMPLE_SEQUENCES = 32  # from which a plan estimates the size of a split


class Outcome(NamedTuple):
    """What a run did: `made` and `found` count sequences; `nbytes` is what the run's groups take on disk."""

    made: int
    found: int
    nbytes: int
    groups: tuple[str, ...]


class Plan(NamedTuple):
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
    usual: int | None = None

    def __post_init__(self) -> None:
        if self.asked is not None and self.asked < 1:
            raise UsageError(f"--shard-size {self.asked} is not possible; allowed are 1 or more")

    def of(self, source: SplitSource) -> int:
        return self.asked or grown_shard_size(self.usual or DEFAULT_SHARD_SIZE, source.count)


def split_spec(source: SplitSource, shard_size: int) -> SplitSpec:
    attributes = {**source.attributes, "package": f"s2rm-data {s2rm_data.__version__}"}
    plugins = plugins_used((WORLDS, str(source.settings.get("generator")))) | attributes.get("plugins", {})
    if plugins:
        attributes["plugins"] = plugins
    names = ("group", "first_dim", "count", "arrays", "settings")
    return SplitSpec(**{n: getattr(source, n) for n in names}, attributes=attributes, shard_size=shard_size)


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
    """Sequences and bytes of each split (or of one part), and what is there; refuses what a run would refuse."""
    specs = split_specs(sources, shard_size)
    found = already_there(place_of(path), [] if overwrite else specs)
    if part is None:
        return [_plan(source, source.count, found.get(source.group, 0)) for source in sources]
    shards = [(s, spec.sequences_in(i)) for s, spec in enumerate(specs) for i in range(spec.shards)]
    chosen = [shards[i] for i in part.of(len(shards))]
    counts = [sum(size for of, size in chosen if of == s) for s in range(len(specs))]
    return [_plan(source, count, 0) for source, count in zip(sources, counts, strict=True) if count]


def _plan(source: SplitSource, count: int, found: int) -> Plan:
    sample = min(source.count, SAMPLE_SEQUENCES)
    shards = build_shard(source, 0, sample, shard_sequences(source.arrays, sample, sample), lambda done: None)
    nbytes = sum(len(piece) for pieces in shards.values() for piece in pieces)
    raw_nbytes = count * sum(spec.sequence_nbytes for spec in source.arrays)
    return Plan(source.group, count, found, raw_nbytes, nbytes * count // sample)


def generate(
    sources: Sequence[SplitSource],
    path: StorePath,
    *,
    workers: int = 1,
    shard_size: int | ShardSize | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Outcome:
    """Make what is missing of `sources` in the store at `path`. All settings are checked against the store before
    anything is written. Interrupted by SIGINT or SIGTERM, it drops the shards that are being made and raises
    `InterruptedRunError`."""
    workers = worker_count(workers)
    specs = split_specs(sources, shard_size)
    progress = progress or Progress()
    with StoreWriter(path) as writer:
        if not overwrite:
            writer.check(specs)
        pairs = zip([writer.begin(spec, overwrite=overwrite) for spec in specs], sources, strict=True)
        tasks = [Task(split.spec, source, index, split.add) for split, source in pairs for index in split.missing]
        made, total = sum(task.sequences for task in tasks), sum(spec.count for spec in specs)
        progress.start(total, total - made)
        Workers(writer.pacer, progress).run(tasks, workers)
        writer.finish()
        nbytes = sum(writer.manifest.group_nbytes(spec.group) for spec in specs)
    return Outcome(made=made, found=total - made, nbytes=nbytes, groups=tuple(spec.group for spec in specs))


def worker_count(workers: int | None) -> int:
    if workers is None:
        return available_cores()
    if not 1 <= workers <= MOST_WORKERS:
        allowed = f"allowed are 1 to {MOST_WORKERS} (leave it out for one per core)"
        raise UsageError(f"--workers {workers} is not possible; {allowed}")
    return workers


@dataclass(frozen=True)
class Task:
    spec: SplitSpec
    source: SplitSource
    index: int
    add: Callable[[int, Mapping[str, Sequence[bytes]]], None]

    @property
    def sequences(self) -> int:
        return self.spec.sequences_in(self.index)


class _Stopped(Exception):  # noqa: N818 - a message between threads, not an error
    """Raised inside workers when the run is being abandoned."""


class Workers:
    """Threads that make shards; what is made is committed now and then."""

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
        spec, index = task.spec, task.index
        task.add(index, build_shard(task.source, *spec.shard_range(index), spec.shard, self._tick))

    def _tick(self, sequences: int) -> None:
        self._check()
        self._progress.advance(sequences)


# -- one shard, made in small batches and compressed at once, so that memory stays at a few megabytes


class ShardBuilder:
    """Collects the sequences of one array's shard and compresses every full chunk."""

    def __init__(self, spec: ArraySpec, sequences: int) -> None:
        self._spec = spec
        self._slots = sequences // spec.chunk
        self._chunks: list[bytes] = []
        self._next = np.zeros((spec.chunk if spec.chunk > 1 else 0, *spec.shape), dtype=spec.dtype)  # it fills up
        self._filled = 0  # sequences in it
        self.added = 0  # sequences

    def add(self, values: NDArray[Any], used_nbytes: int | None = None) -> None:
        """`used_nbytes`: of a single sequence, how many bytes may be other than zero."""
        spec = self._spec
        if values.dtype != np.dtype(spec.dtype) or values.shape[1:] != spec.shape:
            raise TypeError(f"{spec.name}: got {values.dtype} {values.shape[1:]}, promised {spec.dtype} {spec.shape}")
        self.added += len(values)
        if spec.chunk == 1:
            self._chunks += [encode_chunk(values[n : n + 1], spec.level, used_nbytes) for n in range(len(values))]
            return
        while len(values):
            taken = min(spec.chunk - self._filled, len(values))
            self._next[self._filled : self._filled + taken] = values[:taken]
            self._filled += taken
            if self._filled == spec.chunk:
                self._chunks.append(encode_chunk(self._next, spec.level))
                self._filled = 0
            values = values[taken:]

    def finish(self) -> list[bytes]:
        """The shard's bytes in pieces; a last chunk that is not full is padded with the fill value, as in any Zarr."""
        if self._filled:
            self.add(np.zeros((self._spec.chunk - self._filled, *self._spec.shape), dtype=self._spec.dtype))
        return assemble_shard(self._chunks, self._slots)


def build_shard(
    source: SplitSource, start: int, stop: int, sequences: int, tick: Callable[[int], None]
) -> dict[str, list[bytes]]:
    """Array name -> bytes, in pieces, of the shard that holds the sequences start..stop-1, with `sequences` slots.
    `tick(n)` is called after every n sequences; what it raises ends the work."""
    builders = {spec.name: ShardBuilder(spec, sequences) for spec in source.arrays}
    counted = source.arrays[0].name
    for part in source.lend(start, stop):
        for name in builders.keys() & part.arrays.keys():
            builders[name].add(part.arrays[name], part.used_nbytes.get(name))
        if counted in part.arrays:
            tick(len(part.arrays[counted]))
    for name, builder in builders.items():
        if builder.added != stop - start:
            raise TypeError(f"{name}: got {builder.added} sequences, promised {stop - start}")
    return {name: builder.finish() for name, builder in builders.items()}
