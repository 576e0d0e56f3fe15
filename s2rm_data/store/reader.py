"""The read side of the store. Everything goes through the manifest: what is missing, cut, zeroed, swapped or changed is
an error that names the object, never a fill value.

    store = Store("data.zarr")
    store.groups                              # ["bballs/test_1", ..., "bballs/train", "bballs/val"]
    train = store["bballs/train"]
    train["frames"][7]                        # (100, 48, 48) uint8 of 0 and 1
    train["position"][[3, 1, 4]]              # (3, 100, 3, 2) float32

An object is checked whole (size, SHA-256) when it is first touched or has been written to since, and chunk by chunk
(crc32c) at every read.
Reading is thread-safe; a chunk costs one pread and one decompression.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from s2rm_data.errors import DamagedStoreError, UnknownNameError, UsageError, did_you_mean
from s2rm_data.store.codec import ABSENT, decode_chunk, index_nbytes, parse_index
from s2rm_data.store.layout import META, ArrayLayout, is_foreign, parents
from s2rm_data.store.manifest import Manifest, read_document, read_object

PACKED_BITS = "packed_bits"  # array attribute: the last axis is bit-packed (most significant bit first), this many bits


class StoredArray:
    """One array of a split; index it along its first dimension with an integer, a slice or a list of integers.

    Bit-packed arrays read as 0 and 1 (`packed` reads them as stored).
    """

    def __init__(self, store: Store, layout: ArrayLayout) -> None:
        self._store = store
        self.layout = layout
        self._checked: dict[int, tuple[NDArray[np.uint64], FileStamp]] = {}  # shard -> chunk index, as it was checked
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

    def __len__(self) -> int:
        return self.layout.shape[0]

    def __repr__(self) -> str:
        return f"<StoredArray {self.layout.path} {self.dtype} {dict(zip(self.dims, self.shape, strict=True))}>"

    def __getitem__(self, key: int | slice | Sequence[int] | NDArray[Any]) -> NDArray[Any]:
        return self._unpack(self.packed(key))

    def _unpack(self, values: NDArray[Any]) -> NDArray[Any]:
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
        out = np.empty((len(positions), *layout.shape[1:]), dtype=self.dtype)
        order = np.argsort(positions, kind="stable")
        chunks = positions[order] // layout.chunk
        bounds = np.flatnonzero(np.diff(chunks, prepend=-1))  # where each chunk's rows begin
        for (chunk, values), rows in zip(self._chunks(chunks[bounds]), np.split(order, bounds)[1:], strict=True):
            out[rows] = values[positions[rows] - chunk * layout.chunk]
        return out

    def _chunks(self, chunks: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[Any]]]:
        """(number, values) of the given chunks, ascending; a shard is opened once."""
        layout = self.layout
        per_shard = layout.shard // layout.chunk
        shards = chunks // per_shard
        for shard in np.unique(shards):
            slots = chunks[shards == shard] - shard * per_shard
            name = layout.shard_object(int(shard))
            for slot, data in zip(slots, self._slot_bytes(int(shard), name, slots), strict=True):
                raw = decode_chunk(data, layout.chunk_nbytes, f"{self._store.path / name}, chunk {slot}")
                values = np.frombuffer(raw, dtype=layout.dtype).reshape(layout.chunk, *layout.shape[1:])
                yield int(shard * per_shard + slot), values

    def _slot_bytes(self, shard: int, name: str, slots: NDArray[np.int64]) -> Iterator[bytes]:
        path = self._store.path / name
        with _open(path) as descriptor:
            index, stamp = self._checked.get(shard, (None, None))
            now = _stamp(descriptor)
            if index is None or stamp != now:  # never seen, or no longer the file that was checked
                data = read_object(self._store.path, name, self._store.manifest)
                index = parse_index(data[-index_nbytes(self.layout.shard // self.layout.chunk) :], str(path))
                self._checked[shard] = index, now
            wanted = index[slots]
            if (wanted[:, 0] == ABSENT).any():
                raise DamagedStoreError(f"{path}: chunk {slots[wanted[:, 0] == ABSENT][0]} is not there")
            for offset, size in wanted:
                yield os.pread(descriptor, int(size), int(offset))


class Group:
    """One split: its arrays by name, its settings and its other attributes."""

    def __init__(self, store: Store, path: str) -> None:
        self.path = path
        self._store = store
        manifest = store.manifest
        for parent in parents(path):
            read_document(store.path, f"{parent}/{META}", manifest)
        self.attributes: dict[str, Any] = read_document(store.path, f"{path}/{META}", manifest)["attributes"]
        self.arrays = {name: self._array(name) for name in manifest.groups[path].arrays}

    def _array(self, name: str) -> StoredArray:
        path = f"{self.path}/{name}"
        document = read_document(self._store.path, f"{path}/{META}", self._store.manifest)
        return StoredArray(self._store, ArrayLayout.from_document(path, document))

    @property
    def settings(self) -> dict[str, Any]:
        """What decides the content: generator, its version, config, seed."""
        settings: dict[str, Any] = self.attributes["settings"]
        return settings

    @property
    def nbytes(self) -> int:
        """Bytes on disk, metadata included."""
        return self._store.manifest.group_nbytes(self.path)

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
                raise UnknownNameError(
                    f"{self.path} has no array {key!r}{did_you_mean(key, self.arrays)}; it has {', '.join(self.arrays)}"
                )
            return self.arrays[key]
        return {name: array[key] for name, array in self.arrays.items()}

    def __repr__(self) -> str:
        return f"<Group {self.path} of {len(self)}: {', '.join(self.arrays)}>"

    def content_digest(self) -> str:
        """SHA-256 of names, types, shapes and the compressed chunks in order: the same for any number of shards.

        Compressed, because the raw images of a large StarCraft II split are a thousand times as many bytes.
        """
        digest = hashlib.sha256()
        for name, array in sorted(self.arrays.items()):
            layout = array.layout
            digest.update(f"{name} {layout.dtype.name} {layout.shape} {layout.chunk}\n".encode())
            for index in range(layout.shards):
                data = read_object(self._store.path, layout.shard_object(index), self._store.manifest)
                digest.update(memoryview(data)[: -index_nbytes(layout.shard // layout.chunk)])
        return digest.hexdigest()


class Store:
    """A store opened for reading; indexing it with a group's path opens that group."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        _check_store(self.path)
        self.manifest = Manifest.load(self.path)

    @property
    def groups(self) -> list[str]:
        """Paths of the complete groups."""
        return [group for group in sorted(self.manifest.groups) if not self.manifest.missing_shards(group)]

    @property
    def unfinished(self) -> dict[str, tuple[int, int]]:
        """Groups whose making was interrupted: path -> (shards there, shards in all)."""
        shards = {group: entry.shards for group, entry in sorted(self.manifest.groups.items())}
        missing = {group: len(self.manifest.missing_shards(group)) for group in shards}
        return {group: (total - missing[group], total) for group, total in shards.items() if missing[group]}

    def __contains__(self, group: str) -> bool:
        return group in self.groups

    def __iter__(self) -> Iterator[str]:
        return iter(self.groups)

    def __len__(self) -> int:
        return len(self.groups)

    def __getitem__(self, group: str) -> Group:
        group = group.strip("/")
        if group in self.unfinished:
            there, total = self.unfinished[group]
            raise DamagedStoreError(
                f"{self.path}: {group} is unfinished, {there} of {total} shards are there; "
                "run the command that makes it again to finish it"
            )
        if group not in self.manifest.groups:
            listed = ", ".join(self.groups) or "nothing yet"
            nearest = did_you_mean(group, self.groups)
            raise UnknownNameError(f"{self.path} has no group {group!r}{nearest}; it has {listed}")
        return Group(self, group)

    def __repr__(self) -> str:
        return f"<Store {self.path}: {', '.join(self.groups)}>"


