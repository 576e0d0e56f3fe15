"""The write side of the store: one writer at a time, one shard per commit, nothing visible before it is whole.

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
import shutil
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType

from s2rm_data.errors import ConflictError, DamagedStoreError
from s2rm_data.files import PARTIAL, disk_errors, lock_folder, make_folder, sync_folder, write_whole
from s2rm_data.schema import ArraySpec
from s2rm_data.store.conflicts import check_split
from s2rm_data.store.documents import json_bytes
from s2rm_data.store.layout import META, group_document, parents
from s2rm_data.store.manifest import Entry, GroupEntry, Manifest, read_document
from s2rm_data.store.place import check_place, existing_manifest
from s2rm_data.store.split import SplitSpec


class StoreWriter:
    """Holds the lock of a store while it is open."""

    def __init__(self, path: Path) -> None:
        self.root = path
        self._mutex = threading.Lock()
        self._checked: list[SplitSpec] = []  # under the lock, what was found sound stays so
        check_place(path)
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
        manifest = existing_manifest(self.root)
        if manifest is None:
            manifest = Manifest()
            manifest.save(self.root)
        return manifest

    def check(self, specs: Iterable[SplitSpec]) -> None:
        """Refuse splits that are there with other settings or damaged, before any of them is touched."""
        for spec in specs:
            if not any(spec is checked for checked in self._checked):
                check_split(self.root, self.manifest, spec)
                self._checked.append(spec)

    def begin(self, spec: SplitSpec, *, overwrite: bool = False) -> SplitWriter:
        """The writer of a split; refuses one that is there with other settings, unless told to overwrite it.

        An unfinished split of the same settings is continued in either case: it is what an interrupted run left.
        """
        if spec.group in self.manifest.groups:
            if not overwrite or self._can_continue(spec):
                self.check([spec])
                for path in [*parents(spec.group), spec.group, *spec.array_documents()]:
                    self.manifest.documents[path] = read_document(self.root, f"{path}/{META}", self.manifest)
                return SplitWriter(self, spec)
            self.manifest.drop_group(spec.group)
            self.manifest.save(self.root)
        self._create(spec)
        return SplitWriter(self, spec)

    def _can_continue(self, spec: SplitSpec) -> bool:
        try:
            self.check([spec])
        except (ConflictError, DamagedStoreError):
            return False
        return bool(self.manifest.missing_shards(spec.group))

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
            shards=spec.shards,
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

    def commit(self, index: int, shards: Mapping[str, Sequence[bytes]]) -> None:
        """`shards`: array name -> the bytes of its shard number `index`; every array of the split must be there."""
        names = self._writer.manifest.groups[self.spec.group].shard_objects(self.spec.group, index)
        self._writer.commit(dict(zip(names, (shards[array.name] for array in self._arrays()), strict=True)))

    def _arrays(self) -> list[ArraySpec]:
        by_name = {array.name: array for array in self.spec.arrays}
        return [by_name[name] for name in self._writer.manifest.groups[self.spec.group].arrays]


def _remove_partials(root: Path) -> None:
    for folder, _, names in os.walk(root):  # which follows no links
        for name in names:
            if name.endswith(PARTIAL):
                with contextlib.suppress(OSError):
                    (Path(folder) / name).unlink()
