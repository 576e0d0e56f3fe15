"""Groups of a store as batches for evaluation, a block of sequences at a time: memory does not grow with the group.

What is looked at in a sequence depends on its number in the group alone, not on blocks, batches or the runs evaluated.
"""

# B sequences, T steps (T + 1 frames), V views

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from s2rm_data.core.seeding import generator
from s2rm_data.learning.batch import Batch, Prediction
from s2rm_data.learning.windows import Request
from s2rm_data.learning.world_learning import Source
from s2rm_data.making.world import world_of
from s2rm_data.models import WorldModel
from s2rm_data.store import Group
from s2rm_data.store.reader import StoredArray

BLOCK = 100  # sequences in memory at once
SEED = 0  # of the positions looked at and of the views dropped
View = Mapping[str, Any] | None  # `Run.view`


class _ArrayPart(StoredArray):
    """The sequences start..stop-1 of an array."""

    def __init__(self, array: StoredArray, start: int, stop: int) -> None:
        super().__init__(array._store, array.layout)
        self._whole, self._inside = array, np.arange(start, stop)

    @property
    def shape(self) -> tuple[int, ...]:
        return len(self), *self._whole.shape[1:]

    def __len__(self) -> int:
        return len(self._inside)

    def __getitem__(self, key: Any) -> NDArray[Any]:
        return self._whole[self._inside[key]]

    def packed(self, key: Any) -> NDArray[Any]:
        return self._whole.packed(self._inside[key])


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A batch of whole sequences with what is needed to leave views out of it; `first` is the first one's number."""

    source: Source
    requests: Sequence[Request]  # one per sequence
    first: int
    batch: Batch

    @property
    def request(self) -> Any:
        return type(self.requests[0]).joined(list(self.requests))

    def dropped_request(self, fraction: float) -> Any:
        """`request` without this fraction of its views. Views dropped at one fraction are dropped at every larger."""
        if not fraction:
            return self.request
        parts = [
            self.source.drop(generator(SEED, "evaluation/drop", self.first + row), request, fraction)
            for row, request in enumerate(self.requests)
        ]
        return type(parts[0]).joined(parts)

    def dropped(self, fraction: float) -> Batch:
        """The batch without this fraction of its views."""
        if not fraction:
            return self.batch
        request = self.dropped_request(fraction)
        steps = self.batch.view_mask.shape[1]
        if request.view_keep is None:
            return self.source.batch(request).mapped(lambda tensor: tensor[:, :steps])
        keep = torch.from_numpy(request.view_keep[:, : steps + 1]).to(self.batch.view_mask.device)
        masks: dict[str, Any] = {"view_mask": self.batch.view_mask & keep[:, :-1]}
        if self.batch.next_view_mask is not None:
            masks["next_view_mask"] = self.batch.next_view_mask & keep[:, 1:]
        return dataclasses.replace(self.batch, **masks)


def pieces(
    group: Group, *, limit: int | None, device: torch.device, view: View = None, batch_size: int | None = None
) -> Iterator[Piece]:
    """The first `limit` sequences of a group (None: all), from their first frames to their last."""
    total, size = count(group, limit), batch_size or world_of(group).learning().evaluation_batch
    for start in range(0, total, BLOCK):
        yield from _block(group, range(start, min(start + BLOCK, total)), size, device, view)


def piece_of(group: Group, number: int, *, device: torch.device, view: View = None) -> Piece:
    """One sequence of a group, looked at as `pieces` looks at it."""
    return next(_block(group, range(number, number + 1), 1, device, view))


def _block(group: Group, numbers: range, size: int, device: torch.device, view: View) -> Iterator[Piece]:
    part = copy.copy(group)
    part.in_shards = False
    part.arrays = {name: _ArrayPart(array, numbers.start, numbers.stop) for name, array in group.arrays.items()}
    source = world_of(group).learning().open([part], next_views=True, device=device, **(view or {}))
    for first in numbers[::size]:
        requests = [
            source.sample_fixed(generator(SEED, "evaluation/views", n), np.array([n - numbers.start]))
            for n in range(first, min(first + size, numbers.stop))
        ]
        batch = source.batch(type(requests[0]).joined(requests))
        yield Piece(source=source, requests=requests, first=first, batch=_trimmed(batch))


def count(group: Group, limit: int | None) -> int:
    """How many sequences of a group are looked at."""
    return len(group) if limit is None else min(limit, len(group))


def _trimmed(batch: Batch) -> Batch:
    """Without the last steps that have no target in any sequence: episodes may be shorter than their arrays."""
    asked = batch.query_mask.flatten(2).any(-1).any(0)
    steps = int(asked.nonzero().max()) + 1 if asked.any() else 1
    return batch if steps == len(asked) else batch.mapped(lambda tensor: tensor[:, :steps])


class Encoded:
    """A model's encodings of all views of a batch, made once and then used with any of them left out."""

    def __init__(self, model: WorldModel, batch: Batch) -> None:
        self._model = model
        views, position = batch.views, batch.view_position
        if model.needs_next_views:
            assert batch.next_views is not None and batch.next_view_position is not None
            views, position = batch.next_views, batch.next_view_position
        self._s, self._position = model.embedding(position), position
        self._e = model.encode_views(views, self._s, position)

    def predict(self, batch: Batch) -> Prediction:
        """As `model(batch)`; the batch may differ from the encoded one in its masks and queries."""
        model = self._model
        mask = batch.next_view_mask if model.needs_next_views else batch.view_mask
        assert mask is not None
        encoded = model.encoded_steps(self._e, self._s, self._position, mask)
        hidden, _ = model.unroll(encoded, model.initial_state(mask.shape[0]))
        return model.decode_hidden(hidden, batch.query_position, batch.query_mask, batch.query_count)
