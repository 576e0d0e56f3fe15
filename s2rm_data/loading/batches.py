"""Which sequences make which batch: a function of (seed, epoch, step) in training, always the same in evaluation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from s2rm_data.batch import Batch
from s2rm_data.errors import UsageError
from s2rm_data.learning import Source
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
    """Every sequence once per epoch in a new order, each with a random window; the last, smaller batch is left out."""

    def __init__(self, source: Source, *, batch_size: int, seed: int, share: Share | None = None) -> None:
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
        self._order = lru_cache(maxsize=2)(self._epoch_order)

    def _epoch_order(self, epoch: int) -> NDArray[np.int64]:
        order = generator(self.seed, "loading/order", epoch).permutation(len(self.source))
        return np.resize(order, max(len(order), self.batch_size))  # fewer sequences than a batch: some come twice

    def request(self, epoch: int, step: int) -> Any:
        """`step` counts within the epoch."""
        if not 0 <= step < self.steps_per_epoch:
            raise IndexError(f"step {step} of an epoch of {self.steps_per_epoch}")
        sequence = self._order(epoch)[step * self.batch_size : (step + 1) * self.batch_size]
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
