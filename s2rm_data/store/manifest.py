"""The manifest: which objects the store has, with the size and SHA-256 of each. What it does not name does not exist.

It is the attributes of the Zarr group `manifest`, replaced atomically at every commit:

    {"manifest": {"groups":  {"bballs/train": {"arrays": ["frames", ...], "shards": 20}},
                  "objects": {"bballs/train/frames/c.0.0.0.0": {"bytes": 4113021, "sha256": "..."}, ...},
                  "sha256":  "..."}}

`sha256` at the end covers the rest of the document. The file has one spelling only (`layout.json_bytes`), and a file
that is spelled otherwise is damaged: no byte of it can change unnoticed. Cost of a commit: O(objects).
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from s2rm_data.errors import DamagedStoreError
from s2rm_data.store.files import make_folder, sync_folder, write_whole
from s2rm_data.store.layout import MANIFEST, group_document, json_bytes, shard_object


@dataclass(frozen=True)
class Entry:
    nbytes: int
    sha256: str

    @classmethod
    def of(cls, data: bytes) -> Entry:
        return cls(len(data), hashlib.sha256(data).hexdigest())


@dataclass(frozen=True, kw_only=True)
class GroupEntry:
    """A split: its arrays (name -> number of dimensions) and how many shards each has when it is complete."""

    arrays: dict[str, int]
    shards: int

    def shard_objects(self, group: str, index: int) -> list[str]:
        return [shard_object(f"{group}/{name}", index, dims) for name, dims in self.arrays.items()]


@dataclass
class Manifest:
    groups: dict[str, GroupEntry] = field(default_factory=dict)
    objects: dict[str, Entry] = field(default_factory=dict)

    def has_shard(self, group: str, index: int) -> bool:
        return all(name in self.objects for name in self.groups[group].shard_objects(group, index))

    def missing_shards(self, group: str) -> list[int]:
        return [index for index in range(self.groups[group].shards) if not self.has_shard(group, index)]

    def group_nbytes(self, group: str) -> int:
        return sum(entry.nbytes for name, entry in self.objects.items() if name.startswith(group + "/"))

    def drop_group(self, group: str) -> None:
        del self.groups[group]
        for name in [name for name in self.objects if name.startswith(group + "/")]:
            del self.objects[name]

    def to_bytes(self) -> bytes:
        body = {
            "groups": {name: {"arrays": g.arrays, "shards": g.shards} for name, g in self.groups.items()},
            "objects": {name: {"bytes": e.nbytes, "sha256": e.sha256} for name, e in self.objects.items()},
        }
        seal = hashlib.sha256(json_bytes(body)).hexdigest()
        return json_bytes(group_document({"manifest": {**body, "sha256": seal}}))

    @classmethod
    def from_bytes(cls, data: bytes) -> Manifest:
        """Raises `DamagedStoreError` unless `data` is, to the byte, what `to_bytes` once gave."""
        try:
            body = json.loads(data)["attributes"]["manifest"]
            manifest = cls(
                {n: GroupEntry(arrays=dict(g["arrays"]), shards=g["shards"]) for n, g in body["groups"].items()},
                {name: Entry(entry["bytes"], entry["sha256"]) for name, entry in body["objects"].items()},
            )
            intact = manifest.to_bytes() == data
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            intact = False
        if not intact:
            raise DamagedStoreError(f"{MANIFEST}: the manifest is damaged, its bytes are not those that were committed")
        return manifest

    @classmethod
    def load(cls, root: Path) -> Manifest:
        path = root / MANIFEST
        try:
            return cls.from_bytes(path.read_bytes())
        except FileNotFoundError:
            raise DamagedStoreError(f"{MANIFEST}: the manifest of {root} is missing") from None
        except DamagedStoreError as error:
            raise DamagedStoreError(f"{root}: {error}") from None

    def save(self, root: Path) -> None:
        path = root / MANIFEST
        make_folder(path.parent)
        write_whole(path, self.to_bytes())
        sync_folder(path.parent)


def read_object(root: Path, name: str, manifest: Manifest) -> bytes:
    """A whole object, checked against the manifest."""
    if name not in manifest.objects:
        raise DamagedStoreError(f"{root / name}: is not in the manifest")
    entry = manifest.objects[name]
    try:
        data = (root / name).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise DamagedStoreError(f"{root / name}: is missing") from None
    except OSError as error:
        raise DamagedStoreError(f"{root / name}: cannot be read ({error.strerror})") from None
    if len(data) != entry.nbytes:
        raise DamagedStoreError(f"{root / name}: has {len(data)} bytes where {entry.nbytes} were committed")
    if hashlib.sha256(data).hexdigest() != entry.sha256:
        raise DamagedStoreError(f"{root / name}: SHA-256 does not match, the stored bytes have changed")
    return data


def read_document(root: Path, name: str, manifest: Manifest) -> dict[str, Any]:
    """A metadata object of the store as JSON."""
    document: dict[str, Any] = json.loads(read_object(root, name, manifest))
    return document
