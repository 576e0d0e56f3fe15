"""The write side of the store: one writer at a time, nothing visible before it is whole.

    with StoreWriter(path) as writer:                      # takes the lock, or says who has it
        split = writer.begin(spec)                         # new, or the one that an earlier run left unfinished
        for index in split.missing:                        # any order, any thread
            split.add(index, {"frames": pieces, ...})
        writer.commit()                                    # also done now and then, and at the end

A shard's objects are written whole first; the commit is the replacement of the manifest. A kill between any two steps
leaves the manifest of the last commit, and objects that it does not name; these are written again, with the same bytes,
when the run is resumed.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType

from s2rm_data.addresses import Url
from s2rm_data.errors import ConflictError, DamagedStoreError
from s2rm_data.store.conflicts import check_no_parts, check_split
from s2rm_data.store.documents import json_bytes
from s2rm_data.store.layout import META, group_document, parents
from s2rm_data.store.manifest import Entry, Manifest, check_object, read_document
from s2rm_data.store.opening import existing_manifest
from s2rm_data.store.place import Place, place_of
from s2rm_data.store.split import SplitSpec

COMMIT_SHARE = 0.04  # of a run's time at most that commits take


class Pacer:
    """Group commits: how long to wait until the next one, so that commits take a small share of a run's time.

    To write a manifest costs as much as it has objects. A small one is written after every shard; a large one when
    25 times as long has passed as it took to write, with all shards that have come since.
    """

    def __init__(self, save: Callable[[], None], least_seconds: float) -> None:
        self._save, self._least_seconds = save, least_seconds
        self._mutex = threading.Lock()
        self._due = 0.0
        self._pending = False
        self.seconds = 0.0  # spent in commits
        self.count = 0

    def added(self) -> None:
        """Something is there to commit; it is committed now if that is not too soon."""
        with self._mutex:
            self._pending = True
            if time.monotonic() >= self._due:
                self._commit()

    def commit(self) -> None:
        with self._mutex:
            if self._pending:
                self._commit()

    def _commit(self) -> None:
        begun = time.monotonic()
        self._save()
        ended = time.monotonic()
        self._pending = False
        self.seconds += ended - begun
        self.count += 1
        self._due = ended + max((ended - begun) / COMMIT_SHARE, self._least_seconds)

    @property
    def seconds_left(self) -> float | None:
        """Until something that waits is to be committed; None if nothing waits."""
        return max(self._due - time.monotonic(), 0.0) if self._pending else None


class StoreWriter:
    """Holds the lock of a store while it is open."""

    def __init__(self, path: str | os.PathLike[str] | Url | Place) -> None:
        self.place = place_of(path)
        self._mutex = threading.Lock()
        self._checked: list[SplitSpec] = []  # under the lock, what was found sound stays so
        self._created: dict[str, bytes] = {}  # name -> metadata of the groups that this writer has begun
        self.place.check_free()
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.place.writing())
            check_no_parts(self.place)
            self.manifest = self._open_or_create()
            self.place.tidy()
            self._leave = stack.pop_all()
        self.pacer = Pacer(self._save, self.place.least_commit_seconds)

    def __enter__(self) -> StoreWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._leave:
            if kind is None:
                self.commit()
                self._restore_documents()
            else:
                with contextlib.suppress(Exception):  # the first error is the one to tell
                    self.commit()

    def _open_or_create(self) -> Manifest:
        manifest = existing_manifest(self.place)
        if manifest is None:
            manifest = Manifest()
            manifest.save(self.place)
        return manifest

    def check(self, specs: Iterable[SplitSpec]) -> None:
        """Refuse splits that are there with other settings or damaged, before any of them is touched."""
        for spec in specs:
            if not any(spec is checked for checked in self._checked):
                check_split(self.place, self.manifest, spec)
                self._checked.append(spec)

    def begin(self, spec: SplitSpec, *, overwrite: bool = False) -> SplitWriter:
        """The writer of a split; refuses one that is there with other settings, unless told to overwrite it.

        An unfinished split of the same settings is continued in either case: it is what an interrupted run left.
        """
        if spec.group in self.manifest.groups:
            if not overwrite or self._can_continue(spec):
                self.check([spec])
                for path in [*parents(spec.group), spec.group, *spec.array_documents()]:
                    self.manifest.documents[path] = read_document(self.place, f"{path}/{META}", self.manifest)
                return SplitWriter(self, spec)
            self.manifest.drop_group(spec.group)
            self.manifest.save(self.place)
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
        self.place.clear(spec.group, self.manifest.version)  # what a kill left before the manifest knew of it
        self._created |= add_group(self.place, self.manifest, spec)
        self.manifest.save(self.place)
        self._restore_documents()

    def _restore_documents(self) -> None:
        """Put the metadata of new groups right: where there is no lock, another writer may have removed or replaced
        them in the moment before they were committed. It has lost, and learns that when it commits.
        """
        for name, data in ({} if self.place.locks else self._created).items():
            try:
                check_object(self.place, name, Entry.of([data]))
            except DamagedStoreError:
                self.place.write_whole(name, [data], replace=True)

    def add(self, objects: Mapping[str, Sequence[bytes]]) -> None:
        """Write objects, given in pieces, and record them, all or none; safe to call from several threads."""
        entries = write_objects(self.place, objects)
        with self._mutex:
            self.manifest.objects.update(entries)
        self.pacer.added()

    def commit(self) -> None:
        """Commit what was added, if anything was."""
        self.pacer.commit()

    def _save(self) -> None:
        with self._mutex:
            self.manifest.save(self.place)


def write_objects(place: Place, objects: Mapping[str, Sequence[bytes]]) -> dict[str, Entry]:
    for name, data in objects.items():
        place.write_whole(name, data)
    place.sync(objects)
    return {name: Entry.of(data) for name, data in objects.items()}


def add_group(place: Place, manifest: Manifest, spec: SplitSpec) -> dict[str, bytes]:
    """Write the metadata of a new group and of those above it, and enter them in the manifest; returns them by name."""
    documents = {path: group_document({}) for path in parents(spec.group)} | spec.documents()
    written = {f"{path}/{META}": json_bytes(document) for path, document in documents.items()}
    for name, data in written.items():  # in order: a folder without its zarr.json is nobody's
        manifest.objects |= write_objects(place, {name: [data]})
    manifest.documents |= documents
    manifest.groups[spec.group] = spec.entry
    return written


class SplitWriter:
    """The shards of one split."""

    def __init__(self, writer: StoreWriter, spec: SplitSpec) -> None:
        self.spec = spec
        self._writer = writer
        self.missing = writer.manifest.missing_shards(spec.group)

    def add(self, index: int, shards: Mapping[str, Sequence[bytes]]) -> None:
        """`shards`: array name -> the bytes of its shard number `index`; every array of the split must be there."""
        self._writer.add(self.spec.shard_objects(index, shards))
