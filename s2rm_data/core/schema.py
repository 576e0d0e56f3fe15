"""What a generator promises a store: which arrays a split has, and how to make any range of its sequences.

Generators describe themselves with these two types and know no store; the store writes them and knows no generator."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np

BATCH_NBYTES = 2 << 20  # raw bytes of all arrays that a worker holds at once


@dataclass(frozen=True, kw_only=True)
class ArraySpec:
    """One array of a split. The first dimension, `sequence` or `episode`, is the store's; `shape` is what follows it.
    `chunk` sequences are compressed together at zstd `level`; `dims` names the dimensions after the first. `attributes`
    are stored with the array: `description`, and `units` where there are any."""

    name: str
    dtype: str  # NumPy name: "uint8", "float32", "bool", ...
    shape: tuple[int, ...]
    dims: tuple[str, ...]
    description: str
    units: str = ""
    chunk: int = 1
    level: int = 3
    attributes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def sequence_nbytes(self) -> int:
        import numpy as np  # here, so that to describe a world costs no import of it

        return math.prod(self.shape) * np.dtype(self.dtype).itemsize


class Lent(NamedTuple):
    """The next sequences of some arrays, (n, *spec.shape) by array name, in memory that is used again later.
    `used_nbytes`: how many bytes of a single sequence may be other than zero, where that is known; all after them are
    zero."""

    arrays: dict[str, np.ndarray]
    used_nbytes: dict[str, int]


class SplitSource(ABC):
    """A split that can be made: `produce` is a pure function of its arguments and `settings`. `count` is the number of
    sequences, `first_dim` the name of the first dimension: `sequence` or `episode`. `produce` is called from several
    threads at once and should leave the interpreter lock to others while it computes."""

    count: int
    first_dim: str = "sequence"

    @property
    @abstractmethod
    def group(self) -> str:
        """Path in the store, such as `bballs/train`."""

    @property
    @abstractmethod
    def arrays(self) -> tuple[ArraySpec, ...]: ...

    @property
    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """JSON: generator, generator version, config, seed. Equal settings mean equal content."""

    @property
    @abstractmethod
    def attributes(self) -> dict[str, Any]:
        """JSON for readers, no part of what decides the content: command, citation, meaning of categories."""

    @abstractmethod
    def produce(self, start: int, stop: int) -> dict[str, np.ndarray]:
        """Arrays of the sequences start..stop-1, each (stop - start, *spec.shape) of the spec's dtype."""

    def lend(self, start: int, stop: int) -> Iterator[Lent]:
        """The sequences start..stop-1 in parts; each is good until the next is asked for. In the end every array has
        come whole and in order, perhaps some one by one and others many at a time. By default a few megabytes of
        `produce` at a time."""
        step = max(1, BATCH_NBYTES // sum(array.sequence_nbytes for array in self.arrays))
        for first in range(start, stop, step):
            yield Lent(self.produce(first, min(first + step, stop)), {})
