"""The read side of the store. Everything goes through the manifest: what is missing, cut, zeroed, swapped or changed is
an error that names the object, never a fill value. What documents say is checked before anything is allocated.

An object is checked whole (kind of file, size, SHA-256) when it is first touched or has been written to since, and
chunk by chunk (crc32c, size) at every read. Links are not followed. Reading is thread-safe."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from s2rm_data.core.addresses import Url
from s2rm_data.core.check import expect
from s2rm_data.core.errors import (
    ConflictError,
    DamagedStoreError,
    S2RMError,
    UnknownNameError,
    UsageError,
    did_you_mean,
)
from s2rm_data.store.cache import ShardCache
from s2rm_data.store.codec import check_chunk, decode_chunk, index_nbytes, parse_index
from s2rm_data.store.documents import Attributes, Entry, check_group, parents
from s2rm_data.store.existing import open_manifest
from s2rm_data.store.intent import INTENT
from s2rm_data.store.layout import META, PACKED_BITS, ArrayLayout, consolidated, group_document
from s2rm_data.store.manifest import REPLACEMENT, entry_of, naming, object_pieces, read_document
from s2rm_data.store.place import OpenObject, Place, place_of


class StoredArray:
    """One array of a split; bit-packed ones read as 0 and 1 (`packed` reads them as stored)."""

    def __init__(self, store: Store, layout: ArrayLayout) -> None:
        self._store = store
        self.layout = layout
        self._checked: dict[int, tuple[NDArray[np.uint64], Hashable]] = {}  # shard -> chunk index, as it was checked
        self._bits: int | None = layout.attributes.get(PACKED_BITS)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape as read."""
        return self.layout.shape if self._bits is None else (*self.layout.shape[:-1], self._bits)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.layout.dtype.newbyteorder("=")

    @property
    def dims(self) -> tuple[str, ...]:
        """Names of the dimensions as read."""
        return (*self.layout.dims[:-1], self.layout.dims[-1].removeprefix("packed_"))

    def words(self, first: int = 0) -> str:
        """`100 sequence x 48 y x 48 x`: sizes and names of its dimensions, from the `first` on."""
        return " x ".join(f"{size} {dim}" for dim, size in zip(self.dims[first:], self.shape[first:], strict=True))

    def __len__(self) -> int:
        return self.layout.shape[0]

    def __repr__(self) -> str:
        return f"<StoredArray {self.layout.path} {self.dtype} {dict(zip(self.dims, self.shape, strict=True))}>"

    def __getitem__(self, key: int | slice | Sequence[int] | NDArray[Any]) -> NDArray[Any]:
        values = self.packed(key)
        return values if self._bits is None else np.unpackbits(values, axis=-1, count=self._bits)

    def packed(self, key: int | slice | Sequence[int] | NDArray[Any]) -> NDArray[Any]:
        """The values as stored."""
        if isinstance(key, (bool, tuple)):
            raise IndexError(_INDEXING)
        if isinstance(key, (int, np.integer)):
            return self._gather(_positions([int(key)], len(self)))[0]
        if isinstance(key, slice):
            return self._gather(np.arange(*key.indices(len(self)), dtype=np.int64))
        return self._gather(_positions(key, len(self)))

    def _gather(self, positions: NDArray[np.int64]) -> NDArray[Any]:
        layout = self.layout
        try:
            out = np.empty((len(positions), *layout.shape[1:]), dtype=self.dtype)
        except (MemoryError, ValueError):
            nbytes = len(positions) * layout.chunk_nbytes // layout.chunk
            raise UsageError(f"{layout.path}: {nbytes:,} bytes do not fit into memory; read fewer rows") from None
        if self._store.cache is not None:
            shards = positions // layout.shard
            needed = np.unique(shards)
            for shard, following in zip(needed, [*needed[1:], None], strict=True):
                if following is not None:
                    self._store.cache.want(self, int(following))  # fetched while this one is read
                rows = np.flatnonzero(shards == shard)
                out[rows] = self._store.cache.rows(self, int(shard), positions[rows] - shard * layout.shard)
            return out
        order = np.argsort(positions, kind="stable")
        chunks = positions[order] // layout.chunk
        bounds = np.flatnonzero(np.diff(chunks, prepend=-1))  # where each chunk's rows begin
        for (chunk, values), rows in zip(self._chunks(chunks[bounds]), np.split(order, bounds)[1:], strict=True):
            out[rows] = values[positions[rows] - chunk * layout.chunk]
        return out

    def _chunks(self, chunks: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[Any]]]:
        """(number, values) of the given chunks, ascending; a shard is opened once."""
        layout = self.layout
        shards = chunks // layout.slots
        for shard in np.unique(shards):
            slots = chunks[shards == shard] - shard * layout.slots
            for slot, data in zip(slots, self._slot_bytes(int(shard), slots), strict=True):
                raw = decode_chunk(data, layout.chunk_nbytes, self._where(int(shard), slot))
                values = np.frombuffer(raw, dtype=layout.dtype).reshape(layout.chunk, *layout.shape[1:])
                yield int(shard * layout.slots + slot), values

    def shard_entry(self, shard: int) -> Entry:
        return entry_of(self._store.place, self.layout.shard_object(shard), self._store.manifest)

    def shard_nbytes(self, shard: int) -> int:
        """Of a decoded shard, with the padding of its last chunk."""
        return self.layout.chunks_in(shard) * self.layout.chunk_nbytes

    def decoded(self, shard: int) -> Iterator[bytes]:
        """The values of every chunk of a shard in order, checked like all that is read."""
        for slot, data in enumerate(self._slot_bytes(shard)):
            yield decode_chunk(data, self.layout.chunk_nbytes, self._where(shard, slot))

    def _where(self, shard: int, slot: int) -> str:
        return f"{self._store.path / self.layout.shard_object(shard)}, chunk {slot}"

    def _slot_bytes(self, shard: int, slots: NDArray[np.int64] | None = None) -> Iterator[bytes]:
        """Chunks of a shard, by default all that it has."""
        name, entry, count = self.layout.shard_object(shard), self.shard_entry(shard), self.layout.chunks_in(shard)
        with self._store.place.opened(name) as opened:
            index, stamp = self._checked.get(shard, (None, None))
            if index is None or stamp != opened.stamp:  # never seen, or no longer the object that was checked
                self._store.check(opened, name, entry)
                length = index_nbytes(self.layout.slots)
                (table,) = opened.ranges([(entry.nbytes - length, length)])
                index = parse_index(table, str(self._store.path / name), chunks=count, nbytes=entry.nbytes - length)
                self._checked[shard] = index, opened.stamp
            chosen = slice(count) if slots is None else slots
            yield from opened.ranges([(int(offset), int(size)) for offset, size in index[chosen]])

    def check(self) -> None:
        """Whether every chunk is there, has its checksum, and holds as many bytes as it should; not decompressed."""
        for shard in range(self.layout.shards):
            for slot, data in enumerate(self._slot_bytes(shard)):
                check_chunk(data, self.layout.chunk_nbytes, self._where(shard, slot))