def _check_store(path: Path) -> None:
    if not path.exists():
        raise UsageError(f"there is no store at {path}")
    if not path.is_dir():
        raise UsageError(f"{path} is a file, not a store")
    meta = path / META
    if not meta.exists() and any(path.rglob(META)):
        raise DamagedStoreError(f"{meta}: is missing, and the manifest with it")
    if not meta.exists() or is_foreign(meta):
        raise UsageError(f"{path} is not an s2rm-data store")


_INDEXING = "index the first dimension with an integer, a slice or a list of integers; the rest on what comes back"


def _positions(key: Sequence[int] | NDArray[Any], length: int) -> NDArray[np.int64]:
    positions = np.asarray(key)
    if positions.ndim != 1 or (positions.size and positions.dtype.kind not in "iu"):
        raise IndexError(_INDEXING)
    positions = positions.astype(np.int64)
    if ((positions < -length) | (positions >= length)).any():
        raise IndexError(f"index out of range for {length} sequences")
    return np.where(positions < 0, positions + length, positions)


FileStamp = tuple[int, int, int, int]


def _stamp(descriptor: int) -> FileStamp:
    """What changes when a file is replaced or written to."""
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


@contextlib.contextmanager
def _open(path: Path) -> Iterator[int]:
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        raise DamagedStoreError(f"{path}: is missing") from None
    except OSError as error:
        raise DamagedStoreError(f"{path}: cannot be read ({error.strerror})") from None
    try:
        yield descriptor
    finally:
        os.close(descriptor)
