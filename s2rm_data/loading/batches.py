"""Which sequences make which batch: a function of (seed, epoch, step) in training, always the same in evaluation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from s2rm_data.batch import Batch
from s2rm_data.errors import UsageError
from s2rm_data.learning import Source
from s2rm_data.loading.cached import CachedSequences, Unit
from s2rm_data.loading.requests import Request
from s2rm_data.seeding import generator


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
    so many shards at a time in a new order. Like all orders it is a function of (seed, epoch).
    """

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
        self._units: Sequence[Unit] = getattr(source, "units", ())
        if shuffle_shards and not self._units:
            raise UsageError(
                f"{', '.join(source.groups)}: this world cannot shuffle by shards; leave out shuffle_shards"
            )
        self._cached: CachedSequences | None = getattr(source, "cached", None)
        self._order = lru_cache(maxsize=2)(self._epoch_order)

    def _epoch_order(self, epoch: int) -> Order:
        random = generator(self.seed, "loading/order", epoch)
        if self._shuffle_shards:
            order = _block_order(random, self._units, self._shuffle_shards)
        else:
            order = Order(random.permutation(len(self.source)))
        # Fewer sequences than a batch: some come twice.
        return order._replace(sequences=np.resize(order.sequences, max(len(self.source), self.batch_size)))

    def request(self, epoch: int, step: int) -> Any:
        """`step` counts within the epoch."""
        if not 0 <= step < self.steps_per_epoch:
            raise IndexError(f"step {step} of an epoch of {self.steps_per_epoch}")
        order, first = self._order(epoch), step * self.batch_size
        if self._cached is not None and order.blocks:
            here = int(np.searchsorted(order.ends, first, side="right"))
            for block in order.blocks[here : here + 2]:  # the next one is fetched while this one is used
                self._cached.want(block)
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

    So neither the batch size nor the number of processes changes it. `drop` leaves out that fraction of the views.
    """

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