class Group:
    """One split: its arrays by name, its settings and its other attributes. `in_shards`: its sequences lie in the
    shards of its arrays, in order; for a copy that holds only some, they do not."""

    in_shards = True

    def __init__(self, store: Store, path: str) -> None:
        self.path, self.store, self._entry = path, store, store.manifest.groups[path]
        for parent in parents(path):
            with naming(store.path / parent / META):
                expect(self._document(parent) == group_document({}), "is not a group of this format")
        document = self._document(path)
        documents = {name: self._document(f"{path}/{name}") for name in self._entry.arrays}
        with naming(store.path / path / META):
            self.attributes: dict[str, Any] = Attributes(str(store.path / path), check_group(document))
            right = document["consolidated_metadata"] == consolidated(documents)
            expect(right, "its consolidated metadata are not those of its arrays")
        self.arrays = {name: self._array(name, document) for name, document in documents.items()}
        with naming(store.path / path / META):
            expect(len({len(array) for array in self.arrays.values()}) == 1, "its arrays are not equally long")

    def _document(self, path: str) -> dict[str, Any]:
        """Metadata below the group or above; what the root repeats of them for other readers must be the same."""
        document = read_document(self.store.place, f"{path}/{META}", self.store.manifest)
        repeated = self.store.manifest.documents.get(path)
        if repeated is not None and repeated != {k: v for k, v in document.items() if k != "consolidated_metadata"}:
            raise DamagedStoreError(f"{self.store.path / META}: its metadata of {path} are not those of {path}/{META}")
        return document

    def _array(self, name: str, document: dict[str, Any]) -> StoredArray:
        """An array that is what the manifest says of it, and whose shards can hold what it says of itself."""
        path, shards, dimensions = f"{self.path}/{name}", self._entry.shards, self._entry.arrays[name]
        with naming(self.store.path / path / META):
            layout = ArrayLayout.from_document(path, document)
            there, least = len(layout.shape), index_nbytes(layout.slots)
            expect(layout.shards == shards, f"has {layout.shards:,} shards where the manifest says {shards:,}")
            expect(there == dimensions, f"has {there} dimensions where the manifest says {dimensions}")
            for index in range(shards):
                entry = self.store.manifest.objects.get(layout.shard_object(index))
                sound = entry is None or entry.nbytes >= least
                expect(sound, f"shard {index} is too small for {layout.slots:,} chunks")
        return StoredArray(self.store, layout)

    @property
    def settings(self) -> dict[str, Any]:
        """What decides the content: generator, its version, config, seed."""
        settings: dict[str, Any] = self.attributes["settings"]
        return settings

    @property
    def nbytes(self) -> int:
        """Bytes on disk, metadata included."""
        return self.store.manifest.group_nbytes(self.path)

    def __len__(self) -> int:
        return len(next(iter(self.arrays.values())))

    def __iter__(self) -> Iterator[str]:
        return iter(self.arrays)

    @overload
    def __getitem__(self, key: str) -> StoredArray: ...
    @overload
    def __getitem__(self, key: int) -> dict[str, NDArray[Any]]: ...
    def __getitem__(self, key: str | int) -> StoredArray | dict[str, NDArray[Any]]:
        """An array by name, or all arrays of one sequence by its number."""
        if isinstance(key, str):
            if key not in self.arrays:
                it_has = f"it has {', '.join(self.arrays)}"
                raise UnknownNameError(f"{self.path} has no array {key!r}{did_you_mean(key, self.arrays, it_has)}")
            return self.arrays[key]
        # Numbers as arrays without dimensions: torch's default_collate takes uint64 as an array only.
        return {name: np.asarray(array[key]) for name, array in self.arrays.items()}

    def _repr_html_(self) -> str:
        from s2rm_data.store.notebook import group_html

        return group_html(self)

    def __repr__(self) -> str:
        return f"<Group {self.path} of {len(self)}: {', '.join(self.arrays)}>"

    def content_digest(self) -> str:
        """SHA-256 of names, types, shapes and the compressed chunks in order: the same for any number of shards.
        Compressed, because the raw images of a large StarCraft II split are a thousand times as many bytes."""
        digest = hashlib.sha256()
        for name, array in sorted(self.arrays.items()):
            layout = array.layout
            digest.update(f"{name} {layout.dtype.name} {layout.shape} {layout.chunk}\n".encode())
            for index in range(layout.shards):
                for chunk in array._slot_bytes(index):
                    digest.update(chunk)
        return digest.hexdigest()


