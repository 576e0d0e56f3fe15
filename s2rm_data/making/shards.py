"""One shard from one source: made in small batches and compressed at once, so that memory stays at a few megabytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from s2rm_data.schema import ArraySpec, SplitSource
from s2rm_data.store.codec import assemble_shard, encode_chunk

BATCH_NBYTES = 2 << 20  # raw bytes of all arrays that a worker holds at once


class ShardBuilder:
    """Collects the sequences of one array's shard and compresses every full chunk."""

    def __init__(self, spec: ArraySpec, sequences: int) -> None:
        self._spec = spec
        self._slots = sequences // spec.chunk
        self._chunks: list[bytes] = []
        self._rest = np.empty((0, *spec.shape), dtype=spec.dtype)

    def add(self, values: NDArray[Any]) -> None:
        spec = self._spec
        if values.dtype != np.dtype(spec.dtype) or values.shape[1:] != spec.shape:
            raise TypeError(f"{spec.name}: got {values.dtype} {values.shape[1:]}, promised {spec.dtype} {spec.shape}")
        values = np.concatenate([self._rest, values]) if len(self._rest) else values
        full = len(values) - len(values) % spec.chunk
        for start in range(0, full, spec.chunk):
            self._chunks.append(encode_chunk(values[start : start + spec.chunk], spec.level))
        self._rest = values[full:].copy()

    def finish(self) -> list[bytes]:
        """The shard's bytes in pieces; a last chunk that is not full is padded with the fill value, as in any Zarr."""
        if len(self._rest):
            pad = np.zeros((self._spec.chunk - len(self._rest), *self._spec.shape), dtype=self._spec.dtype)
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
    step = batch_sequences(source.arrays)
    for first in range(start, stop, step):
        last = min(first + step, stop)
        values = source.produce(first, last)
        for name, builder in builders.items():
            builder.add(values[name])
        tick(last - first)
    return {name: builder.finish() for name, builder in builders.items()}
