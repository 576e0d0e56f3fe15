"""What is at a place: a store, a store that has lost its root document, parts of one, something else, or nothing.

Only the place and the folders directly in it are looked at, never a whole tree.
"""

from __future__ import annotations

import json

from s2rm_data.errors import ConflictError, DamagedStoreError, UsageError
from s2rm_data.files import PARTIAL
from s2rm_data.store.documents import MOST_DOCUMENT_BYTES, MOST_ROOT_BYTES, json_bytes
from s2rm_data.store.layout import FORMAT, META, PARTS, PLAN, PROBE, group_document
from s2rm_data.store.manifest import Manifest
from s2rm_data.store.place import Place


def open_manifest(place: Place) -> Manifest:
    """The manifest of the store at a place, for reading."""
    place.check_exists()
    if not place.has(META):
        if has_parts(place):
            raise UsageError(
                f"{place.path} holds parts of a store; put them together with: s2rm-data merge {place.path}"
            )
        if _is_headless(place):
            raise DamagedStoreError(f"{place.path / META}: is missing, and the manifest with it")
        raise UsageError(f"{place.path} is not an s2rm-data store{_stores_inside(place)}")
    try:
        return Manifest.load(place)
    except DamagedStoreError:
        if _is_foreign(place):
            raise UsageError(f"{place.path} is not an s2rm-data store but a Zarr of something else") from None
        raise


def existing_manifest(place: Place) -> Manifest | None:
    """The manifest of the store at a place, for writing; None if the place is empty and may become one."""
    if place.has(META):
        try:
            return Manifest.load(place)
        except DamagedStoreError:
            if _is_foreign(place):
                raise ConflictError(f"{place.path} is a Zarr of something else; choose another --out") from None
            raise
    if has_parts(place):
        return None
    headless = _is_headless(place)
    known = (META + PARTIAL, PARTS)
    names = [name for name in place.children() if name not in known and not name.startswith(PROBE)]
    if META in names:  # somebody has begun a store meanwhile
        return existing_manifest(place)
    if headless:
        raise DamagedStoreError(f"{place.path / META}: is missing, and the manifest with it")
    if names:
        raise ConflictError(
            f"{place.path} holds something else ({', '.join(names[:3])}) and is not an s2rm-data store"
            f"{_stores_inside(place)}; choose another --out"
        )
    return None


def has_parts(place: Place) -> bool:
    """Whether parts of a store wait there to be merged."""
    return place.has(f"{PARTS}/{PLAN}")


def _is_foreign(place: Place) -> bool:
    """Whether a root `zarr.json` is sound Zarr metadata of something else, rather than ours or ours damaged."""
    try:
        data = place.read(META, MOST_ROOT_BYTES)
        is_zarr = bool(json.loads(data)["zarr_format"])
    except (DamagedStoreError, ValueError, KeyError, TypeError, RecursionError):
        return False
    return is_zarr and f'"{FORMAT}"'.encode() not in data and b'"sha256"' not in data and not _is_headless(place)


def _is_headless(place: Place) -> bool:
    """Whether a place holds groups as this program writes them: a store whose root document is gone or replaced."""
    return any(_is_our_group(place, name) for name in place.children())


def _is_our_group(place: Place, name: str) -> bool:
    try:
        data = place.read(f"{name}/{META}", MOST_DOCUMENT_BYTES)
    except DamagedStoreError:
        return False
    if data == json_bytes(group_document({})):
        return any(_is_our_group(place, f"{name}/{inner}") for inner in place.children(name))
    return b'"settings"' in data and f'"package": "{FORMAT} '.encode() in data and not _is_our_root(data)


def _is_our_root(data: bytes) -> bool:
    return f'"format": "{FORMAT}"'.encode() in data


def _stores_inside(place: Place) -> str:
    """`; it holds data.zarr, which is one`, or nothing."""
    for name in place.children():
        try:
            if _is_our_root(place.read(f"{name}/{META}", MOST_ROOT_BYTES)):
                return f"; {place.path / name}, which is in it, is one"
        except DamagedStoreError:
            continue
    return ""
