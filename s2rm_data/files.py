"""Files written whole or not at all, locks against a second writer, and reads that cannot be tricked.

Everything that the package writes goes through here: a temporary name, fsync, rename. What the operating system
refuses becomes a `DiskError` that names the path and says what to do.

Windows has neither locks on folders nor paths relative to an open one. Reading, and writing single files, works there;
what needs a lock is refused (docs/install.md).
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from s2rm_data.errors import ConflictError, DamagedStoreError, DiskError, MissingComponentError

try:
    import fcntl
except ModuleNotFoundError:  # Windows
    fcntl = None  # type: ignore[assignment]

PARTIAL = ".partial"  # suffix of a file that is being written; left behind only by a kill, removed by the next writer

_ADVICE = {
    errno.ENOSPC: "the disk is full; free some space or write elsewhere with --out, then run the same command again",
    errno.EDQUOT: "the disk quota is used up; free some space or write elsewhere with --out, then run it again",
    errno.EFBIG: "the file is larger than this system or its limits (ulimit -f) allow",
    errno.EROFS: "the file system is read-only; write elsewhere with --out",
    errno.EACCES: "permission denied; write elsewhere with --out or change the permissions",
    errno.EPERM: "operation not permitted; write elsewhere with --out or change the permissions",
}


@contextlib.contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn what the operating system refuses while writing into a `DiskError` that names the path."""
    try:
        yield
    except OSError as error:
        advice = _ADVICE.get(error.errno or 0, os.strerror(error.errno) if error.errno else str(error))
        raise DiskError(f"cannot write {path}: {advice}. What was committed before is safe.") from error


def write_whole(path: Path, pieces: Iterable[bytes], tag: str = "") -> None:
    """Replace `path` by the pieces' bytes so that after a crash it holds the old bytes or the new ones.

    The caller makes the new name itself durable with `sync_folder`, once for many files. `tag` keeps the temporary
    names of several processes apart that write the same file.
    """
    with _renamed(path, tag) as partial, partial.open("wb") as file:
        file.writelines(pieces)
        file.flush()
        os.fsync(file.fileno())


@contextlib.contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """A temporary path to write to, which takes the place of `path` once it is complete and on the disk."""
    with _renamed(path) as partial:
        yield partial
        _sync(partial)


@contextlib.contextmanager
def _renamed(path: Path, tag: str = "") -> Iterator[Path]:
    partial = path.with_name(path.name + tag + PARTIAL)
    with disk_errors(path):
        try:
            yield partial
            partial.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                partial.unlink()
            raise


@contextlib.contextmanager
def replaced_folder(path: Path) -> Iterator[Path]:
    """A new temporary folder to fill, which takes the place of `path`, a file or a folder, once it is complete.

    A folder cannot be exchanged in one step: between two renames `path` is away. Whoever is interrupted there puts the
    old content back, and after a kill the next who replaces it does, so that it is there should they fail.
    """
    partial = path.with_name(path.name + PARTIAL)
    old = path.with_name(path.name + ".old" + PARTIAL)
    with disk_errors(path):
        try:
            _put_back(old, path)
            remove(partial)
            partial.mkdir()
            yield partial
            sync_folder(partial)
            if os.path.lexists(path):
                remove(old)
                path.rename(old)
            partial.rename(path)
            sync_folder(path.parent)
        finally:
            _put_back(old, path)
            remove(partial)
            remove(old)


def _put_back(old: Path, path: Path) -> None:
    if os.path.lexists(old) and not os.path.lexists(path):
        old.rename(path)


def remove(path: Path) -> None:
    """Remove a file, a link or a whole folder, if it is there; links are not followed."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY if fcntl else os.O_RDWR)  # Windows syncs only what it could write to
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Make names created or renamed in a folder durable, where a folder can be opened."""
    if fcntl:
        with disk_errors(folder):
            _sync(folder)


