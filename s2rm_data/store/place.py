"""What is at a path: a store, a store that has lost its root document, something else, or nothing.

Only the path and the folders directly in it are looked at, never a whole tree.
"""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path

from s2rm_data.errors import ConflictError, DamagedStoreError, UsageError
from s2rm_data.files import PARTIAL, read_inside
from s2rm_data.store.documents import MOST_DOCUMENT_BYTES, MOST_ROOT_BYTES, json_bytes
from s2rm_data.store.layout import FORMAT, META, group_document
from s2rm_data.store.manifest import Manifest

_MOST_LOOKED_AT = 1000  # entries of a folder


def open_manifest(path: Path) -> Manifest:
    """The manifest of the store at `path`, for reading."""
    if not path.exists():
        raise UsageError(f"there is no store at {path}")
    if not path.is_dir():
        raise UsageError(f"{path} is a file, not a store")
    if not _has_root(path):
        if _is_headless(path):
            raise DamagedStoreError(f"{path / META}: is missing, and the manifest with it")
        raise UsageError(f"{path} is not an s2rm-data store{_stores_inside(path)}")
    if _is_foreign(path):
        raise UsageError(f"{path} is not an s2rm-data store but a Zarr of something else")
    return Manifest.load(path)


def check_place(path: Path) -> None:
    """Refuse a path at which no store can be."""
    if not path.parent.is_dir():
        raise UsageError(f"the folder {path.parent} does not exist; create it first, or choose another --out")
    if (path.exists() or path.is_symlink()) and not path.is_dir():
        raise ConflictError(f"{path} is a file or a broken link, not a store; choose another --out")


def existing_manifest(root: Path) -> Manifest | None:
    """The manifest of the store in a folder, for writing; None if the folder is empty and may become one."""
    if _has_root(root):
        if _is_foreign(root):
            raise ConflictError(f"{root} is a Zarr of something else; choose another --out")
        return Manifest.load(root)
    if _is_headless(root):
        raise DamagedStoreError(f"{root / META}: is missing, and the manifest with it")
    names = [name for name in _names(root) if name != META + PARTIAL]
    if names:
        raise ConflictError(
            f"{root} holds something else ({', '.join(names[:3])}) and is not an s2rm-data store"
            f"{_stores_inside(root)}; choose another --out"
        )
    return None


def _has_root(path: Path) -> bool:
    return (path / META).exists() or (path / META).is_symlink()


def _names(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in itertools.islice(entries, _MOST_LOOKED_AT))
    except OSError as error:
        raise UsageError(f"{folder} cannot be read: {error.strerror}") from None


def _is_foreign(path: Path) -> bool:
    """Whether a root `zarr.json` is sound Zarr metadata of something else, rather than ours or ours damaged."""
    try:
        data = read_inside(path, META, MOST_ROOT_BYTES)
        is_zarr = bool(json.loads(data)["zarr_format"])
    except (DamagedStoreError, ValueError, KeyError, TypeError, RecursionError):
        return False
    return is_zarr and f'"{FORMAT}"'.encode() not in data and b'"sha256"' not in data and not _is_headless(path)


def _is_headless(path: Path) -> bool:
    """Whether a folder holds groups as this program writes them: a store whose root document is gone or replaced."""
    return any(_is_our_group(path, name) for name in _names(path))


def _is_our_group(path: Path, name: str) -> bool:
    try:
        data = read_inside(path, f"{name}/{META}", MOST_DOCUMENT_BYTES)
    except DamagedStoreError:
        return False
    if data == json_bytes(group_document({})):
        return any(_is_our_group(path / name, inner) for inner in _names(path / name))
    return b'"settings"' in data and f'"package": "{FORMAT} '.encode() in data and not _is_our_root(data)


def _is_our_root(data: bytes) -> bool:
    return f'"format": "{FORMAT}"'.encode() in data


def _stores_inside(path: Path) -> str:
    """`; it holds data.zarr, which is one`, or nothing."""
    for name in _names(path):
        try:
            if _is_our_root(read_inside(path, f"{name}/{META}", MOST_ROOT_BYTES)):
                return f"; {path / name}, which is in it, is one"
        except DamagedStoreError:
            continue
    return ""
