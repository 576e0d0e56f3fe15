"""A bounded local cache of decoded shards, for training on stores that do not fit into memory or lie in a bucket.

    store = Store("s3://mine/data.zarr", cache=ShardCache(Path("/scratch/cache"), 50 * 10**9))

A shard is fetched whole, checked against the manifest, decoded, and written to a file of plain rows:

    <SHA-256 of the stored object>.rows  =  values of every chunk in order | crc32c of name and values (4 bytes)

The name says what must be in it, so that any number of stores, runs and processes may share a folder. Rows are read
with `pread`: unlike pages of a mapped file, what the system keeps of them is not memory of the process. Each is
compared with its checksum, which the process keeps from when it checked or wrote the file; a file that has been
changed, cut or removed since is fetched again. When the folder is full, the files go first that were used least
recently."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import threading
import time
import weakref
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import google_crc32c
import numpy as np
from numpy.typing import NDArray

from s2rm_data.core.errors import ConflictError, DiskError, UsageError
from s2rm_data.core.write import PARTIAL, disk_errors

if TYPE_CHECKING:
    from s2rm_data.store.reader import StoredArray

SUFFIX = ".rows"
PIECE_BYTES = 1 << 20
FETCHERS = 2  # shards fetched and decoded at once
ABANDONED_SECONDS = 3600
TRIES = 5  # another process may remove a file between our looking and our opening


class ShardCache:
    """At most `most_bytes` of files in `folder`. Methods may be called from any thread."""

    def __init__(self, folder: Path, most_bytes: int) -> None:
        if most_bytes < 1:
            raise UsageError(f"a cache of {most_bytes} bytes is not possible; give its size, as in 50GB")
        self.folder, self.most_bytes = folder, most_bytes
        self._begin()
        if hasattr(os, "register_at_fork"):  # not on Windows, which cannot fork
            again = weakref.WeakMethod(self._begin)
            os.register_at_fork(after_in_child=lambda: (begin := again()) and begin())
        self._check_folder()

    def _begin(self) -> None:
        """Also in a forked child, such as a worker of a `DataLoader`: it has neither the threads nor their locks."""
        self._mutex = threading.Lock()
        self._space = threading.Lock()
        self._fetching: dict[str, Future[NDArray[np.uint32]]] = {}
        self._reserved: dict[str, int] = {}  # bytes of files that are being written
        self._used: dict[str, Future[NDArray[np.uint32]]] = {}  # checksums by name, the one used last at the end
        self._pool: ThreadPoolExecutor | None = None

    def _check_folder(self) -> None:
        if self.folder.exists() and not self.folder.is_dir():
            raise ConflictError(f"{self.folder} is a file; give --cache a folder")
        there = self.folder.iterdir() if self.folder.is_dir() else ()
        if foreign := [path.name for path in there if path.suffix not in (SUFFIX, PARTIAL)]:
            own = "give --cache a folder of its own"
            raise ConflictError(f"{self.folder} holds other files ({foreign[0]}, ...); {own}")
        with self._writing():
            self.folder.mkdir(parents=True, exist_ok=True)
            probe = self.folder / f"probe-{secrets.token_hex(8)}{PARTIAL}"
            probe.touch()
            probe.unlink()
            for path in self.folder.glob(f"*{PARTIAL}"):  # left by a kill, unless somebody writes it just now
                with contextlib.suppress(FileNotFoundError):  # it has its name now
                    if time.time() - path.stat().st_mtime > ABANDONED_SECONDS:
                        path.unlink()

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            with disk_errors(self.folder):
                yield
        except DiskError as error:
            why = str(error).partition(": ")[2].partition(";")[0].partition(". What")[0]
            advice = "give another --cache, or a smaller --cache-size"
            raise DiskError(f"the cache {self.folder} cannot be written: {why}; {advice}") from None

    # -- reading

    def rows(self, array: StoredArray, shard: int, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Rows of a shard, by their numbers in it, as they are stored."""
        layout = array.layout
        out = np.empty((len(rows), *layout.shape[1:]), dtype=layout.dtype)
        size = layout.chunk_nbytes // layout.chunk
        if not size:
            return out
        target, name = out.reshape(len(rows), -1).view(np.uint8), self._name(array, shard)
        for _ in range(TRIES):
            sums = self._ready(array, shard).result()
            if self._fill(target, name, rows, size, sums):
                return out
            self._forget(name)  # what is there is looked at again, and fetched unless it is whole
        raise DiskError(f"the cache {self.folder} loses or changes its files while they are read; give another --cache")

    def _fill(
        self, target: NDArray[np.uint8], name: str, rows: NDArray[np.int64], size: int, sums: NDArray[np.uint32]
    ) -> bool:
        """Whether every row was there, and as it was when the file was checked."""
        with contextlib.suppress(OSError), self._opened(name) as descriptor:
            for place, row in zip(target, rows.tolist(), strict=True):
                if os.preadv(descriptor, [place], row * size) != size or google_crc32c.value(place) != sums[row]:
                    return False
            return True
        return False

    @contextlib.contextmanager
    def _opened(self, name: str) -> Iterator[int]:
        """Whatever lies there: neither a link is followed nor a pipe waited for."""
        descriptor = os.open(self.folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def want(self, array: StoredArray, shard: int) -> None:
        """Fetch a shard in the background: it will be read soon."""
        self._ready(array, shard)

    def _name(self, array: StoredArray, shard: int) -> str:
        return array.shard_entry(shard).sha256 + SUFFIX

    def _ready(self, array: StoredArray, shard: int) -> Future[NDArray[np.uint32]]:
        """The checksums of a shard's rows, once its file is there."""
        name = self._name(array, shard)
        with self._mutex:
            if name in self._used:
                self._used[name] = self._used.pop(name)
                return self._used[name]
            if name not in self._fetching:
                self._pool = self._pool or ThreadPoolExecutor(FETCHERS, thread_name_prefix="cache")
                self._fetching[name] = self._pool.submit(self._fetch, array, shard, name)
            return self._fetching[name]

    def _forget(self, name: str) -> None:
        with self._mutex:
            self._used.pop(name, None)

    # -- fetching

    def _fetch(self, array: StoredArray, shard: int, name: str) -> NDArray[np.uint32]:
        try:
            nbytes, layout = array.shard_nbytes(shard), array.layout
            size = layout.chunk_nbytes // layout.chunk
            sums = self._checked(name, nbytes, size)
            if sums is None:
                self._make_room(name, nbytes + 4)
                sums = self._write(array, shard, name, size)
            with self._mutex:
                self._used[name] = Future()
                self._used[name].set_result(sums)
            return sums
        finally:
            with self._mutex:
                self._fetching.pop(name, None)
                self._reserved.pop(name, None)

    def _checked(self, name: str, nbytes: int, size: int) -> NDArray[np.uint32] | None:
        """The checksums of a file's rows, if it is there, whole and unchanged since it was written."""
        with contextlib.suppress(OSError), self._opened(name) as descriptor:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_size != nbytes + 4:
                return None
            digest, left, sums = google_crc32c.Checksum(name.encode()), nbytes, []
            piece_nbytes = max(PIECE_BYTES // max(size, 1), 1) * size  # of whole rows
            while left and (piece := os.read(descriptor, min(left, piece_nbytes))):
                digest.update(piece)
                sums.append(_sums(piece, size))
                left -= len(piece)
            return np.concatenate(sums) if os.read(descriptor, 5) == digest.digest() and sums else None
        return None

    def _write(self, array: StoredArray, shard: int, name: str, size: int) -> NDArray[np.uint32]:
        partial = self.folder / f"{name}.{secrets.token_hex(8)}{PARTIAL}"
        digest, sums = google_crc32c.Checksum(name.encode()), []
        try:
            with self._writing():
                self.folder.mkdir(parents=True, exist_ok=True)  # somebody may have removed it meanwhile
                file = partial.open("xb")
            try:
                for chunk in array.decoded(shard):  # damage of the store is told as such
                    digest.update(chunk)
                    sums.append(_sums(chunk, size))
                    with self._writing():
                        file.write(chunk)
                with self._writing():
                    file.write(digest.digest())
                    file.flush()
            finally:
                with contextlib.suppress(OSError):  # after an error, which has been told, there may be more to write
                    file.close()
            with self._writing():
                partial.replace(self.folder / name)
        except BaseException:
            with contextlib.suppress(OSError):
                partial.unlink()
            raise
        return np.concatenate(sums)

    def _make_room(self, name: str, nbytes: int) -> None:
        if nbytes > self.most_bytes:
            there, needed = f"{self.most_bytes / 1e9:,.2f} GB", f"{nbytes / 1e9:,.2f} GB decoded"
            advice = "give a larger --cache-size, or make the store with a smaller --shard-size"
            raise UsageError(f"a cache of {there} cannot hold one shard, which has {needed}; {advice}")
        with self._space:
            with self._mutex:
                self._reserved[name] = nbytes
                reserved = dict(self._reserved)
            # Looked at after that: a file that is finished in between is counted once, as what was reserved for it.
            sizes = {file: size for file, size in self._sizes().items() if file not in reserved}
            total = sum(size for _, size in sizes.values()) + sum(reserved.values())
            with self._mutex:
                used = [name for name in self._used if name in sizes]
            others = sorted((changed, name) for name, (changed, _) in sizes.items() if name not in used)
            for oldest in (*(name for _, name in others), *used):  # by age; then ours, by their last use
                if total <= self.most_bytes:
                    return
                self._forget(oldest)
                with contextlib.suppress(OSError):
                    (self.folder / oldest).unlink()
                total -= sizes[oldest][1]

    def _sizes(self) -> dict[str, tuple[int, int]]:
        """File -> time of its last change, and size."""
        sizes = {}
        for path in self.folder.glob(f"*{SUFFIX}"):
            with contextlib.suppress(OSError):  # another process has just removed it
                status = path.stat()
                sizes[path.name] = (status.st_mtime_ns, status.st_size)
        return sizes


def _sums(values: bytes, size: int) -> NDArray[np.uint32]:
    rows = np.frombuffer(values, np.uint8).reshape(-1, size) if size else ()
    return np.array([google_crc32c.value(row) for row in rows], np.uint32)
