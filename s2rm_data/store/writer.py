"""The write side of the store: one writer at a time, one shard a commit, nothing visible before it is whole.

    with StoreWriter(path) as writer:                      # takes the lock, or says who has it
        split = writer.begin(spec)                         # new, or the one that an earlier run left unfinished
        for index in split.missing:                        # any order, any thread
            split.commit(index, {"frames": pieces, ...})

A commit writes every array's shard under a temporary name, fsyncs, renames, and then replaces the manifest. A kill
between any two steps leaves the manifest of the last commit, and files that it does not name; these are written again,
with the same bytes, when the run is resumed.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from s2rm_data.errors import ConflictError, DamagedStoreError, UsageError
from s2rm_data.schema import ArraySpec
from s2rm_data.store.files import PARTIAL, disk_errors, lock_folder, make_folder, sync_folder, write_whole
from s2rm_data.store.layout import (
    META,
    ArrayLayout,
    array_document,
    consolidated,
    group_document,
    is_foreign,
    json_bytes,
    parents,
    shard_sequences,
)
from s2rm_data.store.manifest import Entry, GroupEntry, Manifest, read_document, read_object


@dataclass(frozen=True, kw_only=True)
class SplitSpec:
    """A split as it is to be stored. `settings` decide the content; `attributes` only describe it."""

    group: str
    first_dim: str
    count: int
    arrays: tuple[ArraySpec, ...]
    settings: Mapping[str, Any]
    attributes: Mapping[str, Any]
    shard_size: int

    def __post_init__(self) -> None:
        if not all(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", part) for part in self.group.split("/")):
            raise UsageError(f"{self.group!r} cannot be the name of a group; use letters, digits, _, - and .")

    @property
    def shard(self) -> int:
        return shard_sequences(self.arrays, self.count, self.shard_size)

    def array_documents(self) -> dict[str, dict[str, Any]]:
        """Path -> metadata of every array."""
        return {
            f"{self.group}/{spec.name}": array_document(spec, self.first_dim, self.count, self.shard)
            for spec in self.arrays
        }

    def documents(self) -> dict[str, dict[str, Any]]:
        """Path -> metadata of the group, which repeats its arrays' (these never change), and of every array."""
        arrays = self.array_documents()
        group = group_document({**self.attributes, "settings": dict(self.settings)})
        group["consolidated_metadata"] = consolidated({path.rsplit("/", 1)[1]: d for path, d in arrays.items()})
        return {self.group: group, **arrays}


