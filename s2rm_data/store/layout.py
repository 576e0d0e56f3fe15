"""Where things lie in the store and what their `zarr.json` says (Zarr v3 metadata): the same content always has the
same bytes, those of `documents.json_bytes`, whatever library is installed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from s2rm_data.core.check import Misfit, expect, shown, whole
from s2rm_data.core.errors import UsageError
from s2rm_data.core.schema import ArraySpec
from s2rm_data.store import documents
from s2rm_data.store.documents import is_group_name, json_bytes, parents

FORMAT = "s2rm-data"
FORMAT_VERSION = 1
META = "zarr.json"
PROBE = "_probe-"  # how the names begin of what a writer tries a bucket out with
PARTS, PLAN = "_parts", "plan.json"  # folder of parts that wait to be merged, and what they are parts of
PACKED_BITS = "packed_bits"  # array attribute: the last axis is bit-packed (most significant bit first), this many bits
DEFAULT_SHARD_SIZE = 500  # sequences
_SLOTS, _LEVEL = whole(1, documents.MOST_SLOTS), whole(-7, 22)
_SEQUENCES, _LENGTH = whole(1, documents.MOST_SEQUENCES), whole(0, documents.MOST_CHUNK_BYTES)


def group_document(attributes: dict[str, Any]) -> dict[str, Any]:
    return {"zarr_format": 3, "node_type": "group", "attributes": attributes}


def consolidated(documents: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Metadata of everything below a group, by path, for readers that would rather open one object than many."""
    metadata = {path: {k: v for k, v in d.items() if k != "consolidated_metadata"} for path, d in documents.items()}
    return {"kind": "inline", "must_understand": False, "metadata": metadata}


def root_document(manifest: dict[str, Any], documents: dict[str, dict[str, Any]]) -> dict[str, Any]:
    attributes = {"format": FORMAT, "format_version": FORMAT_VERSION, "manifest": manifest}
    return {**group_document(attributes), "consolidated_metadata": consolidated(documents)}


def grown_shard_size(size: int, count: int) -> int:
    """Sequences per shard by default: `size`, doubled until a split of `count` sequences has at most 200 shards."""
    while count > 200 * size:
        size *= 2
    return size


def shard_sequences(arrays: Sequence[ArraySpec], count: int, wanted: int) -> int:
    """Sequences per shard: `wanted`, rounded up to whole chunks of every array, no more than the split needs."""
    if wanted < 1:
        raise UsageError(f"shard size {wanted} is not possible; allowed are 1 or more sequences")
    unit = math.lcm(*(array.chunk for array in arrays))
    shard = math.ceil(min(wanted, count) / unit) * unit
    if shard > documents.MOST_SLOTS:
        raise UsageError(f"shard size {wanted} is not possible; allowed are at most {documents.MOST_SLOTS:,} sequences")
    return shard


@dataclass(frozen=True, kw_only=True)
class ArrayLayout:
    path: str  # `bballs/train/frames`
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    dims: tuple[str, ...]
    chunk: int  # sequences per chunk
    shard: int  # sequences per shard
    level: int  # of zstd
    attributes: Mapping[str, Any]

    def document(self) -> dict[str, Any]:
        ends = {"name": "bytes", "configuration": {"endian": "little"}}
        zstd = {"name": "zstd", "configuration": {"level": self.level, "checksum": False}}
        sharding = {
            "chunk_shape": [self.chunk, *self.shape[1:]],
            "codecs": [ends if self.dtype.itemsize > 1 else {"name": "bytes"}, zstd, {"name": "crc32c"}],
            "index_codecs": [ends, {"name": "crc32c"}],
            "index_location": "end",
        }
        return {
            "zarr_format": 3,
            "node_type": "array",
            "shape": list(self.shape),
            "data_type": self.dtype.name,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [self.shard, *self.shape[1:]]}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}},
            "fill_value": False if self.dtype.kind == "b" else 0.0 if self.dtype.kind == "f" else 0,
            "codecs": [{"name": "sharding_indexed", "configuration": sharding}],
            "dimension_names": list(self.dims),
            "attributes": dict(self.attributes),
            "storage_transformers": [],
        }

    @classmethod
    def from_document(cls, path: str, document: Mapping[str, Any]) -> ArrayLayout:
        """Raises `Misfit` unless the document is, to the byte, one that `document` writes, in bounds."""
        try:
            sharding, name = document["codecs"][0]["configuration"], document["data_type"]
            expect(isinstance(name, str) and name in documents.DTYPES, f"data type is {shown(name)}")
            layout = cls(
                path=path,
                dtype=np.dtype(name).newbyteorder("<"),
                shape=_shape(document["shape"]),
                dims=tuple(document["dimension_names"]),
                chunk=sharding["chunk_shape"][0],
                shard=document["chunk_grid"]["configuration"]["chunk_shape"][0],
                level=sharding["codecs"][1]["configuration"]["level"],
                attributes=dict(document["attributes"]),
            )
        except (KeyError, IndexError, TypeError, AttributeError):
            raise Misfit("is not the metadata of an array of this format") from None
        layout.check()
        same = json_bytes(layout.document()) == json_bytes(document)
        expect(same, "is not the metadata of an array of this format")
        return layout

    def check(self) -> None:
        """Raises `Misfit` for what cannot be, or is too large to be read safely."""
        _SLOTS.fitted("sequences per chunk", self.chunk)
        _SLOTS.fitted("sequences per shard", self.shard)
        _LEVEL.fitted("compression level", self.level)
        expect(self.shard % self.chunk == 0, f"shards of {self.shard} sequences do not hold chunks of {self.chunk}")
        nbytes, most = self.chunk_nbytes, documents.MOST_CHUNK_BYTES
        expect(nbytes <= most, f"chunks of {nbytes:,} bytes; at most {most:,} are allowed")
        named = len(self.dims) == len(self.shape) and all(isinstance(dim, str) and len(dim) <= 100 for dim in self.dims)
        expect(named, f"dimension names are {shown(list(self.dims))}, for {len(self.shape)} dimensions")
        if PACKED_BITS in self.attributes:
            packs, last = self.dtype.name == "uint8" and len(self.shape) > 1, self.shape[-1]
            expect(packs, f"{PACKED_BITS} is set, but the array cannot hold packed bits")
            whole(8 * last - 7, 8 * last).fitted(PACKED_BITS, self.attributes[PACKED_BITS])

    @property
    def shards(self) -> int:
        return math.ceil(self.shape[0] / self.shard)

    @property
    def slots(self) -> int:
        """Chunks per shard."""
        return self.shard // self.chunk

    def chunks_in(self, shard: int) -> int:
        """Chunks that a shard really has; the last shard may have fewer than it has slots."""
        return math.ceil(min(self.shape[0] - shard * self.shard, self.shard) / self.chunk)

    @property
    def chunk_nbytes(self) -> int:
        return self.chunk * math.prod(self.shape[1:]) * self.dtype.itemsize

    def shard_object(self, index: int) -> str:
        return shard_object(self.path, index, len(self.shape))


