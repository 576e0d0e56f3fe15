"""Sequences as a torch Dataset, for people who bring their own training loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from s2rm_data.batch import map_tensors
from s2rm_data.loading.groups import open_groups
from s2rm_data.seeding import generator
from s2rm_data.store import Group


class WindowDataset(Dataset[dict[str, Any]]):
    """Item i is one window of sequence i: a function of (seed, epoch, i), whichever process makes it.

    The epoch is kept in shared memory, so that the workers of a `DataLoader` see `set_epoch` even while they live on.
    """

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