class Store:
    """A store opened for reading, through `cache` if there is one; indexing it with a group's path opens that group."""

    def __init__(self, path: str | os.PathLike[str] | Url | Place, *, cache: ShardCache | None = None) -> None:
        self.cache = cache
        self.place = place_of(path)
        self.path = self.place.path
        self.manifest = open_manifest(self.place)

    def check(self, opened: OpenObject, name: str, entry: Entry) -> None:
        """Refuse an object that is not what was committed when this store was opened; says if it was replaced since."""
        try:
            for _ in object_pieces(opened, self.path / name, entry):
                pass
        except DamagedStoreError as error:
            if not self._knows(name, entry):
                since = "has been replaced since this store was opened; open it again"
                raise ConflictError(f"{self.path / name} {since}") from error
            raise

    def _knows(self, name: str, entry: Entry) -> bool:
        """Whether the root, as it is now, says the same of an object."""
        try:
            return open_manifest(self.place).objects.get(name) == entry
        except S2RMError:
            return True

    @property
    def groups(self) -> list[str]:
        """Paths of the complete groups."""
        return sorted(self.manifest.groups.keys() - self.unfinished.keys())

    @property
    def unfinished(self) -> dict[str, tuple[int, int]]:
        """Groups whose making was interrupted: path -> (shards there, shards in all)."""
        found = {}
        for group, entry in sorted(self.manifest.groups.items()):
            missing = len(self.manifest.missing_shards(group))
            if missing or group.endswith(REPLACEMENT):
                found[group] = entry.shards - missing, entry.shards
        return found

    def __contains__(self, group: str) -> bool:
        return group in self.groups

    def __iter__(self) -> Iterator[str]:
        return iter(self.groups)

    def __len__(self) -> int:
        return len(self.groups)

    def __getitem__(self, group: str) -> Group:
        group = group.strip("/")
        if group in self.unfinished:
            what = "{} is unfinished, {} of {} shards are there".format(group, *self.unfinished[group])
            raise DamagedStoreError(f"{self.path}: {what}; run the command that makes it again to finish it")
        if group not in self.manifest.groups:
            raise unknown_group(str(self.path), group, self.groups)
        if group + REPLACEMENT in self.manifest.groups and self.place.has(INTENT):
            replaced = (
                f"{group} is just being replaced, or whoever did it was stopped at the last step; nothing is lost"
            )
            again = "Try again, or run the command that replaces it again to finish it"
            raise ConflictError(f"{self.path}: {replaced}. {again}")
        return Group(self, group)

    def _repr_html_(self) -> str:
        from s2rm_data.store.notebook import store_html

        return store_html(self)

    def __repr__(self) -> str:
        return f"<Store {self.path}: {', '.join(self.groups)}>"


def unknown_group(store: str, group: str, groups: Sequence[str]) -> UnknownNameError:
    """For a name that is not a group's; one that groups lie under is answered with these."""
    if inside := [name for name in groups if name.startswith(group + "/")]:
        return UnknownNameError(f"{group} in {store} is not one group but {len(inside)}: {', '.join(inside)}; name one")
    it_has = f"it has {', '.join(groups) or 'nothing yet'}"
    return UnknownNameError(f"{store} has no group {group!r}{did_you_mean(group, groups, it_has)}")


_INDEXING = "index the first dimension with an integer, a slice or a list of integers; the rest on what comes back"


def _positions(key: Sequence[int] | NDArray[Any], length: int) -> NDArray[np.int64]:
    positions = np.asarray(key)
    if positions.ndim != 1 or (positions.size and positions.dtype.kind not in "iu"):
        raise IndexError(_INDEXING)
    positions = positions.astype(np.int64)
    if ((positions < -length) | (positions >= length)).any():
        raise IndexError(f"index out of range for {length} sequences")
    return np.where(positions < 0, positions + length, positions)
