"""A split as it is to be stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from s2rm_data.errors import UsageError
from s2rm_data.schema import ArraySpec
from s2rm_data.store.documents import InvalidDocumentError, is_group_name
from s2rm_data.store.layout import (
    ArrayLayout,
    array_document,
    consolidated,
    group_document,
    shard_object,
    shard_sequences,
)
from s2rm_data.store.manifest import GroupEntry


@dataclass(frozen=True, kw_only=True)
class SplitSpec:
    """`settings` decide the content; `attributes` only describe it."""

    group: str
    first_dim: str
    count: int
    arrays: tuple[ArraySpec, ...]
    settings: Mapping[str, Any]
    attributes: Mapping[str, Any]
    shard_size: int

    def __post_init__(self) -> None:
        if not is_group_name(self.group):
            raise UsageError(f"{self.group!r} cannot be the name of a group; use letters, digits, _, - and .")
        for path, document in self.array_documents().items():
            try:
                ArrayLayout.from_document(path, document)
            except InvalidDocumentError as error:
                raise UsageError(f"{path} cannot be stored: {error}") from None

    @property
    def shard(self) -> int:
        """Sequences per shard."""
        return shard_sequences(self.arrays, self.count, self.shard_size)

    @property
    def shards(self) -> int:
        return -(-self.count // self.shard)

    def shard_range(self, index: int) -> tuple[int, int]:
        """First and one-past-last sequence of a shard."""
        return index * self.shard, min((index + 1) * self.shard, self.count)

    @property
    def entry(self) -> GroupEntry:
        """What the manifest says of it."""
        return GroupEntry(arrays={array.name: 1 + len(array.shape) for array in self.arrays}, shards=self.shards)

    def shard_objects(self, index: int, shards: Mapping[str, Sequence[bytes]]) -> dict[str, Sequence[bytes]]:
        """Object name -> bytes of shard number `index`, from array name -> bytes; every array must be there."""
        dimensions = self.entry.arrays
        return {shard_object(f"{self.group}/{name}", index, dims): shards[name] for name, dims in dimensions.items()}

    def array_documents(self) -> dict[str, dict[str, Any]]:
        """Path -> metadata of every array."""
        return {
            f"{self.group}/{spec.name}": array_document(spec, self.first_dim, self.count, self.shard)
            for spec in self.arrays
        }

    def documents(self) -> dict[str, dict[str, Any]]:
        """Path -> metadata of the group, which repeats its arrays' (these never change), and of every array."""
        arrays = self.array_documents()
        group = group_document({**self.attributes, "settings": dict(self.settings)})
        group["consolidated_metadata"] = consolidated({path.rsplit("/", 1)[1]: d for path, d in arrays.items()})
        return {self.group: group, **arrays}
