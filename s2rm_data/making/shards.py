"""One shard from one source: made in small batches and compressed at once, so that memory stays at a few megabytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from s2rm_data.schema import ArraySpec, LendingSource, Lent, SplitSource
from s2rm_data.store.codec import assemble_shard, encode_chunk

BATCH_NBYTES = 2 << 20  # raw bytes of all arrays that a worker holds at once


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
            for number in range(len(values)):
                self._chunks.append(encode_chunk(values[number : number + 1], spec.level, used_nbytes))
            return
        while len(values):
            if self._filled == 0 and len(values) >= spec.chunk:
                taken = spec.chunk
                self._chunks.append(encode_chunk(values[:taken], spec.level))
            else:
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
            pad = np.zeros((self._spec.chunk - self._filled, *self._spec.shape), dtype=self._spec.dtype)
            self.add(pad)
        return assemble_shard(self._chunks, self._slots)


def batch_sequences(arrays: tuple[ArraySpec, ...]) -> int:
    return max(1, BATCH_NBYTES // sum(array.sequence_nbytes for array in arrays))


def build_shard(
    source: SplitSource, start: int, stop: int, sequences: int, tick: Callable[[int], None]
) -> dict[str, list[bytes]]:
    """Array name -> bytes, in pieces, of the shard that holds the sequences start..stop-1, with `sequences` slots.

    `tick(n)` is called after every n sequences; what it raises ends the work.
    """
    builders = {spec.name: ShardBuilder(spec, sequences) for spec in source.arrays}
    counted = source.arrays[0].name
    for part in _parts(source, start, stop):
        for name in builders.keys() & part.arrays.keys():
            builders[name].add(part.arrays[name], part.used_nbytes.get(name))
        if counted in part.arrays:
            tick(len(part.arrays[counted]))
    for name, builder in builders.items():
        if builder.added != stop - start:
            raise TypeError(f"{name}: got {builder.added} sequences, promised {stop - start}")
    return {name: builder.finish() for name, builder in builders.items()}


def _parts(source: SplitSource, start: int, stop: int) -> Iterator[Lent]:
    """As a source lends them, else a few megabytes at a time."""
    if isinstance(source, LendingSource):
        yield from source.lend(start, stop)
        return
    step = batch_sequences(source.arrays)
    for first in range(start, stop, step):
        yield Lent(source.produce(first, min(first + step, stop)), {})
