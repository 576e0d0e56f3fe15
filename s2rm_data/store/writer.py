"""The write side of the store: one writer at a time, nothing visible before it is whole.

    with StoreWriter(path) as writer:                      # takes the lock, or says who has it
        split = writer.begin(spec)                         # new, or the one that an earlier run left unfinished
        for index in split.missing:                        # any order, any thread
            split.add(index, {"frames": pieces, ...})
        writer.commit()                                    # also done now and then, and at the end

A shard's objects are written whole first; the commit is the replacement of the manifest. A kill leaves the manifest of
the last commit, and objects that it does not name, which are written again with the same bytes when it is resumed."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from s2rm_data.core.addresses import Url
from s2rm_data.core.errors import ConflictError, DamagedStoreError, DiskError, UnreadableError, UsageError
from s2rm_data.store.documents import Entry, json_bytes, parents
from s2rm_data.store.existing import check_split, existing_manifest, has_parts
from s2rm_data.store.intent import Intent, names_of, read_intent
from s2rm_data.store.layout import META, SplitSpec, group_document
from s2rm_data.store.manifest import REPLACEMENT, Manifest, is_shard, is_sound, read_document
from s2rm_data.store.place import Place, place_of

COMMIT_SHARE = 0.04  # of a run's time at most that commits take


class Pacer:
    """Group commits, so that they take a small share of a run's time: to write a manifest costs as much as it has
    objects. A small one is written after every shard; a large one when 25 times as long has passed as it took to write.
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
        self._replacing: dict[str, str] = {}  # group -> the group that is made to take its place
        self.place.check_free()
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.place.writing())
            if has_parts(self.place):  # a writer beside parts that wait to be merged would remove what they have made
                finish = f"finish them with: s2rm-data merge {self.place.path}, or choose another --out"
                raise ConflictError(f"{self.place.path} holds parts that wait to be merged; {finish}")
            found = existing_manifest(self.place)
            self.manifest = found or Manifest()
            if found is None:
                self.manifest.save(self.place)
            self.finished = read_intent(self.place)
            if self.finished:
                self.finished.finish(self.place, self.manifest)
            self.place.tidy(self.manifest.is_ours)
            self._leave = stack.pop_all()
        self.pacer = Pacer(self._save, self.place.least_commit_seconds)

    def __enter__(self) -> StoreWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        with self._leave:
            if kind is None:
                self.finish()
                self._restore_documents()
            else:
                with contextlib.suppress(Exception):  # the first error is the one to tell
                    self.commit()

    def check(self, specs: Iterable[SplitSpec]) -> None:
        """Refuse splits that are there with other settings or damaged, before any of them is touched."""
        for spec in specs:
            if not any(spec is checked for checked in self._checked):
                check_split(self.place, self.manifest, spec)
                self._checked.append(spec)

    def begin(self, spec: SplitSpec, *, overwrite: bool = False) -> SplitWriter:
        """The writer of a split; refuses one that is there with other settings, unless told to overwrite it. An
        unfinished split of the same settings, which an interrupted run left, is continued in either case. Another one
        stays until what replaces it, which is made beside it, is complete (`finish`)."""
        if spec.group.endswith(REPLACEMENT):
            raise UsageError(f"{spec.group}: names that end with {REPLACEMENT} are those of groups that replace others")
        if spec.group in self.manifest.groups:
            if not overwrite or (self.manifest.missing_shards(spec.group) and self._is_same(spec)):
                return self._continued(spec)
            self._replacing[spec.group] = spec.group + REPLACEMENT
            spec = dataclasses.replace(spec, group=spec.group + REPLACEMENT)
            if spec.group in self.manifest.groups:
                if self._is_same(spec):
                    return self._continued(spec)
                self.drop(spec.group)
            self._check_space(spec)
        self._create(spec)
        return SplitWriter(self, spec)

    def _continued(self, spec: SplitSpec) -> SplitWriter:
        self.check([spec])
        for path in [*parents(spec.group), spec.group, *spec.array_documents()]:
            self.manifest.documents[path] = read_document(self.place, f"{path}/{META}", self.manifest)
        return SplitWriter(self, spec)

    def _is_same(self, spec: SplitSpec) -> bool:
        try:
            self.check([spec])
        except UnreadableError:  # perhaps the same
            raise
        except (ConflictError, DamagedStoreError):
            return False
        return True

    def _check_space(self, spec: SplitSpec) -> None:
        """Both have to fit; what is made anew takes about as much per byte of values as what it replaces."""
        old, free = spec.group.removesuffix(REPLACEMENT), self.place.free_nbytes()
        shapes = [self.manifest.documents.get(f"{old}/{name}", {}) for name in self.manifest.groups[old].arrays]
        before = sum(math.prod(d["shape"]) * np.dtype(d["data_type"]).itemsize for d in shapes if d)
        after = spec.count * sum(array.sequence_nbytes for array in spec.arrays)
        needed = self.manifest.group_nbytes(old) * after // max(before, 1)
        if free is not None and all(shapes) and needed > free:
            fit = f"{self.place.path}: {old} is replaced only by what is complete, so both have to fit"
            sizes = f"about {needed:,} bytes are needed and {free:,} are free"
            remove = f"s2rm-data remove {self.place.path} {old}"
            raise DiskError(f"{fit}: {sizes}. Free some space, or remove it first: {remove}")

    def drop(self, group: str) -> None:
        """Remove a group in one commit, and then its objects."""
        before, written = set(self.manifest.objects), self._names_of([group])
        self.manifest.drop_group(group)
        intent = Intent(names=frozenset(before - set(self.manifest.objects)) | written)
        intent.begin(self.place)
        self.manifest.save(self.place)
        intent.finish(self.place, self.manifest)

    def _names_of(self, groups: Iterable[str]) -> frozenset[str]:
        """Names of the groups' objects, also of those that were written and not yet committed."""
        entries = {group: self.manifest.groups[group] for group in groups}
        written = (name for group in entries for name in self.place.names(group) if is_shard(name, entries))
        return names_of(self.manifest, entries) | frozenset(written)

    def finish(self) -> None:
        """Commit; what is complete takes the place of what it was made to replace, all at once."""
        self.commit()
        done = {old: new for old, new in self._replacing.items() if not self.manifest.missing_shards(new)}
        if done:
            intent = Intent(names=self._names_of([*done, *done.values()]), replace=done)
            intent.begin(self.place)
            intent.finish(self.place, self.manifest)
            self._replacing = {old: new for old, new in self._replacing.items() if old not in done}
            self._created = {}

    def _create(self, spec: SplitSpec) -> None:
        self.check([spec])
        names = {f"{path}/{META}" for path in (*parents(spec.group), *spec.documents())} - set(self.manifest.objects)
        intent = Intent(names=frozenset(names))
        if self.place.locks:  # elsewhere two writers may begin at once, and neither may remove what the other has begun
            for name in self.place.names(spec.group):
                if name in names or is_shard(name, {spec.group: spec.entry}):  # no writer of this store put it there
                    raise foreign(self.place, name, "--out")
            intent.begin(self.place)
        documents = {path: group_document({}) for path in parents(spec.group)} | spec.documents()
        written = {f"{path}/{META}": json_bytes(document) for path, document in documents.items()}
        for name, data in written.items():  # in order: a folder without its zarr.json is nobody's
            self.manifest.objects |= write_objects(self.place, {name: [data]})
        self._created |= written
        self.manifest.documents |= documents
        self.manifest.groups[spec.group] = spec.entry
        self.manifest.save(self.place)
        if self.place.locks:
            intent.finish(self.place, self.manifest)
        self._restore_documents()

    def _restore_documents(self) -> None:
        """Put the metadata of new groups right: without a lock, another writer may have removed or replaced them just
        before they were committed. It has lost, and learns that when it commits."""
        for name, data in ({} if self.place.locks else self._created).items():
            if not is_sound(self.place, name, Entry.of([data])):
                self.place.write_whole(name, [data], replace=True)

    def add(self, objects: Mapping[str, Sequence[bytes]]) -> None:
        """Write objects, given in pieces, and record them, all or none; safe to call from several threads."""
        entries = write_objects(self.place, objects)
        with self._mutex:
            self.manifest.objects.update(entries)
        self.pacer.added()

    def commit(self) -> None:
        self.pacer.commit()

    def _save(self) -> None:
        with self._mutex:
            self.manifest.save(self.place)


def foreign(place: Place, name: str, other: str) -> ConflictError:
    whose = "is there, but it is not in the manifest: nobody knows whose it is. Move it elsewhere, or choose another"
    return ConflictError(f"{place.path / name} {whose} {other}")


def write_objects(place: Place, objects: Mapping[str, Sequence[bytes]]) -> dict[str, Entry]:
    for name, data in objects.items():
        place.write_whole(name, data)
    place.sync(objects)
    return {name: Entry.of(data) for name, data in objects.items()}


class SplitWriter:
    def __init__(self, writer: StoreWriter, spec: SplitSpec) -> None:
        self.spec = spec
        self._writer = writer
        self.missing = writer.manifest.missing_shards(spec.group)

    def add(self, index: int, shards: Mapping[str, Sequence[bytes]]) -> None:
        """`shards`: array name -> the bytes of its shard number `index`; every array of the split must be there."""
        self._writer.add(self.spec.shard_objects(index, shards))
