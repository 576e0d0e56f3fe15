"""What can stand in the way of writing a split: the place, another kind of data, other settings, damage.

Everything here only looks. A writer asks before it touches anything, a dry run asks and leaves it at that.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from s2rm_data.errors import ConflictError, DamagedStoreError, UsageError
from s2rm_data.files import PARTIAL
from s2rm_data.store.layout import META, ArrayLayout, is_foreign, parents
from s2rm_data.store.manifest import Manifest, read_document, read_object
from s2rm_data.store.split import SplitSpec


def already_there(path: Path, specs: Sequence[SplitSpec]) -> dict[str, int]:
    """Group -> sequences committed, for the specs the store at `path` holds; refuses what a writer would refuse."""
    check_place(path)
    manifest = (existing_manifest(path) if path.is_dir() else None) or Manifest()
    found = {}
    for spec in specs:
        check_split(path, manifest, spec)
        if spec.group in manifest.groups:
            ranges = [spec.shard_range(index) for index in manifest.missing_shards(spec.group)]
            found[spec.group] = spec.count - sum(stop - start for start, stop in ranges)
    return found


def check_place(path: Path) -> None:
    """Refuse a path at which no store can be."""
    if not path.parent.is_dir():
        raise UsageError(f"the folder {path.parent} does not exist; create it first, or choose another --out")
    if (path.exists() or path.is_symlink()) and not path.is_dir():
        raise ConflictError(f"{path} is a file or a broken link, not a store; choose another --out")


def existing_manifest(root: Path) -> Manifest | None:
    """The manifest of the store in a folder; None if the folder may become one."""
    if not (root / META).exists():
        _check_new(root)
        return None
    if is_foreign(root / META):
        raise ConflictError(f"{root} is a Zarr of something else; choose another --out")
    return Manifest.load(root)


def _check_new(root: Path) -> None:
    """A folder without `zarr.json` may become a store only if it holds nothing."""
    names = sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if not path.is_dir())
    names = [name for name in names if name != META + PARTIAL]
    if any(name.endswith("/" + META) for name in names):
        raise DamagedStoreError(f"{root / META}: is missing, and the manifest with it")
    if names:
        raise ConflictError(
            f"{root} holds something else ({', '.join(names[:3])}), no s2rm-data store; choose another --out"
        )


def check_split(root: Path, manifest: Manifest, spec: SplitSpec) -> None:
    """Refuse a split that is there with other settings or damaged, or that would hold or lie in another."""
    for group in manifest.groups:
        if group.startswith(spec.group + "/") or spec.group.startswith(group + "/"):
            raise ConflictError(f"{root}: {spec.group} and {group}, which is there, cannot hold each other")
    if spec.group in manifest.groups:
        _check_bytes(root, manifest, spec.group)
        _check_same(root, manifest, spec)


def _check_same(root: Path, manifest: Manifest, spec: SplitSpec) -> None:
    stored = read_document(root, f"{spec.group}/{META}", manifest)["attributes"]
    changes = [*_differences(stored["settings"], dict(spec.settings))]
    named = bool(changes)
    for path, document in spec.array_documents().items():
        if f"{path}/{META}" not in manifest.objects:
            changes.append(f"array {path} is new")
        elif (there := read_document(root, f"{path}/{META}", manifest)) != document:
            layout, wanted = (ArrayLayout.from_document(path, d) for d in (there, document))
            if layout.shape[0] != wanted.shape[0]:
                changes.append(f"sequences: {layout.shape[0]} stored, {wanted.shape[0]} asked for")
            elif layout.shard != wanted.shard:
                changes.append(f"shard size: {layout.shard} stored, {wanted.shard} asked for")
            elif not named:  # other settings make other layouts: those say enough
                changes.append(f"layout of {path}")
    if changes:
        listed = "; ".join(dict.fromkeys(changes))
        raise ConflictError(
            f"{root} already holds {spec.group} with other settings ({listed}). "
            "Use the same settings, another --out, or --overwrite to replace it"
        )


def _check_bytes(root: Path, manifest: Manifest, group: str) -> None:
    """Whether everything committed of a group, and the groups above it, is still as it was committed."""
    above = {f"{path}/{META}" for path in parents(group)}
    for name in manifest.objects:
        if name in above or name.startswith(group + "/"):
            try:
                read_object(root, name, manifest)
            except DamagedStoreError as error:
                raise DamagedStoreError(f"{error}; --overwrite makes {group} again") from None


def _differences(stored: dict[str, Any], wanted: dict[str, Any], prefix: str = "") -> list[str]:
    lines = []
    for key in sorted({*stored, *wanted}):
        there, here = stored.get(key), wanted.get(key)
        if isinstance(there, dict) and isinstance(here, dict):
            lines += _differences(there, here, f"{prefix}{key}.")
        elif there != here:
            lines.append(f"{prefix}{key}: {there} stored, {here} asked for")
    return lines
