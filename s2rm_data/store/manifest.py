"""The manifest: which objects the store has, with the size and SHA-256 of each. What it does not name does not exist.

It lives in the attributes of the root group, the store's `zarr.json`, which is replaced atomically at every commit:

    {"attributes": {"format": "s2rm-data", "format_version": 1,
                    "manifest": {"groups":  {"bballs/train": {"arrays": {"frames": 4, ...}, "shards": 20}},
                                 "objects": {"bballs/train/frames/c.0.0.0.0": {"bytes": 4113021, "sha256": "..."}, ...},
                                 "sha256":  "..."}},
     "consolidated_metadata": {...}, "node_type": "group", "zarr_format": 3}

`sha256` at the end covers the rest of the document. The file has one spelling only (`layout.json_bytes`), and a file
that is spelled otherwise is damaged: no byte of it can change unnoticed. The consolidated metadata of the same file
list the complete groups alone, so that other Zarr readers, too, do not come upon one that is still being made.
Cost of a commit: O(objects).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from s2rm_data.errors import ConflictError, DamagedStoreError
from s2rm_data.files import sync_folder, write_whole
from s2rm_data.store.layout import FORMAT_VERSION, META, json_bytes, parents, root_document, shard_object


@dataclass(frozen=True)
class Entry:
    nbytes: int
    sha256: str

    @classmethod
    def of(cls, pieces: Sequence[bytes]) -> Entry:
        digest = hashlib.sha256()
        for piece in pieces:
            digest.update(piece)
        return cls(sum(map(len, pieces)), digest.hexdigest())


@dataclass(frozen=True, kw_only=True)
class GroupEntry:
    """A split: its arrays (name -> number of dimensions) and how many shards each has when it is complete."""

    arrays: dict[str, int]
    shards: int

    def shard_objects(self, group: str, index: int) -> list[str]:
        return [shard_object(f"{group}/{name}", index, dims) for name, dims in self.arrays.items()]


@dataclass
class Manifest:
    """`documents` are the metadata of the groups, their parents and arrays, by path: what Zarr readers consolidate."""

    groups: dict[str, GroupEntry] = field(default_factory=dict)
    objects: dict[str, Entry] = field(default_factory=dict)
    documents: dict[str, dict[str, Any]] = field(default_factory=dict)

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
        body: dict[str, Any] = {
            "groups": {name: {"arrays": g.arrays, "shards": g.shards} for name, g in self.groups.items()},
            "objects": {name: {"bytes": e.nbytes, "sha256": e.sha256} for name, e in self.objects.items()},
        }
        document = root_document(body, self._consolidated())
        body["sha256"] = _seal(document)
        return json_bytes(document)

    def _consolidated(self) -> dict[str, dict[str, Any]]:
        visible: set[str] = set()
        for group, entry in self.groups.items():
            if not self.missing_shards(group):
                visible |= {group, *parents(group), *(f"{group}/{array}" for array in entry.arrays)}
        return {path: self.documents[path] for path in visible}

    @classmethod
    def from_bytes(cls, data: bytes) -> Manifest:
        """Raises `DamagedStoreError` unless `data` is, to the byte, what `to_bytes` once gave."""
        version = None
        try:
            document = json.loads(data)
            version = document["attributes"].get("format_version")
            body = document["attributes"]["manifest"]
            intact = json_bytes(document) == data and body.pop("sha256") == _seal(document)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            intact = False
        other = f"format version {version}, this program reads version {FORMAT_VERSION}"
        if not intact:
            later = f" (or from a later program: it says {other})" if version not in (None, FORMAT_VERSION) else ""
            raise DamagedStoreError(f"the manifest is damaged, its bytes are not those that were committed{later}")
        if version != FORMAT_VERSION:  # older formats are read here once there are any
            raise ConflictError(f"{other}; use the program version that wrote it, or generate the data again")
        return cls(
            {n: GroupEntry(arrays=dict(g["arrays"]), shards=g["shards"]) for n, g in body["groups"].items()},
            {name: Entry(entry["bytes"], entry["sha256"]) for name, entry in body["objects"].items()},
            dict(document["consolidated_metadata"]["metadata"]),
        )

    @classmethod
    def load(cls, root: Path) -> Manifest:
        """The manifest of the store at `root`."""
        path = root / META
        try:
            return cls.from_bytes(path.read_bytes())
        except FileNotFoundError:
            raise DamagedStoreError(f"{path}: is missing, and the manifest with it") from None
        except OSError as error:
            raise DamagedStoreError(f"{path}: cannot be read ({error.strerror})") from None
        except DamagedStoreError as error:
            raise DamagedStoreError(f"{path}: {error}. Restore it from a copy, or make the store again") from None
        except ConflictError as error:
            raise ConflictError(f"{path}: {error}") from None

    def save(self, root: Path) -> None:
        write_whole(root / META, [self.to_bytes()])
        sync_folder(root)


def _seal(document: dict[str, Any]) -> str:
    return hashlib.sha256(json_bytes(document)).hexdigest()


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
