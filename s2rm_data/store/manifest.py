"""The manifest: which objects the store has, with the size and SHA-256 of each. What it does not name does not exist.

It lives in the attributes of the root group, the store's `zarr.json`, which is replaced atomically at every commit:

    {"attributes": {"format": "s2rm-data", "format_version": 1,
                    "manifest": {"groups":  {"bballs/train": {"arrays": {"frames": 4, ...}, "shards": 20}},
                                 "objects": {"bballs/train/frames/c.0.0.0.0": {"bytes": 4113021, "sha256": "..."}, ...},
                                 "sha256":  "..."}},
     "consolidated_metadata": {...}, "node_type": "group", "zarr_format": 3}

`sha256` covers the rest of the document, and a file spelled in another way (`documents.json_bytes`) is damaged: no byte
can change unnoticed. Consolidated metadata list complete groups alone, for other Zarr readers. To write it costs
O(objects); the writer therefore commits many shards at once where that takes long."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from s2rm_data.core.addresses import StorePath
from s2rm_data.core.check import Misfit, exactly, expect, shown, table
from s2rm_data.core.errors import ConflictError, DamagedStoreError, UsageError
from s2rm_data.store import documents
from s2rm_data.store.documents import Entry, json_bytes, parents, parse
from s2rm_data.store.layout import FORMAT_VERSION, META, GroupEntry, root_document
from s2rm_data.store.place import OpenObject, Place, Version

REPLACEMENT = ".new"  # what the name of a group ends with that is to replace another one

# Text of a spelled root document: what ends the manifest and the attributes, and what begins the manifest's last entry.
_END_OF_MANIFEST = b'\n  }\n },\n "consolidated_metadata"'
_SEAL = ',\n   "sha256": '


@dataclass
class Manifest:
    """`documents` are the metadata of the groups, their parents and arrays, by path: what Zarr readers consolidate.
    `version` is that of the root document which says all this; None if it has not been written yet."""

    groups: dict[str, GroupEntry] = field(default_factory=dict)
    objects: dict[str, Entry] = field(default_factory=dict)
    documents: dict[str, dict[str, Any]] = field(default_factory=dict)
    version: Version = field(default=None, compare=False)

    def missing_shards(self, group: str) -> list[int]:
        entry = self.groups[group]
        return [i for i in range(entry.shards) if any(n not in self.objects for n in entry.shard_objects(group, i))]

    def group_nbytes(self, group: str) -> int:
        return sum(entry.nbytes for name, entry in self.objects.items() if name.startswith(group + "/"))

    def drop_group(self, group: str) -> None:
        """Without its objects, and without the documents above it that no other group needs."""
        del self.groups[group]
        needed = {name for path, entry in self.groups.items() for name in entry.documents(path)}
        above = {f"{path}/{META}" for path in parents(group)} - needed
        for name in [name for name in self.objects if name.startswith(group + "/") or name in above]:
            del self.objects[name]

    def rename_group(self, group: str, name: str) -> None:
        """Give a group another name, in place of the group that has it, if there is one."""
        if name in self.groups:
            self.drop_group(name)

        def renamed(path: str) -> str:
            return name + path.removeprefix(group) if path == group or path.startswith(f"{group}/") else path

        moved = {renamed(path): entry for path, entry in self.objects.items()}
        self.documents = {renamed(path): document for path, document in self.documents.items()}
        self.groups = {renamed(path): entry for path, entry in self.groups.items()}
        needed = {document for path, entry in self.groups.items() for document in entry.documents(path)}
        self.objects = {path: entry for path, entry in moved.items() if path in needed or not path.endswith(f"/{META}")}

    def is_ours(self, name: str) -> bool:
        """Whether an object of this name belongs to one of the groups, or is a document of the store itself."""
        needed = (document for path, entry in self.groups.items() for document in entry.documents(path))
        return ("/" not in name and name.endswith(".json")) or is_shard(name, self.groups) or name in needed

    def to_bytes(self) -> bytes:
        """The root document with the seal as the last entry of its manifest, spelled once."""
        body: dict[str, Any] = {
            "groups": {name: {"arrays": g.arrays, "shards": g.shards} for name, g in self.groups.items()},
            "objects": documents.listed_objects(self.objects),
        }
        document = root_document(body, {path: self.documents[path] for path in self.visible()})
        before, end, after = json_bytes(document).partition(_END_OF_MANIFEST)
        seal = hashlib.sha256(before + end + after).hexdigest()
        return before + f'{_SEAL}"{seal}"'.encode() + end + after

    def visible(self) -> set[str]:
        """Paths of the complete groups, of those above them, and of their arrays."""
        found: set[str] = set()
        for group, entry in self.groups.items():
            if not self.missing_shards(group) and not group.endswith(REPLACEMENT):
                found |= {name.removesuffix(f"/{META}") for name in entry.documents(group)}
        return found

    @classmethod
    def from_bytes(cls, data: bytes) -> Manifest:
        """Raises `DamagedStoreError` unless `data` is what `to_bytes` once gave, and says nothing that cannot be."""
        version = None
        try:
            document = json.loads(data)
            version = document["attributes"].get("format_version")
            intact = json_bytes(document) == data and _is_sealed(data, document) and type(version) is int
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            intact = False
        other = f"format version {shown(version)}, this program reads version {FORMAT_VERSION}"
        if not intact:
            later = f" (or from a later program: it says {other})" if version not in (None, FORMAT_VERSION) else ""
            raise DamagedStoreError(f"the manifest is damaged, its bytes are not those that were committed{later}")
        if version != FORMAT_VERSION:  # older formats are read here once there are any
            raise ConflictError(f"{other}; use the program version that wrote it, or generate the data again")
        try:
            return cls._checked(document)
        except Misfit as error:
            raise DamagedStoreError(f"the manifest is sealed, but it cannot be true: {error}") from None

    @classmethod
    def _checked(cls, document: dict[str, Any]) -> Manifest:
        root = exactly("the root", document, ("attributes", "consolidated_metadata", "node_type", "zarr_format"))
        attributes = exactly("attributes", root["attributes"], ("format", "format_version", "manifest"))
        body = exactly("the manifest", attributes["manifest"], ("groups", "objects"))
        groups = {n: GroupEntry(arrays=a, shards=s) for n, (a, s) in documents.check_groups(body["groups"]).items()}
        names = {name for path, group in groups.items() for name in group.documents(path)}
        objects = documents.check_objects(body["objects"], lambda name: name in names or is_shard(name, groups))
        found = cls(groups, objects)
        visible, listed = found.visible(), root["consolidated_metadata"]
        listed = listed.get("metadata") if isinstance(listed, dict) else None
        metadata = table("consolidated metadata", listed, len(visible), visible.__contains__)
        expect(len(metadata) == len(visible), "consolidated metadata do not list just the complete groups")
        expect(all(isinstance(d, dict) for d in metadata.values()), "consolidated metadata are not documents")
        found.documents = dict(metadata)
        spelled = root_document(dict(body), found.documents)
        expect(spelled == document, "is not a root document as this program writes it")
        return found

    @classmethod
    def load(cls, place: Place) -> Manifest:
        try:
            data, version = place.read_root(documents.MOST_ROOT_BYTES)
        except DamagedStoreError as error:
            lost = ", and the manifest with it" if str(error).endswith("is missing") else ""
            raise type(error)(f"{error}{lost}") from None
        try:
            return dataclasses.replace(cls.from_bytes(data), version=version)
        except DamagedStoreError as error:
            raise DamagedStoreError(
                f"{place.path / META}: {error}. Restore it from a copy, or make the store again"
            ) from None
        except ConflictError as error:
            raise ConflictError(f"{place.path / META}: {error}") from None

    def save(self, place: Place) -> None:
        data = self.to_bytes()
        if len(data) > documents.MOST_ROOT_BYTES:
            large = f"the manifest would have {len(data):,} bytes; at most {documents.MOST_ROOT_BYTES:,} are possible"
            raise UsageError(f"{place.path}: {large}. Use a larger --shard-size or a second store")
        self.version = place.replace_root(data, self.version)


def is_shard(name: str, groups: Mapping[str, GroupEntry]) -> bool:
    path, _, file = name.rpartition("/")
    group, _, array = path.rpartition("/")
    match = re.fullmatch(r"c\.(0|[1-9][0-9]{0,8})((?:\.0)*)", file)
    if match is None or group not in groups:
        return False
    dimensions = groups[group].arrays.get(array)
    return dimensions == 1 + len(match[2]) // 2 and int(match[1]) < groups[group].shards


def _is_sealed(data: bytes, document: dict[str, Any]) -> bool:
    """Whether a root document, whose one spelling is `data`, is what was sealed. Takes the seal out of the document."""
    seal = document["attributes"]["manifest"].pop("sha256")
    before, end, after = data.partition(_END_OF_MANIFEST)
    unsealed = before.removesuffix(f'{_SEAL}"{seal}"'.encode())
    if len(unsealed) < len(before):
        return bool(hashlib.sha256(unsealed + end + after).hexdigest() == seal)
    return bool(seal == hashlib.sha256(json_bytes(document)).hexdigest())  # elsewhere than this program puts it


def entry_of(place: Place, name: str, manifest: Manifest) -> Entry:
    if name not in manifest.objects:
        raise DamagedStoreError(f"{place.path / name}: is not in the manifest")
    return manifest.objects[name]


def object_pieces(opened: OpenObject, where: StorePath, entry: Entry) -> Iterator[bytes]:
    """An open object in pieces, checked against the manifest: its size before anything is read, its SHA-256 in the end.
    What takes the pieces must not be believed before the last one has come."""
    if opened.nbytes != entry.nbytes:
        raise DamagedStoreError(f"{where}: has {opened.nbytes} bytes where {entry.nbytes} were committed")
    digest = hashlib.sha256()
    for piece in opened.pieces():
        digest.update(piece)
        yield piece
    if digest.hexdigest() != entry.sha256:
        raise DamagedStoreError(f"{where}: SHA-256 does not match, the stored bytes have changed")


def check_object(place: Place, name: str, entry: Entry) -> None:
    """Refuse an object that is not what was committed; in constant memory."""
    with place.opened(name) as opened:
        for _ in object_pieces(opened, place.path / name, entry):
            pass


def is_sound(place: Place, name: str, entry: Entry) -> bool:
    try:
        check_object(place, name, entry)
    except DamagedStoreError:
        return False
    return True


def read_object(place: Place, name: str, entry: Entry) -> bytes:
    with place.opened(name) as opened:
        return b"".join(object_pieces(opened, place.path / name, entry))


def read_document(place: Place, name: str, manifest: Manifest) -> dict[str, Any]:
    """A metadata object of the store, checked against the manifest; what it says is not checked yet."""
    entry = entry_of(place, name, manifest)
    if entry.nbytes > documents.MOST_DOCUMENT_BYTES:
        most = f"at most {documents.MOST_DOCUMENT_BYTES:,} are allowed"
        raise DamagedStoreError(f"{place.path / name}: a document of {entry.nbytes:,} bytes; {most}")
    data = read_object(place, name, entry)
    with naming(place.path / name):
        return parse(data)


@contextlib.contextmanager
def naming(where: StorePath) -> Iterator[None]:
    """Turn what is wrong with a document into a `DamagedStoreError` that names it."""
    try:
        yield
    except Misfit as error:
        raise DamagedStoreError(f"{where}: {error}") from None
