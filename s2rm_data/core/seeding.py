"""Seeds: sequence i of a stream (a name such as `bballs/train`) is a pure function of (seed, stream, i), whoever makes
it.

The i-th 64-bit output of the counter-based generator Philox-4x64-10, keyed by SHA-256 of the run's seed and the stream,
is the seed of sequence i; it is stored with the sequence, and from it alone (and the config) the sequence can be made
again. Inside compiled code `s2rm_data.core.philox` is the same generator."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from s2rm_data.core.errors import UsageError

MAX_SEED = 2**63 - 1


def stream_key(seed: int, stream: str) -> NDArray[np.uint64]:
    """The two 64-bit words that key the generator of a stream."""
    if not 0 <= seed <= MAX_SEED:
        raise UsageError(f"seed {seed} is out of range; allowed are whole numbers from 0 to {MAX_SEED}")
    digest = hashlib.sha256(f"s2rm-data/{seed}/{stream}".encode()).digest()
    return np.frombuffer(digest[:16], dtype="<u8").astype(np.uint64)


def sequence_seeds(seed: int, stream: str, start: int, stop: int) -> NDArray[np.uint64]:
    """Seeds of the sequences start..stop-1 of a stream, (stop - start,) uint64; random access at constant cost."""
    bits = np.random.Philox(key=stream_key(seed, stream))
    bits.advance(start // 4)
    return bits.random_raw(stop - start + start % 4)[start % 4 :]


def generator(seed: int, stream: str, *counters: int) -> np.random.Generator:
    """A NumPy generator for (seed, stream, counters): up to three counters, such as epoch and step."""
    words = np.zeros(4, dtype=np.uint64)
    words[1 : 1 + len(counters)] = counters
    return np.random.Generator(np.random.Philox(key=stream_key(seed, stream), counter=words))