def _shape(sizes: Any) -> tuple[int, ...]:
    expect(isinstance(sizes, list) and 1 <= len(sizes) <= documents.MOST_DIMENSIONS, f"shape is {shown(sizes)}")
    first, *rest = sizes
    lengths = [_LENGTH.fitted("a dimension", size) for size in rest]
    return _SEQUENCES.fitted("number of sequences", first), *lengths


def shard_object(array_path: str, index: int, dimensions: int) -> str:
    """`bballs/train/frames`, 3, 4 -> `bballs/train/frames/c.3.0.0.0`."""
    return f"{array_path}/c.{index}" + ".0" * (dimensions - 1)


@dataclass(frozen=True, kw_only=True)
class GroupEntry:
    """A split: its arrays (name -> number of dimensions) and how many shards each has when it is complete."""

    arrays: dict[str, int]
    shards: int

    def shard_objects(self, group: str, index: int) -> list[str]:
        return [shard_object(f"{group}/{name}", index, dims) for name, dims in self.arrays.items()]

    def documents(self, group: str) -> list[str]:
        """Names of the metadata objects of a group, of those above it, and of its arrays."""
        paths = [*parents(group), group, *(f"{group}/{name}" for name in self.arrays)]
        return [f"{path}/{META}" for path in paths]


@dataclass(frozen=True, kw_only=True)
class SplitSpec:
    """A split as it is to be stored: `settings` decide the content; `attributes` only describe it."""

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
            except Misfit as error:
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

    def sequences_in(self, index: int) -> int:
        return min(self.shard, self.count - index * self.shard)

    @property
    def entry(self) -> GroupEntry:
        """What the manifest says of it."""
        return GroupEntry(arrays={array.name: 1 + len(array.shape) for array in self.arrays}, shards=self.shards)

    def shard_objects(self, index: int, shards: Mapping[str, Sequence[bytes]]) -> dict[str, Sequence[bytes]]:
        """Object name -> bytes of shard number `index`, from array name -> bytes; every array must be there."""
        names = self.entry.shard_objects(self.group, index)
        return {name: shards[array.name] for name, array in zip(names, self.arrays, strict=True)}

    def array_documents(self) -> dict[str, dict[str, Any]]:
        """Path -> metadata of every array."""
        found = {}
        for array in self.arrays:
            units = {"units": array.units} if array.units else {}
            attributes = {"description": array.description, **array.attributes, **units}
            sizes: Any = {"chunk": array.chunk, "shard": self.shard, "level": array.level, "attributes": attributes}
            shape, dims = (self.count, *array.shape), (self.first_dim, *array.dims)
            layout = ArrayLayout(path=array.name, dtype=np.dtype(array.dtype), shape=shape, dims=dims, **sizes)
            found[f"{self.group}/{array.name}"] = layout.document()
        return found

    def documents(self) -> dict[str, dict[str, Any]]:
        """Path -> metadata of the group, which repeats its arrays' (these never change), and of every array."""
        arrays = self.array_documents()
        group = group_document({**self.attributes, "settings": dict(self.settings)})
        group["consolidated_metadata"] = consolidated({path.rsplit("/", 1)[1]: d for path, d in arrays.items()})
        return {self.group: group, **arrays}
