"""What is in a group, in numbers: one pass over its arrays, block by block, so that memory does not grow with it."""

# N sequences, T steps

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from s2rm_data.core.progress import Progress
from s2rm_data.store import Group

BLOCK = 200  # sequences read at once


@dataclass(frozen=True, kw_only=True)
class GroupStats:
    """`row` is the group's column of the table, and `details` are further lines of it that JSON gives otherwise. Maps
    are (side, side) arrays; histograms (edges, counts); curves (T,) arrays."""

    group: str
    generator: str
    row: dict[str, Any]
    details: dict[str, Any] = field(default_factory=dict)
    maps: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    histograms: dict[str, tuple[NDArray[Any], NDArray[Any]]] = field(default_factory=dict)
    curves: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    shares: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        maps, curves = ({n: np.round(v, 6).tolist() for n, v in of.items()} for of in (self.maps, self.curves))
        shown = {n: {"edges": e.tolist(), "counts": c.tolist()} for n, (e, c) in self.histograms.items()}
        drawn = {"maps": maps, "histograms": shown, "curves": curves, "shares": self.shares}
        return {"generator": self.generator, **self.row, **drawn}

    @property
    def short_name(self) -> str:
        return self.group.removeprefix(f"{self.generator}/")


def blocks(group: Group, names: Sequence[str], progress: Progress) -> Iterator[dict[str, NDArray[Any]]]:
    """Arrays of some sequences at a time; `progress` is advanced by sequences."""
    for start in range(0, len(group), BLOCK):
        stop = min(start + BLOCK, len(group))
        yield {name: group[name][start:stop] for name in names}
        progress.advance(stop - start)


class Moments:
    def __init__(self) -> None:
        self.count, self.sum, self.squares, self.low, self.high = 0, 0.0, 0.0, math.inf, -math.inf

    def add(self, values: NDArray[Any]) -> None:
        if values.size:
            self.count += values.size
            self.sum += float(values.sum(dtype=np.float64))
            self.squares += float(np.square(values, dtype=np.float64).sum())
            self.low, self.high = min(self.low, float(values.min())), max(self.high, float(values.max()))

    @property
    def mean(self) -> float:
        return self.sum / max(self.count, 1)

    @property
    def deviation(self) -> float:
        return math.sqrt(max(self.squares / max(self.count, 1) - self.mean**2, 0.0))


def array_stats(group: Group, progress: Progress) -> GroupStats:
    """Of any group: count, mean, standard deviation, minimum and maximum of every array, and its mean at each step."""
    names = [name for name, array in group.arrays.items() if array.dtype.kind in "biuf"]
    moments = {name: Moments() for name in names}
    sums = {name: np.zeros((group[name].shape[1:] or (1,))[0]) for name in names}
    for block in blocks(group, names, progress):
        for name, values in block.items():
            moments[name].add(values)
            sums[name] += values.reshape(len(values), len(sums[name]), -1).sum((0, 2), dtype=np.float64)
    row: dict[str, Any] = {"sequences": len(group)}
    for name, found in moments.items():
        low, high = (round(end, 6) if found.count else None for end in (found.low, found.high))
        own = {"count": found.count, "mean": round(found.mean, 6), "sd": round(found.deviation, 6)}
        row |= {f"{name}_{key}": value for key, value in {**own, "min": low, "max": high}.items()}
    curves = {name: sums[name] * len(sums[name]) / max(moments[name].count, 1) for name in names}
    return GroupStats(group=group.path, generator=str(group.settings["generator"]), row=row, curves=curves)


def wilson(hits: int, total: int) -> tuple[float, float]:
    """95% interval of a share (Wilson 1927), which stays within 0 and 1 for few or extreme counts."""
    from scipy.stats import binomtest

    if not total:
        return 0.0, 1.0
    interval = binomtest(hits, total).proportion_ci(0.95, method="wilson")
    return float(interval.low), float(interval.high)
