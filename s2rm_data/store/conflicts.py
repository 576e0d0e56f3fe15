"""What can be in the way of writing a split: the place, another kind of data, other settings, damage.

Everything here only looks. A writer asks before it touches anything; a dry run does nothing but ask.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from s2rm_data.errors import ConflictError, DamagedStoreError, UsageError
from s2rm_data.store.documents import MOST_OBJECTS, check_group
from s2rm_data.store.layout import META, ArrayLayout, parents
from s2rm_data.store.manifest import Manifest, check_object, naming, read_document
from s2rm_data.store.opening import existing_manifest, has_parts
from s2rm_data.store.place import Place
from s2rm_data.store.split import SplitSpec


def already_there(place: Place, specs: Sequence[SplitSpec]) -> dict[str, int]:
    """Group -> sequences committed, for the specs the store at a place holds; refuses what a writer would refuse."""
    place.check_free()
    absent = isinstance(place.path, Path) and not place.path.is_dir()
    manifest = (None if absent else existing_manifest(place)) or Manifest()
    found = {}
    for spec in specs:
        check_split(place, manifest, spec)
        if spec.group in manifest.groups:
            ranges = [spec.shard_range(index) for index in manifest.missing_shards(spec.group)]
            found[spec.group] = spec.count - sum(stop - start for start, stop in ranges)
    return found


def check_split(place: Place, manifest: Manifest, spec: SplitSpec) -> None:
    """Refuse a split that is there with other settings or damaged, or that would hold or lie in another."""
    for group in manifest.groups:
        if group.startswith(spec.group + "/") or spec.group.startswith(group + "/"):
            raise ConflictError(f"{place.path}: {spec.group} and {group}, which is there, cannot hold each other")
    check_links(place, spec.group)
    _check_amount(manifest, spec)
    if spec.group in manifest.groups:
        _check_bytes(place, manifest, spec.group)
        _check_same(place, manifest, spec)


def check_links(place: Place, group: str) -> None:
    """Nothing is written through a link that leads out of the store."""
    for name in (*parents(group), group):
        where = place.path / name
        if isinstance(where, Path) and where.is_symlink():
            raise ConflictError(f"{where} is a link; nothing is written through it. Remove it")


def check_no_parts(place: Place) -> None:
    """A writer beside parts that wait to be merged would remove what they have made."""
    if has_parts(place):
        raise ConflictError(
            f"{place.path} holds parts that wait to be merged; finish them with: s2rm-data merge {place.path}, "
            "or choose another --out"
        )


def _check_amount(manifest: Manifest, spec: SplitSpec) -> None:
    """A store has so many files at most: each commit writes a line for every one of them."""
    others = sum(len(g.arrays) * g.shards for name, g in manifest.groups.items() if name != spec.group)
    planned = len(spec.arrays) * spec.shards
    if others + planned > MOST_OBJECTS:
        raise UsageError(
            f"{spec.group} would need {planned:,} shard files, where {others:,} are planned already; a store has at "
            f"most {MOST_OBJECTS:,}. Use a larger --shard-size or a second store"
        )


def _check_same(place: Place, manifest: Manifest, spec: SplitSpec) -> None:
    root = place.path
    name = f"{spec.group}/{META}"
    with naming(root / name):
        group = read_document(place, name, manifest)
        stored = check_group(group)
    changes = [*_differences(stored["settings"], dict(spec.settings))]
    named = bool(changes)
    for path, document in spec.array_documents().items():
        if f"{path}/{META}" not in manifest.objects:
            changes.append(f"array {path} is new")
        elif (there := read_document(place, f"{path}/{META}", manifest)) != document:
            with naming(root / path / META):
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
    if group["consolidated_metadata"] != spec.documents()[spec.group]["consolidated_metadata"]:
        raise DamagedStoreError(f"{root / name}: its consolidated metadata are not those of its arrays")


def _check_bytes(place: Place, manifest: Manifest, group: str) -> None:
    """Whether everything committed of a group, and the groups above it, is still as it was committed."""
    above = {f"{path}/{META}" for path in parents(group)}
    for name in manifest.objects:
        if name in above or name.startswith(group + "/"):
            try:
                check_object(place, name, manifest.objects[name])
            except DamagedStoreError as error:
                raise DamagedStoreError(
                    f"{error}; `s2rm-data repair {place.path} {group}` repairs it, --overwrite makes all of it again"
                ) from None


def _differences(stored: dict[str, Any], wanted: dict[str, Any], prefix: str = "") -> list[str]:
    lines = []
    for key in sorted({*stored, *wanted}):
        there, here = stored.get(key), wanted.get(key)
        if isinstance(there, dict) and isinstance(here, dict):
            lines += _differences(there, here, f"{prefix}{key}.")
        elif there != here:
            lines.append(f"{prefix}{key}: {there} stored, {here} asked for")
    return lines
