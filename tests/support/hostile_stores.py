"""Stores whose seals are right and whose content is not: what somebody makes who knows the format and means harm."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Change = Callable[[dict[str, Any]], None]


def spelled(document: Any) -> bytes:
    """The bytes of a document, also of one that the package itself would refuse to write."""
    return (json.dumps(document, sort_keys=True, indent=1, ensure_ascii=False) + "\n").encode()


def reseal(root: Path, change: Change) -> None:
    """Change the root document and seal it again."""
    path = root / "zarr.json"
    document = json.loads(path.read_bytes())
    change(document)
    manifest = document.get("attributes", {}).get("manifest") if isinstance(document.get("attributes"), dict) else None
    if isinstance(manifest, dict):
        manifest.pop("sha256", None)
        manifest["sha256"] = hashlib.sha256(spelled(document)).hexdigest()
    path.write_bytes(spelled(document))


def replace_object(root: Path, name: str, data: bytes) -> None:
    """Put other bytes in the place of an object and make the manifest promise them."""
    (root / name).write_bytes(data)
    entry = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    reseal(root, lambda document: document["attributes"]["manifest"]["objects"].__setitem__(name, entry))


def change_array(root: Path, path: str, change: Change) -> None:
    """Change an array's metadata, everywhere they are repeated, so that all seals are right."""
    document = json.loads((root / path / "zarr.json").read_bytes())
    change(document)
    group, _, name = path.rpartition("/")
    above = json.loads((root / group / "zarr.json").read_bytes())
    above["consolidated_metadata"]["metadata"][name] = document
    replace_object(root, f"{group}/zarr.json", spelled(above))
    replace_object(root, f"{path}/zarr.json", spelled(document))

    def repeat(everything: dict[str, Any]) -> None:
        everything["consolidated_metadata"]["metadata"][path] = document

    reseal(root, repeat)


def change_group(root: Path, path: str, change: Change) -> None:
    """Change a group's metadata, everywhere they are repeated."""
    document = json.loads((root / path / "zarr.json").read_bytes())
    change(document)
    replace_object(root, f"{path}/zarr.json", spelled(document))
    plain = {key: value for key, value in document.items() if key != "consolidated_metadata"}
    reseal(root, lambda everything: everything["consolidated_metadata"]["metadata"].__setitem__(path, plain))


__all__ = ["change_array", "change_group", "replace_object", "reseal", "spelled"]
