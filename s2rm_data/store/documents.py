"""What the documents of a store may say. A seal shows that a document is whole, not that it is harmless: everything in
it is checked here, against bounds, before anything is allocated or opened because of it.

The writer keeps to the same bounds, so that every store that can be written can be read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from json.encoder import encode_basestring
from typing import Any

from s2rm_data.errors import DamagedStoreError

MOST_ROOT_BYTES = 64 << 20  # of the root document, which is parsed as a whole
MOST_DOCUMENT_BYTES = 4 << 20  # of any other `zarr.json`
MOST_OBJECTS = 250_000  # of all groups together, once they are complete
MOST_GROUPS = 10_000
MOST_ARRAYS = 200  # per group
MOST_DIMENSIONS = 8
MOST_SEQUENCES = 10**9
MOST_SLOTS = 1_000_000  # chunks per shard
MOST_CHUNK_BYTES = 1 << 31  # uncompressed
MOST_OBJECT_BYTES = 1 << 44
MOST_DEPTH = 6  # of groups

_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"
)  # fmt: skip


class InvalidDocumentError(ValueError):
    """Says what is wrong; becomes a `DamagedStoreError` that names the document."""


def require(holds: bool, problem: str) -> None:
    if not holds:
        raise InvalidDocumentError(problem)


def json_bytes(document: Any) -> bytes:
    """The one spelling of a metadata document: `json.dumps` with sorted keys and an indentation of 1.

    That function, asked to indent, takes twice the time, and a store is opened as fast as its root can be spelled.
    """
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
    require(sound, "is not a document as this program writes it")
    return dict(document)


def is_group_name(name: Any) -> bool:
    """Whether a string can be the path of a group: letters, digits, `_`, `-`, `.`, parts separated by `/`."""
    parts = name.split("/") if isinstance(name, str) else []
    return 1 <= len(parts) <= MOST_DEPTH and all(_PART.fullmatch(part) for part in parts)


def is_array_name(name: Any) -> bool:
    return isinstance(name, str) and bool(_PART.fullmatch(name))


def whole(value: Any, low: int, high: int, what: str) -> int:
    """`value` as an int within bounds; a bool or a float is none."""
    right = isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
    require(right, f"{what} is {shown(value)}; allowed are whole numbers from {low:,} to {high:,}")
    return int(value)


def shown(value: Any) -> str:
    """A value for a message, however long or odd it is."""
    text = f"{type(value).__name__} of {len(value)}" if isinstance(value, dict | list) else ascii(value)
    return text if len(text) <= 60 else text[:57] + "..."


def table(value: Any, what: str, most: int, check: Callable[[str], bool]) -> Mapping[str, Any]:
    """A JSON object with at most `most` keys, each of which `check` allows."""
    require(isinstance(value, dict), f"{what} is {shown(value)}, not a table")
    require(len(value) <= most, f"{what} has {len(value):,} entries; at most {most:,} are allowed")
    wrong = next((key for key in value if not check(key)), None)
    require(wrong is None, f"{what} has an entry {shown(wrong)}, which is not allowed")
    return dict(value)


def exactly(value: Any, what: str, keys: tuple[str, ...]) -> Mapping[str, Any]:
    """A JSON object with just these keys."""
    require(isinstance(value, dict) and sorted(value) == sorted(keys), f"{what} must have just {', '.join(keys)}")
    return dict(value)


def check_groups(value: Any) -> dict[str, tuple[dict[str, int], int]]:
    """The manifest's groups: path -> (array name -> number of dimensions, number of shards)."""
    groups = {}
    planned = 0
    for path, entry in table(value, "groups", MOST_GROUPS, is_group_name).items():
        fields = exactly(entry, f"group {path}", ("arrays", "shards"))
        arrays = table(fields["arrays"], f"arrays of {path}", MOST_ARRAYS, is_array_name)
        require(bool(arrays), f"group {path} has no arrays")
        dimensions = {n: whole(d, 1, MOST_DIMENSIONS, f"dimensions of {path}/{n}") for n, d in arrays.items()}
        shards = whole(fields["shards"], 1, MOST_OBJECTS, f"shards of {path}")
        planned += shards * len(arrays)
        groups[path] = (dimensions, shards)
    require(planned <= MOST_OBJECTS, f"groups of {planned:,} shard files; at most {MOST_OBJECTS:,} are allowed")
    for path in groups:
        inside = next((p for p in _above(path) if p in groups), None)
        require(inside is None, f"group {path} lies in group {inside}")
    return groups


def _above(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:depth]) for depth in range(1, len(parts))]


def check_objects(value: Any, allowed: Callable[[str], bool]) -> dict[str, tuple[int, str]]:
    """The manifest's objects: name -> (bytes, SHA-256); `allowed` knows the names that the groups can have."""
    objects = {}
    for name, entry in table(value, "objects", 2 * MOST_OBJECTS, allowed).items():
        fields = exactly(entry, f"object {name}", ("bytes", "sha256"))
        digest = fields["sha256"]
        require(isinstance(digest, str) and bool(_SHA256.fullmatch(digest)), f"SHA-256 of {name} is {shown(digest)}")
        objects[name] = (whole(fields["bytes"], 0, MOST_OBJECT_BYTES, f"bytes of {name}"), digest)
    return objects


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
    """Attributes of a split's group document."""
    fields = exactly(document, "a group", ("attributes", "consolidated_metadata", "node_type", "zarr_format"))
    require((fields["node_type"], fields["zarr_format"]) == ("group", 3), "is not a Zarr 3 group")
    require(isinstance(fields["attributes"], dict), "attributes are not a table")
    require(isinstance(fields["attributes"].get("settings"), dict), "its attributes have no settings")
    return dict(fields["attributes"])
