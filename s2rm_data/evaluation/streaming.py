"""Groups of a store as batches for evaluation, a block of sequences at a time: memory does not grow with the group.

What is looked at in a sequence depends on its number in the group alone, not on blocks, batches or the runs evaluated.
"""

# B sequences, T steps (T + 1 frames), V views

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from s2rm_data.batch import Prediction
from s2rm_data.generators.bballs.loading import BallRequest, BallSource
from s2rm_data.generators.sc2.images import PolarTargets
from s2rm_data.generators.sc2.loading import BattleRequest, BattleSource
from s2rm_data.loading.requests import Request
from s2rm_data.models import Batch, WorldModel
from s2rm_data.seeding import generator
from s2rm_data.store import Group
from s2rm_data.store.reader import StoredArray

BLOCK = 100  # sequences in memory at once
BATCH = {"bballs": 10, "sc2": 4}  # sequences predicted at once
SEED = 0  # of the positions looked at and of the agents dropped


class _ArrayPart:
    def __init__(self, array: StoredArray, start: int, stop: int) -> None:
        self._array, self._start, self._stop = array, start, stop
        self.shape = (stop - start, *array.shape[1:])

    def _slice(self, key: slice) -> slice:
        first, last, step = key.indices(self._stop - self._start)
        return slice(self._start + first, self._start + last, step)

    def __getitem__(self, key: slice) -> NDArray[Any]:
        return self._array[self._slice(key)]

    def packed(self, key: slice) -> NDArray[Any]:
        return self._array.packed(self._slice(key))


class GroupPart:
    """The sequences start..stop-1 of a group, as loading takes groups."""

    def __init__(self, group: Group, start: int, stop: int) -> None:
        self.path, self.settings, self.attributes = group.path, group.settings, group.attributes
        self._group, self._range = group, (start, stop)

    def __len__(self) -> int:
        return self._range[1] - self._range[0]

    def __getitem__(self, name: str) -> _ArrayPart:
        return _ArrayPart(self._group[name], *self._range)


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A batch of whole sequences with what is needed to leave views out of it; `first` is the first one's number."""

    source: BallSource | BattleSource
    requests: Sequence[Request]  # one a sequence
    first: int
    batch: Batch

    @property
    def request(self) -> Any:
        return type(self.requests[0]).joined(list(self.requests))

    def dropped(self, fraction: float) -> Batch:
        """The batch without this fraction of its views. Views dropped at one fraction are dropped at every larger."""
        if not fraction:
            return self.batch
        keep = torch.from_numpy(np.concatenate([self._keep(row, fraction) for row in range(len(self.requests))]))
        steps = self.batch.view_mask.shape[1]
        keep = keep[:, : steps + 1].to(self.batch.view_mask.device)
        masks = {"view_mask": self.batch.view_mask & keep[:, :-1]}
        if self.batch.next_view_mask is not None:
            masks["next_view_mask"] = self.batch.next_view_mask & keep[:, 1:]
        return dataclasses.replace(self.batch, **masks)

    def _keep(self, row: int, fraction: float) -> NDArray[np.bool_]:
        random = generator(SEED, "evaluation/drop", self.first + row)
        request: Any = self.requests[row]
        if isinstance(request, BallRequest):
            return cast(NDArray[np.bool_], cast(BallSource, self.source).drop(random, request, fraction).view_mask)
        assert isinstance(request, BattleRequest)
        return cast(NDArray[np.bool_], cast(BattleSource, self.source).drop(random, request, fraction).keep)


def pieces(group: Group, *, limit: int | None, device: torch.device, batch_size: int | None = None) -> Iterator[Piece]:
    """The first `limit` sequences of a group (None: all), from their first frames to their last."""
    task = group.path.split("/")[0]
    source_class = BallSource if task == "bballs" else BattleSource
    size = batch_size or BATCH[task]
    total = len(group) if limit is None else min(limit, len(group))
    for start in range(0, total, BLOCK):
        part = GroupPart(group, start, min(start + BLOCK, total))
        source: Any = source_class([cast(Group, part)], next_views=True, device=device)
        for first in range(0, len(part), size):
            numbers = range(first, min(first + size, len(part)))
            requests = [
                source.draw_fixed(generator(SEED, "evaluation/views", start + n), np.array([n])) for n in numbers
            ]
            batch = source.batch(type(requests[0]).joined(requests))
            yield Piece(source=source, requests=requests, first=start + first, batch=_trimmed(batch))


def _trimmed(batch: Batch) -> Batch:
    """Without the last steps that have no target in any sequence: battles are shorter than their arrays."""
    asked = batch.query_mask.flatten(2).any(-1).any(0)
    steps = int(asked.nonzero().max()) + 1 if asked.any() else 1
    if steps == batch.query_mask.shape[1]:
        return batch

    def cut(value: Any) -> Any:
        if isinstance(value, PolarTargets):
            return PolarTargets(*(part[:, :steps] for part in value))
        return value[:, :steps] if isinstance(value, Tensor) else value

    return dataclasses.replace(batch, **{f.name: cut(getattr(batch, f.name)) for f in dataclasses.fields(batch)})


class Encoded:
    """A model's encodings of all views of a batch, made once and then used with any of them left out."""

    def __init__(self, model: WorldModel, batch: Batch) -> None:
        self._model = model
        views, position = batch.views, batch.view_position
        if model.needs_next_views:
            assert batch.next_views is not None
            assert batch.next_view_position is not None
            views, position = batch.next_views, batch.next_view_position
        self._s = model.embedding(position)
        self._e = model.encode_views(views, self._s)

    def predict(self, batch: Batch) -> Prediction:
        """As `model(batch)`; the batch may differ from the encoded one in its masks and queries."""
        model = self._model
        mask = batch.next_view_mask if model.needs_next_views else batch.view_mask
        assert mask is not None
        encoded = model.prepare(self._e, self._s, mask)
        hidden, _ = model.unroll(encoded, model.initial_state(mask.shape[0]))
        return model.decode_hidden(hidden, batch.query_position)
