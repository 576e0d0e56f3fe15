"""Which groups of a store a task's split has, and opening them as a source of batches."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from s2rm_data.errors import UsageError, did_you_mean
from s2rm_data.models.batch import Batch
from s2rm_data.store import Group, Store

TASKS = ("bballs", "sc2")


class Source(Protocol):
    """Sequences of a task in memory, and how windows of them become batches. Methods may be called from any thread."""

    task: str
    groups: list[str]
    steps: int  # T of every window
    device: torch.device

    def __len__(self) -> int:
        """Number of sequences."""

    def draw(self, random: np.random.Generator, sequence: NDArray[np.int64]) -> Any: ...

    def draw_fixed(self, random: np.random.Generator, sequence: NDArray[np.int64]) -> Any: ...

    def drop(self, random: np.random.Generator, request: Any, fraction: float) -> Any: ...

    def prepare(self, request: Any) -> Any: ...

    def finish(self, prepared: Any) -> Batch: ...

    def batch(self, request: Any) -> Batch: ...

    @property
    def image_size(self) -> tuple[int, int]: ...

    @property
    def arena_size(self) -> tuple[float, float]: ...


def groups_of(store: Store, task: str, split: str) -> list[str]:
    """Paths such as `bballs/train`, or `sc2/3s5z/train` for every scenario."""
    for path, (there, total) in store.unfinished.items():
        if path.startswith(f"{task}/") and path.endswith(f"/{split}"):
            raise UsageError(
                f"{store.path}: {path} is unfinished, {there} of {total} shards are there; "
                "run the command that makes it again to finish it"
            )
    found = [path for path in store.groups if path.startswith(f"{task}/") and path.endswith(f"/{split}")]
    if found:
        return found
    listed = ", ".join(store.groups) or "nothing yet"
    splits = {path.rsplit("/", 1)[-1] for path in store.groups if path.startswith(f"{task}/")}
    raise UsageError(
        f"{store.path} has no split {split!r} of the task {task}{did_you_mean(split, splits)}; it has {listed}. "
        f"Make one with: s2rm-data {task} --out {store.path}"
    )


def tasks_of(store: Store, split: str = "train") -> list[str]:
    """The tasks that have this split."""
    return [t for t in TASKS if any(p.startswith(f"{t}/") and p.endswith(f"/{split}") for p in store.groups)]


def open_source(store: Store, task: str, split: str, **options: Any) -> Source:
    """All groups of a split together; options as for BallSource or BattleSource."""
    return open_groups([store[path] for path in groups_of(store, task, split)], **options)


def open_groups(groups: list[Group], **options: Any) -> Source:
    """Groups of one task together."""
    from s2rm_data.loading.balls import BallSource
    from s2rm_data.loading.battles import BattleSource

    if groups[0].path.split("/")[0] == "bballs":
        return BallSource(groups, **options)
    return BattleSource(groups, **options)
