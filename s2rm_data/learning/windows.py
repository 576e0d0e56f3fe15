"""Which sequences make which batch: a function of (seed, epoch, step) in training, always the same in evaluation.

What a batch is to be made of, as small arrays with the batch's rows first: drawn on the host, moved, cut, split."""

from __future__ import annotations

import dataclasses
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, NamedTuple, Self, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from s2rm_data.core.errors import UsageError
from s2rm_data.core.seeding import generator
from s2rm_data.learning.batch import Batch
from s2rm_data.learning.cached import Unit
from s2rm_data.learning.world_learning import Source


@dataclass(frozen=True, kw_only=True)
class Request:
    """Fields are NumPy arrays as drawn, torch tensors after `tensors`."""

    @property
    def view_keep(self) -> Any:
        """(B, T + 1, V) bool: views that are not dropped from a batch made before; None has the batch made again."""
        return None

    def replaced(self, **fields: Any) -> Self:
        return dataclasses.replace(self, **fields)

    def _mapped(self, function: Callable[[Any], Any]) -> Self:
        return self.replaced(**{f.name: function(getattr(self, f.name)) for f in dataclasses.fields(self)})

    def rows(self, which: slice) -> Self:
        return self._mapped(lambda values: values[which])

    def tensors(self, *, pin: bool = False) -> Self:
        def tensor(values: Any) -> torch.Tensor:
            made = values if isinstance(values, torch.Tensor) else torch.from_numpy(np.ascontiguousarray(values))
            return made.pin_memory() if pin else made

        return self._mapped(tensor)

    def moved(self, device: torch.device) -> Self:
        return self._mapped(lambda values: values.to(device, non_blocking=True))

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Several requests, one after the other."""
        names = [f.name for f in dataclasses.fields(cls)]
        return cls(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})


def drop_count(fraction: float, views: int) -> int:
    """How many of the views a fraction is; it must come out whole, so that it is what it says."""
    check_fraction(fraction)
    count = round(fraction * views)
    if abs(count - fraction * views) > 1e-6:
        raise UsageError(f"{fraction:g} of {views} views is not a whole number; drop a multiple of {1 / views:g}")
    return count


def check_fraction(fraction: float) -> None:
    if not 0 <= fraction <= 1:
        raise UsageError(f"a fraction of {fraction:g} of the views cannot be dropped; allowed are 0 to 1")


def window_steps(steps: int | None, frames: int, where: str) -> int:
    """T, checked against the frames there are."""
    if frames < 2:
        raise UsageError(f"{where}: sequences of {frames} frame have nothing to predict; make them of at least 2")
    if steps is None:
        return frames - 1
    if not 1 <= steps < frames:
        raise UsageError(
            f"windows of {steps} steps do not fit {where}; with {frames} frames allowed are 1 to {frames - 1}"
        )
    return steps


@dataclass(frozen=True, kw_only=True)
class Share:
    """Process `rank` of `count`: it loads its rows of every batch. Draws are made for whole batches, so that the
    processes' rows together are the batch of a single process."""

    rank: int = 0
    count: int = 1

    def rows(self, rows: int) -> slice:
        return slice(self.rank * rows // self.count, (self.rank + 1) * rows // self.count)


class TrainingBatches:
    """Every sequence once per epoch in a new order, each with a random window; the last, smaller batch is left out.
    With `shuffle_shards`, the order is one that a small cache can follow: shards in a new order, and the sequences of
    so many shards at a time in a new order. Like all orders it is a function of (seed, epoch)."""

    def __init__(
        self,
        source: Source,
        *,
        batch_size: int,
        seed: int,
        share: Share | None = None,
        shuffle_shards: int | None = None,
    ) -> None:
        if batch_size < 1:
            raise UsageError(f"batch size {batch_size} is not possible; allowed are 1 or more")
        self.source, self.batch_size, self.seed = source, batch_size, seed
        self.share = share or Share()
        if batch_size % self.share.count:
            raise UsageError(
                f"a batch of {batch_size} cannot be shared evenly by {self.share.count} processes; "
                f"make the batch size a multiple of {self.share.count}"
            )
        self.steps_per_epoch = max(1, len(source) // batch_size)
        self._shuffle_shards = shuffle_shards
        if shuffle_shards and not source.units:
            named = ", ".join(source.groups)
            raise UsageError(f"{named}: this world cannot shuffle by shards; leave out shuffle_shards")
        self._order = lru_cache(maxsize=2)(self._epoch_order)

    def _epoch_order(self, epoch: int) -> Order:
        random = generator(self.seed, "loading/order", epoch)
        if self._shuffle_shards:
            order = _block_order(random, self.source.units, self._shuffle_shards)
        else:
            order = Order(random.permutation(len(self.source)))
        # Fewer sequences than a batch: some come twice.
        return order._replace(sequences=np.resize(order.sequences, max(len(self.source), self.batch_size)))

    def request(self, epoch: int, step: int) -> Any:
        """`step` counts within the epoch."""
        if not 0 <= step < self.steps_per_epoch:
            raise IndexError(f"step {step} of an epoch of {self.steps_per_epoch}")
        order, first = self._order(epoch), step * self.batch_size
        if self.source.cached is not None and order.blocks:
            here = int(np.searchsorted(order.ends, first, side="right"))
            for block in order.blocks[here : here + 2]:  # the next one is fetched while this one is used
                self.source.cached.want(block)
        sequence = order.sequences[first : first + self.batch_size]
        request = self.source.sample(generator(self.seed, "loading/windows", epoch, step), sequence)
        return request.rows(self.share.rows(self.batch_size))

    def batch(self, epoch: int, step: int) -> Batch:
        return self.source.batch(self.request(epoch, step))

    def keys_from(self, epoch: int, step: int) -> Iterator[tuple[int, int]]:
        """(epoch, step) from there on, without end."""
        while True:
            for within in range(step, self.steps_per_epoch):
                yield epoch, within
            epoch, step = epoch + 1, 0


class Order(NamedTuple):
    """Of the sequences of an epoch. `blocks` are units of the cache that are used together, up to `ends`."""

    sequences: NDArray[np.int64]
    blocks: list[NDArray[np.int64]] = []
    ends: NDArray[np.int64] = np.zeros(0, np.int64)


def _block_order(random: np.random.Generator, units: Sequence[Unit], shards: int) -> Order:
    order = random.permutation(len(units))
    blocks = [order[start : start + shards] for start in range(0, len(order), shards)]
    ranges = [[np.arange(units[number].start, units[number].stop) for number in block] for block in blocks]
    pieces = [random.permutation(np.concatenate(parts)) for parts in ranges]
    return Order(np.concatenate(pieces), blocks, np.cumsum([len(piece) for piece in pieces]))


class FixedBatches:
    """Every sequence once, in order, from its first frame; what is looked at depends on the sequence's number alone.
    So neither the batch size nor the number of processes changes it. `drop` leaves out that fraction of the views."""

    def __init__(
        self, source: Source, *, batch_size: int, seed: int = 0, drop: float = 0.0, share: Share | None = None
    ) -> None:
        if batch_size < 1:
            raise UsageError(f"batch size {batch_size} is not possible; allowed are 1 or more")
        self.source, self.batch_size, self.seed, self.drop = source, batch_size, seed, drop
        rows = (share or Share()).rows(len(source))
        self._sequences = range(rows.start, rows.stop)

    def __len__(self) -> int:
        return -(-len(self._sequences) // self.batch_size)

    @property
    def sequences(self) -> int:
        """How many there are in this process's share."""
        return len(self._sequences)

    def request(self, number: int) -> Any:
        numbers = self._sequences[number * self.batch_size : (number + 1) * self.batch_size]
        parts = [self._one(n) for n in numbers]
        return type(parts[0]).joined(parts)

    def _one(self, sequence: int) -> Request:
        random = generator(self.seed, "loading/fixed", sequence)
        request = self.source.sample_fixed(random, np.array([sequence]))
        if not self.drop:
            return request
        return self.source.drop(generator(self.seed, "loading/drop", sequence), request, self.drop)

    def requests(self) -> Iterator[Any]:
        return (self.request(number) for number in range(len(self)))

    def __iter__(self) -> Iterator[Batch]:
        return (self.source.batch(request) for request in self.requests())


K = TypeVar("K")


class Prefetcher(Generic[K]):
    """Batches made ahead of time by threads, handed out in order; the threads' work releases the interpreter lock.
    Iterates over (key, batch); `waited_seconds` is how long the consumer had to wait for data in all.
    `request` makes a request of a key, in a thread. At most `depth` batches are ahead. What comes out does not depend
    on the number of threads. Use it as a context manager, or close it."""

    def __init__(
        self, source: Source, keys: Iterable[K], request: Callable[[K], Any], *, threads: int = 1, depth: int = 2
    ) -> None:
        self._source, self._keys, self._request = source, iter(keys), request
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="loading")
        self._ahead: deque[tuple[K, Future[Any]]] = deque()
        self.waited_seconds = 0.0
        for _ in range(max(depth, threads)):
            self._submit()

    def _submit(self) -> None:
        for key in self._keys:
            self._ahead.append((key, self._pool.submit(lambda key: self._source.prepare(self._request(key)), key)))
            return

    def __iter__(self) -> Iterator[tuple[K, Batch]]:
        return self

    def __next__(self) -> tuple[K, Batch]:
        if not self._ahead:
            self.close()
            raise StopIteration
        begun = time.perf_counter()
        key, future = self._ahead.popleft()
        prepared = future.result()
        self.waited_seconds += time.perf_counter() - begun
        self._submit()
        return key, self._source.finish(prepared)

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._ahead.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