def make_folder(folder: Path) -> None:
    """Create a folder and its missing parents, durably."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    with disk_errors(folder):
        folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)


def lock_folder(folder: Path, *, shared: bool = False) -> int:
    """Lock a folder for one writer, or `shared` by several that agree.

    Returns the descriptor that holds the lock until it is closed or the process ends.

    The lock is on the folder itself, so that no lock file is left behind and a killed writer frees it.
    """
    if not fcntl:
        raise MissingComponentError(
            f"{folder} cannot be locked against a second writer: this system has no locks on folders. On Windows, use "
            "WSL 2, where everything works as on Linux; data that are there already can be read and drawn without it"
        )
    with disk_errors(folder):
        descriptor = os.open(folder, os.O_RDONLY)
    try:
        with disk_errors(folder):
            if not _locked(descriptor, fcntl.LOCK_SH if shared else fcntl.LOCK_EX):
                raise ConflictError(
                    f"another process is writing to {folder}; wait until it has finished, or write elsewhere with --out"
                )
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _locked(descriptor: int, kind: int, tries: int = 5) -> bool:
    """Whether the lock could be taken; `is_being_written` may hold it for an instant."""
    for left in reversed(range(tries)):
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if left:
                time.sleep(0.01)
        else:
            return True
    return False


def is_being_written(folder: Path) -> bool:
    """Whether another process holds the lock of a folder alone."""
    if not fcntl:
        return False
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return False
    try:
        return not _locked(descriptor, fcntl.LOCK_SH, tries=1)
    except OSError:  # a file system without locks
        return False
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def opened_inside(root: Path, name: str) -> Iterator[int]:
    """A descriptor of the regular file `name` below `root`, for reading. `root` may be a link; nothing below it may.

    Raises `DamagedStoreError` for what is missing, is a link, or is anything but a regular file. Opening never blocks,
    as it would on a FIFO.
    """
    *folders, last = name.split("/")
    where = root / name
    with contextlib.ExitStack() as stack:
        try:
            if fcntl:
                at = _opened(stack, root, os.O_DIRECTORY)
                for folder in folders:
                    at = _opened(stack, folder, os.O_DIRECTORY | os.O_NOFOLLOW, at)
                descriptor = _opened(stack, last, os.O_NOFOLLOW | os.O_NONBLOCK, at)
            else:  # links are looked for first; one that is made a moment later is followed
                if _has_links(root, name):
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
                descriptor = _opened(stack, where, getattr(os, "O_BINARY", 0))
            kind = os.fstat(descriptor).st_mode
        except OSError as error:
            raise DamagedStoreError(f"{where}: {_why_not(error, root, name)}") from None
        if not stat.S_ISREG(kind):
            raise DamagedStoreError(f"{where}: is {_KINDS.get(stat.S_IFMT(kind), 'a device')}, not a regular file")
        yield descriptor


_KINDS = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}


def _opened(stack: contextlib.ExitStack, path: str | Path, flags: int, at: int | None = None) -> int:
    descriptor = os.open(path, os.O_RDONLY | flags, dir_fd=at)
    stack.callback(os.close, descriptor)
    return descriptor


def _has_links(root: Path, name: str) -> bool:
    parts = name.split("/")
    return any(root.joinpath(*parts[:depth]).is_symlink() for depth in range(1, len(parts) + 1))


def _why_not(error: OSError, root: Path, name: str) -> str:
    if _has_links(root, name):
        return "is a link, and links inside a store or run are not followed"
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return "is missing"
    return f"cannot be read ({error.strerror})"


def read_at(descriptor: int, size: int, offset: int) -> bytes:
    """At most `size` bytes from `offset` on. Where this moves the descriptor (Windows), one thread at a time may."""
    if hasattr(os, "pread"):
        return os.pread(descriptor, size, offset)
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
            raise DamagedStoreError(f"{root / name}: cannot be read ({error.strerror})") from None
    return bytes(data)


def read_regular(path: Path, most_bytes: int) -> bytes:
    """All bytes of a regular file that a user names; links are followed.

    Raises `OSError` for a device or a pipe, which might never end, and for a file of more than `most_bytes`.
    """
    with contextlib.ExitStack() as stack:
        descriptor = _opened(stack, path, os.O_NONBLOCK)
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        if status.st_size > most_bytes:
            raise OSError(errno.EFBIG, f"it has {status.st_size:,} bytes, and at most {most_bytes:,} are allowed")
        return os.fdopen(descriptor, "rb", closefd=False).read(most_bytes)
