"""A store for zarr-python and what is built on it, that reads through the manifest.

    xarray.open_zarr(s2.zarr_store("data.zarr"), group="bballs/train")
    zarr.open_group(s2.zarr_store("s3://mine/data.zarr"), mode="r")["bballs/train/frames"][0]

zarr-python itself takes an object that is missing for one that was never written, and reads zeros. Here it is an error
that names it, as is an object that has changed, and a group that is not complete."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Hashable, Iterable
from typing import Any

from s2rm_data.core.addresses import Url
from s2rm_data.core.errors import DamagedStoreError, missing_component
from s2rm_data.store.layout import META
from s2rm_data.store.manifest import object_pieces
from s2rm_data.store.reader import Store

try:
    from zarr.abc.store import ByteRequest, OffsetByteRequest, RangeByteRequest, SuffixByteRequest
    from zarr.abc.store import Store as ZarrStore
    from zarr.core.buffer import Buffer, BufferPrototype, default_buffer_prototype
except ModuleNotFoundError:
    raise missing_component("zarr", "zarr", "reading with zarr-python") from None


class CheckedStore(ZarrStore):
    """Read only. An object is checked as a whole when it is first read and whenever it has been replaced since."""

    supports_writes = supports_deletes = False
    supports_listing = True

    def __init__(self, path: str | os.PathLike[str] | Url) -> None:
        super().__init__(read_only=True)
        self._store = Store(path)
        manifest = self._store.manifest
        self._root = manifest.to_bytes()
        visible = manifest.visible()
        self._names = {META, *(name for name in manifest.objects if name.rpartition("/")[0] in visible)}
        self._unfinished = tuple(f"{group}/" for group in self._store.unfinished)
        self._checked: dict[str, Hashable] = {}

    def with_read_only(self, read_only: bool = False) -> CheckedStore:
        if not read_only:
            raise DamagedStoreError(f"{self._store.path}: can only be read this way; s2rm-data writes it")
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CheckedStore) and (str(self), self._root) == (str(other), other._root)

    def __hash__(self) -> int:
        return hash((str(self), self._root))

    def __str__(self) -> str:
        return str(self._store.path)

    def __repr__(self) -> str:
        return f"CheckedStore({str(self)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return CheckedStore, (str(self._store.path.absolute()),)

    async def get(
        self, key: str, prototype: BufferPrototype | None = None, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        if key not in self._names:
            if key.startswith(self._unfinished):
                raise DamagedStoreError(f"{self._store.path / key}: belongs to a group that is not complete")
            return None
        data = await asyncio.to_thread(self._read, key, byte_range)
        return (prototype or default_buffer_prototype()).buffer.from_bytes(data)

    def _read(self, key: str, byte_range: ByteRequest | None) -> bytes:
        if key == META:
            start, size = _span(byte_range, len(self._root))
            return self._root[start : start + size]
        place, entry = self._store.place, self._store.manifest.objects[key]
        with place.opened(key) as opened:
            if self._checked.get(key) != opened.stamp:
                for _ in object_pieces(opened, place.path / key, entry):
                    pass
                self._checked[key] = opened.stamp
            (data,) = opened.ranges([_span(byte_range, entry.nbytes)])
            return data

    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> list[Buffer | None]:
        return list(await asyncio.gather(*(self.get(key, prototype, wanted) for key, wanted in key_ranges)))

    async def exists(self, key: str) -> bool:
        return key in self._names

    async def set(self, key: str, value: Buffer) -> None:
        self._check_writable()

    async def delete(self, key: str) -> None:
        self._check_writable()

    def list(self) -> AsyncIterator[str]:
        return self.list_prefix("")

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        for name in sorted(self._names):
            if name.startswith(prefix):
                yield name

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        folder = f"{prefix.rstrip('/')}/" if prefix.strip("/") else ""
        below = (name.removeprefix(folder) for name in self._names if name.startswith(folder))
        for name in sorted({name.partition("/")[0] for name in below}):
            yield name


def _span(wanted: ByteRequest | None, nbytes: int) -> tuple[int, int]:
    """(offset, size) of what is asked for."""
    if isinstance(wanted, RangeByteRequest):
        return wanted.start, min(wanted.end, nbytes) - wanted.start
    if isinstance(wanted, OffsetByteRequest):
        return wanted.offset, nbytes - wanted.offset
    if isinstance(wanted, SuffixByteRequest):
        return max(nbytes - wanted.suffix, 0), min(wanted.suffix, nbytes)
    return 0, nbytes