class StoreWriter:
    """Holds the lock of a store while it is open."""

    def __init__(self, path: Path) -> None:
        self.root = path
        self._mutex = threading.Lock()
        _check_place(path)
        make_folder(path)
        self._lock = lock_folder(path)
        try:
            self.manifest = self._open_or_create()
            _remove_partials(path)
        except BaseException:
            os.close(self._lock)
            raise

    def __enter__(self) -> StoreWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._lock)

    def _open_or_create(self) -> Manifest:
        if not (self.root / META).exists():
            _check_new(self.root)
            manifest = Manifest()
            manifest.save(self.root)
            return manifest
        if is_foreign(self.root / META):
            raise ConflictError(f"{self.root} is a Zarr of something else; choose another --out")
        return Manifest.load(self.root)

    def check(self, specs: Iterable[SplitSpec]) -> None:
        """Refuse splits that are there with other settings, before any of them is touched."""
        for spec in specs:
            for group in self.manifest.groups:
                if group.startswith(spec.group + "/") or spec.group.startswith(group + "/"):
                    raise ConflictError(
                        f"{self.root}: {spec.group} and {group}, which is there, cannot hold each other"
                    )
            if spec.group in self.manifest.groups:
                self._check_same(spec)

    def begin(self, spec: SplitSpec, *, overwrite: bool = False) -> SplitWriter:
        """The writer of a split; refuses one that is there with other settings, unless told to overwrite it.

        An unfinished split of the same settings is gone on with in either case: it is what an interrupted run left.
        """
        if spec.group in self.manifest.groups:
            if not overwrite or self._can_go_on(spec):
                self.check([spec])
                for path in [*parents(spec.group), spec.group, *spec.array_documents()]:
                    self.manifest.documents[path] = read_document(self.root, f"{path}/{META}", self.manifest)
                return SplitWriter(self, spec)
            self.manifest.drop_group(spec.group)
            self.manifest.save(self.root)
        self._create(spec)
        return SplitWriter(self, spec)

    def _can_go_on(self, spec: SplitSpec) -> bool:
        try:
            self.check([spec])
        except (ConflictError, DamagedStoreError):
            return False
        return bool(self.manifest.missing_shards(spec.group))

    def _check_same(self, spec: SplitSpec) -> None:
        stored = read_document(self.root, f"{spec.group}/{META}", self.manifest)["attributes"]
        changes = [*_differences(stored["settings"], dict(spec.settings))]
        for path, document in spec.array_documents().items():
            if f"{path}/{META}" not in self.manifest.objects:
                changes.append(f"array {path} is new")
            elif (there := read_document(self.root, f"{path}/{META}", self.manifest)) != document:
                layout, wanted = (ArrayLayout.from_document(path, d) for d in (there, document))
                if layout.shape[0] != wanted.shape[0]:
                    changes.append(f"sequences: {layout.shape[0]} stored, {wanted.shape[0]} asked for")
                elif layout.shard != wanted.shard:
                    changes.append(f"shard size: {layout.shard} stored, {wanted.shard} asked for")
                else:
                    changes.append(f"layout of {path}")
        if changes:
            listed = "; ".join(dict.fromkeys(changes))
            raise ConflictError(
                f"{self.root} already holds {spec.group} with other settings ({listed}). "
                "Use the same settings, another --out, or --overwrite to replace it"
            )
        self._check_bytes(spec.group)

    def _check_bytes(self, group: str) -> None:
        """Whether everything committed of a group, and the groups above it, is still as it was committed."""
        above = {f"{path}/{META}" for path in parents(group)}
        for name in self.manifest.objects:
            if name in above or name.startswith(group + "/"):
                try:
                    read_object(self.root, name, self.manifest)
                except DamagedStoreError as error:
                    raise DamagedStoreError(f"{error}; --overwrite makes {group} again") from None

    def _create(self, spec: SplitSpec) -> None:
        self.check([spec])
        folder = self.root / spec.group
        with disk_errors(folder):
            if folder.exists():  # what a kill left before the manifest knew of it
                shutil.rmtree(folder)
        documents = {path: group_document({}) for path in parents(spec.group)} | spec.documents()
        for path, document in documents.items():
            name, data = f"{path}/{META}", [json_bytes(document)]
            make_folder((self.root / name).parent)
            write_whole(self.root / name, data)
            sync_folder((self.root / name).parent)
            self.manifest.objects[name] = Entry.of(data)
        self.manifest.documents |= documents
        self.manifest.groups[spec.group] = GroupEntry(
            arrays={array.name: 1 + len(array.shape) for array in spec.arrays},
            shards=-(-spec.count // spec.shard),
        )
        self.manifest.save(self.root)

    def commit(self, objects: Mapping[str, Sequence[bytes]]) -> None:
        """Write objects, given in pieces, and record them, all or none; safe to call from several threads."""
        entries = {}
        for name, data in objects.items():
            write_whole(self.root / name, data)
            entries[name] = Entry.of(data)
        for folder in dict.fromkeys((self.root / name).parent for name in objects):
            sync_folder(folder)
        with self._mutex:
            self.manifest.objects.update(entries)
            self.manifest.save(self.root)


class SplitWriter:
    """The shards of one split."""

    def __init__(self, writer: StoreWriter, spec: SplitSpec) -> None:
        self.spec = spec
        self._writer = writer
        self.missing = writer.manifest.missing_shards(spec.group)

    def shard_range(self, index: int) -> tuple[int, int]:
        """First and one-past-last sequence of a shard."""
        return index * self.spec.shard, min((index + 1) * self.spec.shard, self.spec.count)

    def commit(self, index: int, shards: Mapping[str, Sequence[bytes]]) -> None:
        """`shards`: array name -> the bytes of its shard number `index`; every array of the split must be there."""
        names = self._writer.manifest.groups[self.spec.group].shard_objects(self.spec.group, index)
        self._writer.commit(dict(zip(names, (shards[array.name] for array in self._arrays()), strict=True)))

    def _arrays(self) -> list[ArraySpec]:
        by_name = {array.name: array for array in self.spec.arrays}
        return [by_name[name] for name in self._writer.manifest.groups[self.spec.group].arrays]


def _check_place(path: Path) -> None:
    if not path.parent.is_dir():
        raise UsageError(f"the folder {path.parent} does not exist; create it first, or choose another --out")
    if (path.exists() or path.is_symlink()) and not path.is_dir():
        raise ConflictError(f"{path} is a file or a broken link, not a store; choose another --out")


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


def _differences(stored: dict[str, Any], wanted: dict[str, Any], prefix: str = "") -> list[str]:
    lines = []
    for key in sorted({*stored, *wanted}):
        there, here = stored.get(key), wanted.get(key)
        if isinstance(there, dict) and isinstance(here, dict):
            lines += _differences(there, here, f"{prefix}{key}.")
        elif there != here:
            lines.append(f"{prefix}{key}: {there} stored, {here} asked for")
    return lines


def _remove_partials(root: Path) -> None:
    for path in root.rglob("*" + PARTIAL):
        with contextlib.suppress(OSError):
            path.unlink()
