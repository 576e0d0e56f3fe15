"""What exists at a place, and whether it is in the way of writing there: a store, one that has lost its root document,
parts of one, something else or nothing; another kind of data, other settings, damage."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from s2rm_data.core.errors import ConflictError, DamagedStoreError, S2RMError, UnreadableError, UsageError
from s2rm_data.core.write import PARTIAL
from s2rm_data.store import documents
from s2rm_data.store.documents import check_group, differences, json_bytes, parents
from s2rm_data.store.layout import FORMAT, META, PARTS, PLAN, PROBE, ArrayLayout, SplitSpec, group_document
from s2rm_data.store.manifest import Manifest, check_object, naming, read_document
from s2rm_data.store.place import Place

_OUR_ROOT = f'"format": "{FORMAT}"'.encode()


def open_manifest(place: Place) -> Manifest:
    place.check_exists()
    if not place.has(META):
        if has_parts(place):
            together = f"put them together with: s2rm-data merge {place.path}"
            raise UsageError(f"{place.path} holds parts of a store; {together}")
        if _is_headless(place):
            raise DamagedStoreError(f"{place.path / META}: is missing, and the manifest with it")
        _refuse_if_inside(place)
        raise UsageError(f"{place.path} is not an s2rm-data store{_stores_inside(place)}")
    return _loaded(place, UsageError(f"{place.path} is not an s2rm-data store but a Zarr of something else"))


def _loaded(place: Place, foreign: S2RMError) -> Manifest:
    try:
        return Manifest.load(place)
    except DamagedStoreError:
        _refuse_if_inside(place)
        if _is_foreign(place):
            raise foreign from None
        raise


def _refuse_if_inside(place: Place) -> None:
    """A world, a group or an array was given instead of its store, in which nothing is wrong."""
    if not isinstance(place.path, Path):
        return
    where = place.path.resolve()
    for above in itertools.takewhile(lambda folder: (folder / META).is_file(), where.parents):
        try:
            groups = Manifest.load(place.at(above)).groups
        except (S2RMError, OSError):
            continue
        inside = where.relative_to(above).as_posix()
        if any(f"{group}/".startswith(f"{inside}/") or inside.startswith(f"{group}/") for group in groups):
            what = "a group" if inside in groups else "a world" if "/" not in inside else "a part"
            shown = Path(*place.path.parts[: -len(where.relative_to(above).parts)])
            raise UsageError(f"{place.path} is {what} inside the store {shown}; give {shown}") from None


def existing_manifest(place: Place) -> Manifest | None:
    """The manifest of the store at a place, for writing; None if the place is empty and may become one."""
    if place.has(META):
        return _loaded(place, ConflictError(f"{place.path} is a Zarr of something else; choose another --out"))
    if has_parts(place):
        return None
    headless = _is_headless(place)
    names = [n for n in place.children() if n not in (META + PARTIAL, PARTS) and not n.startswith(PROBE)]
    if META in names:  # somebody has begun a store meanwhile
        return existing_manifest(place)
    if headless:
        raise DamagedStoreError(f"{place.path / META}: is missing, and the manifest with it")
    if names:
        what = f"something else ({', '.join(names[:3])}) and is not an s2rm-data store{_stores_inside(place)}"
        raise ConflictError(f"{place.path} holds {what}; choose another --out")
    return None


def has_parts(place: Place) -> bool:
    return place.has(f"{PARTS}/{PLAN}")


def _is_foreign(place: Place) -> bool:
    """Whether a root `zarr.json` is sound Zarr metadata of something else, rather than ours or ours damaged."""
    try:
        data = place.read(META, documents.MOST_ROOT_BYTES)
        is_zarr = bool(json.loads(data)["zarr_format"])
    except (DamagedStoreError, ValueError, KeyError, TypeError, RecursionError):
        return False
    return is_zarr and f'"{FORMAT}"'.encode() not in data and b'"sha256"' not in data and not _is_headless(place)


def _is_headless(place: Place) -> bool:
    """Whether a place holds groups as this program writes them: a store whose root document is gone or replaced."""
    return any(_is_our_group(place, name) for name in place.children())


def _is_our_group(place: Place, name: str) -> bool:
    try:
        data = place.read(f"{name}/{META}", documents.MOST_DOCUMENT_BYTES)
    except DamagedStoreError:
        return False
    if data == json_bytes(group_document({})):
        return any(_is_our_group(place, f"{name}/{inner}") for inner in place.children(name))
    return b'"settings"' in data and f'"package": "{FORMAT} '.encode() in data and _OUR_ROOT not in data


def _stores_inside(place: Place) -> str:
    """`; it holds data.zarr, which is one`, or nothing."""
    for name in place.children():
        try:
            if _OUR_ROOT in place.read(f"{name}/{META}", documents.MOST_ROOT_BYTES):
                return f"; {place.path / name}, which is in it, is one"
        except DamagedStoreError:
            continue
    return ""


def already_there(place: Place, specs: Sequence[SplitSpec]) -> dict[str, int]:
    """Group -> sequences committed, for the specs the store at a place holds; refuses what a writer would refuse."""
    place.check_free()
    absent = isinstance(place.path, Path) and not place.path.is_dir()
    manifest = (None if absent else existing_manifest(place)) or Manifest()
    found = {}
    for spec in specs:
        check_split(place, manifest, spec)
        if spec.group in manifest.groups:
            found[spec.group] = spec.count - sum(map(spec.sequences_in, manifest.missing_shards(spec.group)))
    return found


def check_split(place: Place, manifest: Manifest, spec: SplitSpec) -> None:
    """Refuse a split that is there with other settings or damaged, or that would hold or lie in another."""
    for group in manifest.groups:
        if group.startswith(spec.group + "/") or spec.group.startswith(group + "/"):
            raise ConflictError(f"{place.path}: {spec.group} and {group}, which is there, cannot hold each other")
    check_links(place, spec.group, spec.entry.arrays)
    _check_amount(manifest, spec)
    if spec.group in manifest.groups:
        _check_bytes(place, manifest, spec.group)
        _check_same(place, manifest, spec)


def check_links(place: Place, group: str, arrays: Iterable[str] = ()) -> None:
    """Nothing is written through a link that leads out of the store."""
    for name in (*parents(group), group, *(f"{group}/{array}" for array in arrays)):
        where = place.path / name
        if isinstance(where, Path) and where.is_symlink():
            raise ConflictError(f"{where} is a link; nothing is written through it. Remove it")


def _check_amount(manifest: Manifest, spec: SplitSpec) -> None:
    """A store has so many files at most: each commit writes a line for every one of them."""
    others = sum(len(g.arrays) * g.shards for name, g in manifest.groups.items() if name != spec.group)
    planned = len(spec.arrays) * spec.shards
    if others + planned > documents.MOST_OBJECTS:
        needed = f"{spec.group} would need {planned:,} shard files, where {others:,} are planned already"
        most = f"a store has at most {documents.MOST_OBJECTS:,}. Use a larger --shard-size or a second store"
        raise UsageError(f"{needed}; {most}")


def _check_same(place: Place, manifest: Manifest, spec: SplitSpec) -> None:
    root, name = place.path, f"{spec.group}/{META}"
    with naming(root / name):
        group = read_document(place, name, manifest)
        settings = check_group(group)["settings"]
    changed = differences(settings, dict(spec.settings))
    changes = [f"{key}: {there} stored, {here} asked for" for key, there, here in changed]
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
            elif not changed:  # other settings make other layouts: those say enough
                changes.append(f"layout of {path}")
    if changes:
        what = f"{root} already holds {spec.group} with other settings ({'; '.join(dict.fromkeys(changes))})"
        raise ConflictError(f"{what}. Use the same settings, another --out, or --overwrite to replace it")
    if group["consolidated_metadata"] != spec.documents()[spec.group]["consolidated_metadata"]:
        raise DamagedStoreError(f"{root / name}: its consolidated metadata are not those of its arrays")


def _check_bytes(place: Place, manifest: Manifest, group: str) -> None:
    """Whether everything committed of a group, and the groups above it, is still as it was committed."""
    above = {f"{path}/{META}" for path in parents(group)}
    for name in manifest.objects:
        if name in above or name.startswith(group + "/"):
            try:
                check_object(place, name, manifest.objects[name])
            except UnreadableError:
                raise
            except DamagedStoreError as error:
                repair = f"`s2rm-data repair {place.path} {group}` repairs it, --overwrite makes all of it again"
                raise DamagedStoreError(f"{error}; {repair}") from None
