"""Repair: make again exactly the objects of a group that are missing or damaged, byte for byte as they were committed:
a shard from the group's settings, written only if its size and SHA-256 are those of the manifest; metadata from copies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from s2rm_data.core.addresses import StorePath
from s2rm_data.core.errors import ConflictError, DamagedStoreError, UsageError
from s2rm_data.core.progress import Progress
from s2rm_data.core.schema import SplitSource
from s2rm_data.making.run import build_shard, split_spec
from s2rm_data.making.world import world_of
from s2rm_data.store.documents import Entry, json_bytes, parents
from s2rm_data.store.existing import check_links
from s2rm_data.store.layout import META, consolidated, group_document
from s2rm_data.store.manifest import Manifest, is_sound, read_document
from s2rm_data.store.place import Place
from s2rm_data.store.reader import Group, Store, unknown_group
from s2rm_data.store.writer import StoreWriter


class Repaired(NamedTuple):
    """Names of the objects that were made again, and how many objects of the group were checked."""

    objects: tuple[str, ...]
    checked: int


def repair(path: StorePath, group: str, *, progress: Progress | None = None) -> Repaired:
    """Repair one group of the store at `path`; raises, and changes nothing more, when an object cannot be restored."""
    store = Store(path)
    group = group.strip("/")
    if group not in store.manifest.groups:
        raise unknown_group(str(path), group, sorted(store.manifest.groups))
    with StoreWriter(path) as writer:
        check_links(writer.place, group, writer.manifest.groups[group].arrays)
        return _Repair(writer.place, writer.manifest, group, progress or Progress()).run()


class _Repair:
    def __init__(self, place: Place, manifest: Manifest, group: str, progress: Progress) -> None:
        self._place, self._manifest, self._group, self._progress = place, manifest, group, progress
        self._advice = f"make {group} again with its command and --overwrite"
        above = {f"{path}/{META}" for path in parents(group)}
        self._names = [name for name in manifest.objects if name in above or name.startswith(group + "/")]

    def run(self) -> Repaired:
        damaged = [name for name in self._names if not self._is_sound(name)]
        documents = [name for name in damaged if name.endswith(f"/{META}")]
        shards = sorted(set(damaged) - set(documents))
        for name in documents:
            copy = json_bytes(self._document(name.removesuffix(f"/{META}")))
            self._restore(name, [copy], "its copies differ from it")
        if shards:
            self._make(set(shards))
        return Repaired(objects=(*documents, *shards), checked=len(self._names))

    def _is_sound(self, name: str) -> bool:
        return is_sound(self._place, name, self._manifest.objects[name])

    def _document(self, path: str) -> dict[str, Any]:
        """A metadata document from a copy: that of the root, or for an array that of its group."""
        if path in parents(self._group):
            return group_document({})
        arrays = {f"{self._group}/{name}": name for name in self._manifest.groups[self._group].arrays}
        copies = {p: self._manifest.documents[p] for p in arrays if p in self._manifest.documents}
        if path == self._group and path in self._manifest.documents:
            listed = consolidated({name: copies[p] for p, name in arrays.items()})
            return {**self._manifest.documents[path], "consolidated_metadata": listed}
        if path in copies:
            return copies[path]
        if path in arrays and self._is_sound(f"{self._group}/{META}"):  # unfinished: the root does not list it
            group = read_document(self._place, f"{self._group}/{META}", self._manifest)
            found = group.get("consolidated_metadata", {}).get("metadata", {}).get(arrays[path])
            if isinstance(found, dict):
                return found
        lost = f"{self._place.path / path / META}: cannot be restored, there is no copy of it"
        raise DamagedStoreError(f"{lost}; {self._advice}")

    def _make(self, damaged: set[str]) -> None:
        group, entry = Group(Store(self._place), self._group), self._manifest.groups[self._group]
        source = source_of(group)
        spec = split_spec(source, next(iter(group.arrays.values())).layout.shard)
        stored = {array.layout.path: array.layout.document() for array in group.arrays.values()}
        if spec.array_documents() != stored:
            raise ConflictError(f"{self._group} cannot be repaired: this program would store it in another layout")
        wanted = [i for i in range(entry.shards) if not damaged.isdisjoint(entry.shard_objects(self._group, i))]
        self._progress.start(sum(map(spec.sequences_in, wanted)), 0)
        for index in wanted:
            made = build_shard(source, *spec.shard_range(index), spec.shard, self._progress.advance)
            for array, name in zip(entry.arrays, entry.shard_objects(self._group, index), strict=True):
                if name in damaged:
                    self._restore(name, made[array], "this program, or its zstd library, makes other bytes from it")

    def _restore(self, name: str, data: Sequence[bytes], why_not: str) -> None:
        """Write an object if it is, to the byte, the one that was committed."""
        if Entry.of(data) != self._manifest.objects[name]:
            raise ConflictError(f"{self._place.path / name}: cannot be repaired, {why_not}; {self._advice}")
        self._place.write_whole(name, data, replace=True)
        self._place.sync([name])


def source_of(group: Group) -> SplitSource:
    """What makes a group again, from its settings alone."""
    settings, world = dict(group.settings), world_of(group)
    try:
        source = world.split_from(settings, len(group))
        if source is None:
            raise UsageError(f"{group.path} cannot be made again: {world.title} offers no way to do so")
        same = source.settings == settings and source.group == group.path
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DamagedStoreError(f"{group.path}: its settings cannot be used ({error!r})") from None
    if not same:
        there, here = (found.get("generator_version") for found in (settings, source.settings))
        versions = f"(generator version {there!r}, this program's is {here!r}); repair it with the release that made it"
        other = "it was made with settings that this program does not have"
        raise ConflictError(f"{group.path} cannot be made again: {other} {versions}")
    return source
