"""Where a store lies: a folder, or a prefix of a bucket. The same promises hold on both.

A place reads and writes whole objects by name and replaces the root document. In a folder a writer holds a lock, and
every file is fsynced and renamed; in a bucket (`bucket.py`) the root is replaced by compare-and-swap.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import socket
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from s2rm_data.addresses import StorePath, Url, store_path
from s2rm_data.errors import ConflictError, DamagedStoreError, UsageError
from s2rm_data.files import (
    PARTIAL,
    disk_errors,
    lock_folder,
    make_folder,
    opened_inside,
    read_at,
    read_inside,
    sync_folder,
    write_whole,
)
from s2rm_data.store.layout import META

PIECE_BYTES = 1 << 20  # of an object, held at once
_MOST_LOOKED_AT = 1000  # entries of a folder

Version = Any  # of a root document; what `replace_root` compares. None where there is no root yet


class OpenObject(Protocol):
    """One object, opened for reading. `stamp` changes when it is replaced or written to."""

    @property
    def nbytes(self) -> int: ...

    @property
    def stamp(self) -> Hashable: ...

    def pieces(self) -> Iterator[bytes]:
        """All of it, in order."""

    def ranges(self, spans: Sequence[tuple[int, int]]) -> Iterator[bytes]:
        """The bytes of each (offset, size)."""


class Place(Protocol):
    """Names are relative, separated by `/`. What is missing or unreadable raises an error that names the object."""

    @property
    def path(self) -> StorePath: ...

    @property
    def least_commit_seconds(self) -> float:
        """Root documents are not to be replaced more often than this."""

    @property
    def locks(self) -> bool:
        """Whether `writing` keeps others out."""

    def opened(self, name: str) -> AbstractContextManager[OpenObject]: ...

    def read(self, name: str, most_bytes: int) -> bytes:
        """All bytes of an object; one of more than `most_bytes` is refused unread."""

    def read_root(self, most_bytes: int) -> tuple[bytes, Version]: ...

    def has(self, name: str) -> bool:
        """Whether anything has this name."""

    def children(self, folder: str = "") -> list[str]:
        """First names of what lies directly in a folder, sorted; not more than a thousand."""

    def names(self, folder: str = "") -> Iterator[str]:
        """Names of all objects below a folder."""

    def check_free(self) -> None:
        """Refuse a place at which no store can be."""

    def check_exists(self) -> None:
        """Refuse a place at which nothing is."""

    def writing(self, *, shared: bool = False) -> AbstractContextManager[None]:
        """Entered while objects are written: alone, or `shared` with others that only add objects."""

    def tidy(self) -> None:
        """Remove what killed writers left half written."""

    def write_whole(self, name: str, pieces: Sequence[bytes], *, replace: bool = False) -> None:
        """Write an object. `replace`: whatever is there under its name, even if somebody has committed it."""

    def write_new(self, name: str, pieces: Sequence[bytes]) -> None:
        """Write an object unless there is one."""

    def sync(self, names: Iterable[str]) -> None:
        """Make the names of objects that were written durable."""

    def replace_root(self, data: bytes, previous: Version) -> Version:
        """Replace the root document if it is still the `previous` one; else raise `ConflictError`."""

    def remove(self, names: Iterable[str]) -> None: ...

    def clear(self, folder: str, current: Version) -> None:
        """Remove what a killed writer left below a folder, of which the `current` root knows nothing."""


def place_of(path: str | os.PathLike[str] | Url | Place) -> Place:
    if isinstance(path, str | os.PathLike | Url):
        found = store_path(path)
        if isinstance(found, Path):
            return FolderPlace(found)
        from s2rm_data.store.bucket import ObjectPlace

        return ObjectPlace.at(found)
    return path


class OpenFile:
    def __init__(self, descriptor: int, where: Path) -> None:
        self._descriptor, self._where = descriptor, where
        status = os.fstat(descriptor)
        self.nbytes = status.st_size
        self.stamp: Hashable = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)

    def pieces(self) -> Iterator[bytes]:
        done = 0
        while done < self.nbytes:
            (piece,) = self.ranges([(done, min(PIECE_BYTES, self.nbytes - done))])
            if not piece:
                raise DamagedStoreError(f"{self._where}: has been cut while it was read")
            done += len(piece)
            yield piece

    def ranges(self, spans: Sequence[tuple[int, int]]) -> Iterator[bytes]:
        for offset, size in spans:
            try:
                yield read_at(self._descriptor, size, offset)
            except OSError as error:
                raise DamagedStoreError(f"{self._where}: cannot be read ({error.strerror})") from None


class FolderPlace:
    """A folder. One writer at a time holds its lock; links inside are not followed."""

    least_commit_seconds = 0.0
    locks = True

    def __init__(self, path: Path) -> None:
        self.path = path
        self._tag = ""

    @contextlib.contextmanager
    def opened(self, name: str) -> Iterator[OpenObject]:
        with opened_inside(self.path, name) as descriptor:
            yield OpenFile(descriptor, self.path / name)

    def read(self, name: str, most_bytes: int) -> bytes:
        return read_inside(self.path, name, most_bytes)

    def read_root(self, most_bytes: int) -> tuple[bytes, Version]:
        return read_inside(self.path, META, most_bytes), None

    def has(self, name: str) -> bool:
        return (self.path / name).exists() or (self.path / name).is_symlink()

    def children(self, folder: str = "") -> list[str]:
        path = self.path / folder
        try:
            with os.scandir(path) as entries:
                return sorted(entry.name for entry in itertools.islice(entries, _MOST_LOOKED_AT))
        except NotADirectoryError:
            return []
        except OSError as error:
            raise UsageError(f"{path} cannot be read: {error.strerror}") from None

    def names(self, folder: str = "") -> Iterator[str]:
        for inner, _, files in os.walk(self.path / folder):  # which follows no links
            for name in files:
                path = Path(inner) / name
                if path.is_file():
                    yield path.relative_to(self.path).as_posix()

    def check_free(self) -> None:
        if not self.path.parent.is_dir():
            raise UsageError(f"the folder {self.path.parent} does not exist; create it first, or choose another --out")
        if (self.path.exists() or self.path.is_symlink()) and not self.path.is_dir():
            raise ConflictError(f"{self.path} is a file or a broken link, not a store; choose another --out")

    def check_exists(self) -> None:
        if not self.path.exists():
            raise UsageError(f"there is no store at {self.path}")
        if not self.path.is_dir():
            raise UsageError(f"{self.path} is a file, not a store")

    @contextlib.contextmanager
    def writing(self, *, shared: bool = False) -> Iterator[None]:
        make_folder(self.path)
        lock = lock_folder(self.path, shared=shared)
        try:
            # Two runs of one part write the same objects: each under temporary names of its own.
            self._tag = f".{socket.gethostname()}-{os.getpid()}" if shared else ""
            yield
        finally:
            os.close(lock)

    def tidy(self) -> None:
        for folder, _, names in os.walk(self.path):  # which follows no links
            for name in names:
                if name.endswith(PARTIAL):
                    with contextlib.suppress(OSError):
                        (Path(folder) / name).unlink()

    def write_whole(self, name: str, pieces: Sequence[bytes], *, replace: bool = False) -> None:
        path = self.path / name
        if replace and path.is_dir() and not path.is_symlink():
            with disk_errors(path):
                path.rmdir()
        make_folder(path.parent)
        write_whole(path, pieces, self._tag)

    def write_new(self, name: str, pieces: Sequence[bytes]) -> None:
        if not self.has(name):  # of two at the same moment the last one wins; both compare what they find then
            self.write_whole(name, pieces)

    def sync(self, names: Iterable[str]) -> None:
        for folder in dict.fromkeys((self.path / name).parent for name in names):
            sync_folder(folder)

    def replace_root(self, data: bytes, previous: Version) -> Version:
        """The lock says that the root is the previous one."""
        write_whole(self.path / META, [data])
        sync_folder(self.path)

    def remove(self, names: Iterable[str]) -> None:
        paths = [self.path / name for name in names]
        with disk_errors(self.path):
            for path in paths:
                path.unlink(missing_ok=True)
        for folder in dict.fromkeys(path.parent for path in paths):
            with contextlib.suppress(OSError):  # something else is in it
                folder.rmdir()

    def clear(self, folder: str, current: Version) -> None:
        path = self.path / folder
        with disk_errors(path):
            if path.exists():
                shutil.rmtree(path)
