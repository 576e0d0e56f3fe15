"""What the documents of a store may say. A seal shows that a document is whole, not that it is harmless: everything in
it is checked here, against bounds, before anything is allocated because of it. The writer keeps to the same bounds."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from json.encoder import encode_basestring
from typing import Any, NamedTuple

from s2rm_data.core.check import Misfit, exactly, expect, shown, table, whole
from s2rm_data.core.errors import DamagedStoreError

MOST_ROOT_BYTES = 64 << 20  # of the root document, which is parsed as a whole
MOST_DOCUMENT_BYTES = 4 << 20  # of any other `zarr.json`
MOST_OBJECTS = 250_000  # of all groups together, once they are complete
MOST_GROUPS = 10_000
MOST_ARRAYS = 200  # per group
MOST_DIMENSIONS = 8
MOST_SEQUENCES = 10**9
MOST_SLOTS = 1_000_000  # chunks per shard
MOST_CHUNK_BYTES = 1 << 31  # uncompressed
MOST_DEPTH = 6  # of groups

_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_DIMENSIONS, _SHARDS, _BYTES = whole(1, MOST_DIMENSIONS), whole(1, MOST_OBJECTS), whole(0, 1 << 44)
_SHA256 = re.compile(r"[0-9a-f]{64}")
DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"
)  # fmt: skip


def json_bytes(document: Any) -> bytes:
    """The one spelling of a metadata document: `json.dumps` with sorted keys and an indentation of 1, in half its time:
    a store is opened as fast as its root can be spelled."""
    return (_spelled(document, "\n") + "\n").encode()


def _spelled(value: Any, line: str) -> str:
    """A value whose further lines begin with `line`."""
    if type(value) is str:
        return encode_basestring(value)
    if type(value) is int:
        return str(value)
    within = line + " "
    if isinstance(value, dict) and value:
        items = [f"{encode_basestring(key)}: {_spelled(value[key], within)}" for key in sorted(value)]
        return "{" + within + f",{within}".join(items) + line + "}"
    if isinstance(value, list | tuple) and value:
        return "[" + within + f",{within}".join([_spelled(item, within) for item in value]) + line + "]"
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def parse(data: bytes) -> dict[str, Any]:
    """A document from its bytes, which must be its one spelling."""
    try:
        document = json.loads(data)
        sound = isinstance(document, dict) and json_bytes(document) == data
    except (ValueError, RecursionError):
        sound = False
    expect(sound, "is not a document as this program writes it")
    return dict(document)


def sealed(document: Mapping[str, Any]) -> bytes:
    return json_bytes({**document, "sha256": hashlib.sha256(json_bytes(document)).hexdigest()})


def unsealed(data: bytes, then: str = "") -> dict[str, Any]:
    """What was sealed, or a `Misfit`."""
    document = parse(data)
    seal = document.pop("sha256", None)
    expect(seal == hashlib.sha256(json_bytes(document)).hexdigest(), f"is damaged: its seal is broken{then}")
    return document


def is_group_name(name: Any) -> bool:
    """Whether a string can be the path of a group: letters, digits, `_`, `-`, `.`, parts separated by `/`."""
    parts = name.split("/") if isinstance(name, str) else []
    return 1 <= len(parts) <= MOST_DEPTH and all(_PART.fullmatch(part) for part in parts)


class Entry(NamedTuple):
    nbytes: int
    sha256: str

    @classmethod
    def of(cls, pieces: Sequence[bytes]) -> Entry:
        digest = hashlib.sha256()
        for piece in pieces:
            digest.update(piece)
        return cls(sum(map(len, pieces)), digest.hexdigest())


def check_groups(value: Any) -> dict[str, tuple[dict[str, int], int]]:
    """The manifest's groups: path -> (array name -> number of dimensions, number of shards)."""
    groups, planned = {}, 0
    for path, entry in table("groups", value, MOST_GROUPS, is_group_name).items():
        fields = exactly(f"group {path}", entry, ("arrays", "shards"))
        arrays = table(f"arrays of {path}", fields["arrays"], MOST_ARRAYS, lambda name: bool(_PART.fullmatch(name)))
        expect(bool(arrays), f"group {path} has no arrays")
        dimensions = {n: _DIMENSIONS.fitted(f"dimensions of {path}/{n}", d) for n, d in arrays.items()}
        shards = _SHARDS.fitted(f"shards of {path}", fields["shards"])
        planned += shards * len(arrays)
        groups[path] = (dimensions, shards)
    expect(planned <= MOST_OBJECTS, f"groups of {planned:,} shard files; at most {MOST_OBJECTS:,} are allowed")
    for path in groups:
        inside = next((p for p in parents(path) if p in groups), None)
        expect(inside is None, f"group {path} lies in group {inside}")
    return groups


def parents(group: str) -> list[str]:
    """Groups above a group, without the root: `sc2/3s5z/train` -> `sc2`, `sc2/3s5z`."""
    parts = group.split("/")
    return ["/".join(parts[:depth]) for depth in range(1, len(parts))]


def check_objects(value: Any, allowed: Callable[[str], bool]) -> dict[str, Entry]:
    """Objects by name; `allowed` knows the names that the groups can have."""
    objects = {}
    for name, entry in table("objects", value, 2 * MOST_OBJECTS, allowed).items():
        fields = exactly(f"object {name}", entry, ("bytes", "sha256"))
        digest = fields["sha256"]
        if not isinstance(digest, str) or not _SHA256.fullmatch(digest):
            raise Misfit(f"SHA-256 of {name} is {shown(digest)}")
        objects[name] = Entry(_BYTES.fitted(f"bytes of {name}", fields["bytes"]), digest)
    return objects


def listed_objects(objects: Mapping[str, Entry]) -> dict[str, dict[str, Any]]:
    """The inverse of `check_objects`."""
    return {name: {"bytes": entry.nbytes, "sha256": entry.sha256} for name, entry in objects.items()}


def differences(there: Any, here: Any, prefix: str = "") -> list[tuple[str, Any, Any]]:
    """(key, what is there, what is here) of everything in which two documents differ; keys are joined by dots."""
    if isinstance(there, dict) and isinstance(here, dict):
        keys = sorted({*there, *here} - {"consolidated_metadata"})
        return [found for key in keys for found in differences(there.get(key), here.get(key), f"{prefix}{key}.")]
    return [] if there == here else [(prefix.removesuffix("."), there, here)]


class Attributes(dict[str, Any]):
    """Attributes of a group: a key that is not there is damage of the store, not a mistake of the program."""

    def __init__(self, where: str, values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self._where = where
        for key, value in values.items():
            if isinstance(value, dict):
                self[key] = Attributes(where, value)

    def __missing__(self, key: str) -> Any:
        raise DamagedStoreError(f"{self._where}: its attributes have no {key!r}")


def check_group(document: Mapping[str, Any]) -> Mapping[str, Any]:
    fields = exactly("a group", document, ("attributes", "consolidated_metadata", "node_type", "zarr_format"))
    expect((fields["node_type"], fields["zarr_format"]) == ("group", 3), "is not a Zarr 3 group")
    expect(isinstance(fields["attributes"], dict), "attributes are not a table")
    expect(isinstance(fields["attributes"].get("settings"), dict), "its attributes have no settings")
    return dict(fields["attributes"])
