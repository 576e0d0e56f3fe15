"""Sequences that are read through a store's cache when they are needed, instead of being held in memory."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from s2rm_data.store import Group


class Unit(NamedTuple):
    """A shard of one group, as the range of sequences that it is in a source."""

    group: int
    shard: int
    start: int
    stop: int


def has_cache(group: Group) -> bool:
    """Whether a group is read through a cache. Blocks of a group, which evaluation takes, are held in memory."""
    return group.in_shards and group.store.cache is not None


def shard_units(groups: Sequence[Group], limit: int | None) -> list[Unit]:
    """The shards of several groups one after the other; of each group only the first `limit` sequences."""
    units: list[Unit] = []
    first = 0
    for number, group in enumerate(groups):
        if not group.in_shards:
            return []
        count = len(group) if limit is None else min(limit, len(group))
        size = next(iter(group.arrays.values())).layout.shard
        for shard, start in enumerate(range(0, count, size)):
            units.append(Unit(number, shard, first + start, first + min(start + size, count)))
        first += count
    return units


class CachedSequences:
    """The arrays `names` of several groups one after the other; of each group only the first `limit` sequences."""

    def __init__(self, groups: Sequence[Group], names: Sequence[str], limit: int | None) -> None:
        self._groups, self._names = list(groups), tuple(names)
        cache = groups[0].store.cache
        assert cache is not None, "only a store with a cache is read through it"
        self._cache = cache
        counts = [len(group) if limit is None else min(limit, len(group)) for group in groups]
        self._first = np.cumsum([0, *counts])
        self._units = shard_units(groups, limit)

    def __len__(self) -> int:
        return int(self._first[-1])

    @property
    def unit_nbytes(self) -> list[int]:
        """Of each unit in the cache."""
        return [sum(self._groups[u.group][n].shard_nbytes(u.shard) for n in self._names) for u in self._units]

    def packed(self, name: str, sequence: NDArray[np.int64]) -> NDArray[np.uint8]:
        """(B, ...) values of an array as they are stored, in the order asked for."""
        member = np.searchsorted(self._first, sequence, side="right") - 1
        found = None
        for g in np.unique(member):
            rows = np.flatnonzero(member == g)
            values = self._groups[g][name].packed(sequence[rows] - self._first[g])
            found = np.empty((len(sequence), *values.shape[1:]), values.dtype) if found is None else found
            found[rows] = values
        assert found is not None
        return found

    def want(self, units: Iterable[int]) -> None:
        """Fetch units in the background: they will be read soon."""
        for number in units:
            unit = self._units[number]
            for name in self._names:
                self._cache.want(self._groups[unit.group][name], unit.shard)
