"""A store in a folder: a writer holds a lock, and every file is fsynced and renamed."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import secrets
import shutil
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from s2rm_data.core import write
from s2rm_data.core.errors import ConflictError, DamagedStoreError, DiskError, UnreadableError, UsageError
from s2rm_data.core.read import opened_inside, read_at, read_inside
from s2rm_data.core.write import PARTIAL, disk_errors
from s2rm_data.store.layout import META
from s2rm_data.store.place import MOST_CHILDREN, OpenObject, Place, Version

PIECE_BYTES = 1 << 20  # of an object, held at once
_TAG = re.compile(r"\.[^/]*$")  # of one of several writers


class OpenFile(OpenObject):
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
                raise UnreadableError(f"{self._where}: cannot be read ({error.strerror})") from None


class FolderPlace(Place):
    """A folder. One writer at a time holds its lock; links inside are not followed."""

    locks = True
    path: Path

    def __init__(self, path: Path) -> None:
        super().__init__(path)
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
                return sorted(entry.name for entry in itertools.islice(entries, MOST_CHILDREN))
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            _refuse(error)

    def names(self, folder: str = "") -> Iterator[str]:
        def refuse(error: OSError) -> None:
            if not isinstance(error, FileNotFoundError | NotADirectoryError):
                _refuse(error)

        for inner, _, files in os.walk(self.path / folder, onerror=refuse):  # which follows no links
            for name in files:
                path = Path(inner) / name
                if path.is_file() or path.is_symlink():
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
        write.make_folder(self.path)
        lock = write.lock_folder(self.path, shared=shared)
        try:
            # Two runs of one part write the same objects: each under temporary names of its own.
            self._tag = f".{secrets.token_hex(8)}" if shared else ""
            yield
        finally:
            os.close(lock)

    def tidy(self, ours: Callable[[str], bool]) -> None:
        for name in [*self.names()]:
            whole = name.removesuffix(PARTIAL)
            if name != whole and (ours(whole) or ours(_TAG.sub("", whole))):
                with contextlib.suppress(DiskError):
                    write.remove_inside(self.path, [name])

    def write_whole(self, name: str, pieces: Sequence[bytes], *, replace: bool = False) -> None:
        path = self.path / name
        if replace and path.is_dir() and not path.is_symlink():
            with disk_errors(path):
                path.rmdir()
        write.write_inside(self.path, name, pieces, self._tag)

    def sync(self, names: Iterable[str]) -> None:
        write.sync_inside(self.path, names)

    def replace_root(self, data: bytes, previous: Version) -> Version:
        """The lock says that the root is the previous one."""
        write.write_inside(self.path, META, [data])
        write.sync_inside(self.path, [META])

    def remove(self, names: Iterable[str]) -> None:
        write.remove_inside(self.path, names)

    def move(self, pairs: Mapping[str, str]) -> None:
        write.move_inside(self.path, pairs)

    def free_nbytes(self) -> int | None:
        with disk_errors(self.path):
            return shutil.disk_usage(self.path).free


def _refuse(error: OSError) -> NoReturn:
    raise DiskError(f"{error.filename} cannot be read: {error.strerror}; nothing was changed because of it") from None


PLACE = FolderPlace
