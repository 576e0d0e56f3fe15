"""Groups of a store as a source of batches, and as a plain PyTorch `Dataset`."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from s2rm_data.core.errors import UsageError, did_you_mean
from s2rm_data.core.registry import WORLDS
from s2rm_data.core.seeding import generator
from s2rm_data.learning.batch import map_tensors
from s2rm_data.learning.world_learning import Source
from s2rm_data.making.world import world_of
from s2rm_data.store import Group, Store


def groups_of(store: Store, task: str, split: str) -> list[str]:
    """Paths such as `WORLD/train`, or `WORLD/SCENARIO/train` for every scenario."""
    found = [path for path in store.groups if path.startswith(f"{task}/") and path.endswith(f"/{split}")]
    if found:
        return found
    for path in unfinished_groups(store, task, split):
        there, total = store.unfinished[path]
        raise UsageError(
            f"{store.path}: {path} is unfinished, {there} of {total} shards are there; "
            "run the command that makes it again to finish it"
        )
    it_has = f"it has {', '.join(store.groups) or 'nothing yet'}"
    splits = {path.rsplit("/", 1)[-1] for path in store.groups if path.startswith(f"{task}/")}
    raise UsageError(
        f"{store.path} has no split {split!r} of the world {task}{did_you_mean(split, splits, it_has)}. "
        f"Make one with: s2rm-data {task} --out {store.path}"
    )


def unfinished_groups(store: Store, task: str, split: str) -> list[str]:
    """Paths of groups that are left out because their making was interrupted."""
    return [path for path in store.unfinished if path.startswith(f"{task}/") and path.endswith(f"/{split}")]


def tasks_of(store: Store) -> list[str]:
    """The worlds that have a training split."""
    paths = [path for path in store.groups if path.endswith("/train")]
    return [world for world in WORLDS.names() if any(path.startswith(f"{world}/") for path in paths)]


def open_source(store: Store, task: str, split: str, **options: Any) -> Source:
    """All groups of a split together; options as for the world's `Learning.open`."""
    return open_groups([store[path] for path in groups_of(store, task, split)], **options)


def open_groups(groups: list[Group], **options: Any) -> Source:
    """Groups of one world together."""
    worlds = {world_of(group).name for group in groups}
    if len(worlds) != 1:
        raise UsageError(f"groups of different worlds cannot be loaded together: {', '.join(sorted(worlds))}")
    return world_of(groups[0]).learning().open(groups, **options)


class WindowDataset(Dataset[dict[str, Any]]):
    """Item i is one window of sequence i: a function of (seed, epoch, i), whichever process makes it.
    The epoch is kept in shared memory, so that the workers of a `DataLoader` see `set_epoch` while they live on."""

    def __init__(self, groups: Sequence[Group], *, window: int | None = None, seed: int = 0, **options: Any) -> None:
        self.source = open_groups(list(groups), steps=window, device="cpu", **options)
        self.seed, self._whole = seed, window is None
        self._epoch = torch.zeros(1, dtype=torch.int64).share_memory_()

    def __len__(self) -> int:
        return len(self.source)

    def set_epoch(self, epoch: int) -> None:
        """Take other windows, or look elsewhere, in what follows."""
        self._epoch[0] = epoch

    def __getitem__(self, index: int) -> dict[str, Any]:
        """Views, positions, masks and targets of one window: the fields of a `Batch` without their first dimension."""
        length = len(self)
        if not -length <= index < length:
            raise IndexError(f"item {index} of a dataset of {length}")
        index %= length
        random = generator(self.seed, "dataset", int(self._epoch), index)
        take = self.source.sample_fixed if self._whole else self.source.sample
        batch = self.source.batch(take(random, np.array([index])))
        tensors = {name: value for name, value in vars(batch).items() if not name.endswith("_count")}
        items = {name: map_tensors(value, _first) for name, value in tensors.items()}
        return {name: value for name, value in items.items() if value is not None}

    def __repr__(self) -> str:
        return f"<WindowDataset of {len(self)} sequences of {', '.join(self.source.groups)}, {self.source.steps} steps>"


def _first(tensor: Tensor) -> Tensor:
    return tensor[0].contiguous()
