"""Where things lie in the store and what their `zarr.json` says (Zarr v3 metadata, written in one fixed spelling).

All metadata go through `json_bytes`, so that the same content always has the same bytes, whatever library is installed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from s2rm_data.errors import UsageError
from s2rm_data.schema import ArraySpec

FORMAT = "s2rm-data"
FORMAT_VERSION = 1
META = "zarr.json"
DEFAULT_SHARD_SIZE = 500  # sequences


def json_bytes(document: Any) -> bytes:
    """The one spelling of a metadata document."""
    return (json.dumps(document, sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def group_document(attributes: dict[str, Any]) -> dict[str, Any]:
    return {"zarr_format": 3, "node_type": "group", "attributes": attributes}


def consolidated(documents: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Metadata of everything below a group, by path, for readers that would rather open one object than many."""
    metadata = {path: {k: v for k, v in d.items() if k != "consolidated_metadata"} for path, d in documents.items()}
    return {"kind": "inline", "must_understand": False, "metadata": metadata}


def root_document(manifest: dict[str, Any], documents: dict[str, dict[str, Any]]) -> dict[str, Any]:
    attributes = {"format": FORMAT, "format_version": FORMAT_VERSION, "manifest": manifest}
    return {**group_document(attributes), "consolidated_metadata": consolidated(documents)}


def parents(group: str) -> list[str]:
    """Groups above a group, without the root: `sc2/3s5z/train` -> `sc2`, `sc2/3s5z`."""
    parts = group.split("/")
    return ["/".join(parts[:depth]) for depth in range(1, len(parts))]


def is_foreign(meta: Path) -> bool:
    """Whether a root `zarr.json` is sound Zarr metadata of something else, rather than ours or ours damaged."""
    try:
        data = meta.read_bytes()
        return bool(json.loads(data)["zarr_format"]) and f'"{FORMAT}"'.encode() not in data and b'"sha256"' not in data
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False


def shard_sequences(arrays: Sequence[ArraySpec], count: int, wanted: int) -> int:
    """Sequences a shard: `wanted`, rounded up to whole chunks of every array, no more than the split needs."""
    if wanted < 1:
        raise UsageError(f"shard size {wanted} is not possible; allowed are 1 or more sequences")
    unit = math.lcm(*(array.chunk for array in arrays))
    return math.ceil(min(wanted, count) / unit) * unit


def array_document(spec: ArraySpec, first_dim: str, count: int, shard: int) -> dict[str, Any]:
    dtype = np.dtype(spec.dtype)
    little: dict[str, Any] = {"name": "bytes"}
    if dtype.itemsize > 1:
        little["configuration"] = {"endian": "little"}
    zstd = {"name": "zstd", "configuration": {"level": spec.level, "checksum": False}}
    sharding = {
        "chunk_shape": [spec.chunk, *spec.shape],
        "codecs": [little, zstd, {"name": "crc32c"}],
        "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}],
        "index_location": "end",
    }
    attributes = {"description": spec.description, **dict(spec.attributes)}
    if spec.units:
        attributes["units"] = spec.units
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [count, *spec.shape],
        "data_type": dtype.name,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [shard, *spec.shape]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}},
        "fill_value": False if dtype.kind == "b" else 0.0 if dtype.kind == "f" else 0,
        "codecs": [{"name": "sharding_indexed", "configuration": sharding}],
        "dimension_names": [first_dim, *spec.dims],
        "attributes": attributes,
        "storage_transformers": [],
    }


@dataclass(frozen=True, kw_only=True)
class ArrayLayout:
    """What a reader needs of an array's metadata."""

    path: str  # `bballs/train/frames`
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    dims: tuple[str, ...]
    chunk: int  # sequences a chunk
    shard: int  # sequences a shard
    attributes: dict[str, Any]

    @classmethod
    def from_document(cls, path: str, document: dict[str, Any]) -> ArrayLayout:
        sharding = document["codecs"][0]["configuration"]
        return cls(
            path=path,
            dtype=np.dtype(document["data_type"]).newbyteorder("<"),
            shape=tuple(document["shape"]),
            dims=tuple(document["dimension_names"]),
            chunk=sharding["chunk_shape"][0],
            shard=document["chunk_grid"]["configuration"]["chunk_shape"][0],
            attributes=document["attributes"],
        )

    @property
    def shards(self) -> int:
        return math.ceil(self.shape[0] / self.shard)

    @property
    def chunk_nbytes(self) -> int:
        return self.chunk * math.prod(self.shape[1:]) * self.dtype.itemsize

    def shard_object(self, index: int) -> str:
        return shard_object(self.path, index, len(self.shape))


def shard_object(array_path: str, index: int, dimensions: int) -> str:
    """`bballs/train/frames`, 3, 4 -> `bballs/train/frames/c.3.0.0.0`."""
    return f"{array_path}/c.{index}" + ".0" * (dimensions - 1)
