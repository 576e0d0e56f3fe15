"""Reads that cannot be tricked: of regular files only, below a folder without following links, of a bounded size.
Windows has no paths relative to an open folder; there, links are looked for first (docs/install.md)."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from s2rm_data.core.errors import ConflictError, DamagedStoreError, DiskError, UnreadableError


@contextlib.contextmanager
def opened_inside(root: Path, name: str) -> Iterator[int]:
    """A descriptor of the regular file `name` below `root`, for reading. `root` may be a link; nothing below it may.
    Raises `DamagedStoreError` for anything else. Opening never blocks, as it would on a FIFO."""
    *folders, last = name.split("/")
    where = root / name
    with contextlib.ExitStack() as stack:
        try:
            if hasattr(os, "O_DIRECTORY"):
                at = _walked(stack, root, folders)
                descriptor = _opened(stack, last, os.O_NOFOLLOW | os.O_NONBLOCK, at)
            else:  # links are looked for first; one that is made a moment later is followed
                if _has_links(root, name):
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
                descriptor = _opened(stack, where, getattr(os, "O_BINARY", 0))
            kind = os.fstat(descriptor).st_mode
        except OSError as error:
            raise _refusal(error, root, name) from None
        if not stat.S_ISREG(kind):
            raise DamagedStoreError(f"{where}: is {_KINDS.get(stat.S_IFMT(kind), 'a device')}, not a regular file")
        yield descriptor


_KINDS = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}


@contextlib.contextmanager
def folder_inside(root: Path, folder: str = "") -> Iterator[int]:
    """A descriptor of a folder below `root`, reached through no link: what is written or removed by it is inside.
    Raises `ConflictError` for a link, and `FileNotFoundError` or `NotADirectoryError` for what is no folder."""
    folders = [part for part in folder.split("/") if part]
    with contextlib.ExitStack() as stack:
        try:
            at = _walked(stack, root, folders)
        except OSError:
            if folder and _has_links(root, folder):
                link = f"{root / folder} is, or lies behind, a link; nothing is written through it. Remove it"
                raise ConflictError(link) from None
            raise
        yield at


def _walked(stack: contextlib.ExitStack, root: Path, folders: Sequence[str]) -> int:
    at = _opened(stack, root, os.O_DIRECTORY)
    for folder in folders:
        at = _opened(stack, folder, os.O_DIRECTORY | os.O_NOFOLLOW, at)
    return at


def _opened(stack: contextlib.ExitStack, path: str | Path, flags: int, at: int | None = None) -> int:
    descriptor = os.open(path, os.O_RDONLY | flags, dir_fd=at)
    stack.callback(os.close, descriptor)
    return descriptor


def _has_links(root: Path, name: str) -> bool:
    parts = name.split("/")
    return any(root.joinpath(*parts[:depth]).is_symlink() for depth in range(1, len(parts) + 1))


def _refusal(error: OSError, root: Path, name: str) -> DamagedStoreError | DiskError:
    where = root / name
    if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):  # no fault of the file
        limits = "this process may hold too few files or too little memory (ulimit -n, ulimit -v); raise the limit"
        return DiskError(f"{where}: cannot be opened ({error.strerror}); {limits}, or use fewer workers")
    if _has_links(root, name):
        return DamagedStoreError(f"{where}: is a link, and links inside a store or run are not followed")
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return DamagedStoreError(f"{where}: is missing")
    return UnreadableError(f"{where}: cannot be read ({error.strerror})")


def read_at(descriptor: int, size: int, offset: int) -> bytes:
    """`size` bytes from `offset` on, fewer at the end. Where this moves the descriptor (Windows), one thread may."""
    if hasattr(os, "pread"):
        piece = os.pread(descriptor, size, offset)  # which may be less than there is
        rest = read_at(descriptor, size - len(piece), offset + len(piece)) if 0 < len(piece) < size else b""
        return piece + rest
    os.lseek(descriptor, offset, os.SEEK_SET)
    return os.read(descriptor, size)


def read_inside(root: Path, name: str, most_bytes: int) -> bytes:
    """All bytes of the regular file `name` below `root`; one of more than `most_bytes` is refused unread."""
    with opened_inside(root, name) as descriptor:
        size = os.fstat(descriptor).st_size
        if size > most_bytes:
            raise DamagedStoreError(f"{root / name}: has {size:,} bytes; at most {most_bytes:,} are allowed")
        try:
            data = bytearray()
            while piece := os.read(descriptor, min(most_bytes + 1 - len(data), 1 << 20)):
                data += piece
                if len(data) > most_bytes:
                    raise DamagedStoreError(f"{root / name}: grows while it is read")
        except OSError as error:
            raise UnreadableError(f"{root / name}: cannot be read ({error.strerror})") from None
    return bytes(data)


def read_regular(path: Path, most_bytes: int) -> bytes:
    """All bytes of a regular file that a user names; links are followed. Raises `OSError` for a device or a pipe, which
    might never end, and for a file of more than `most_bytes`."""
    with contextlib.ExitStack() as stack:
        descriptor = _opened(stack, path, os.O_NONBLOCK)
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        if status.st_size > most_bytes:
            raise OSError(errno.EFBIG, f"it has {status.st_size:,} bytes, and at most {most_bytes:,} are allowed")
        return os.fdopen(descriptor, "rb", closefd=False).read(most_bytes)
