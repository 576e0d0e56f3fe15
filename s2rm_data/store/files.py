"""Bytes onto the disk, whole or not at all: temporary name, fsync, rename; and the lock against another writer."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from s2rm_data.errors import ConflictError, DiskError

PARTIAL = ".partial"  # suffix of a file that is being written; left behind only by a kill, removed by the next writer

_ADVICE = {
    errno.ENOSPC: "the disk is full; free some room or write elsewhere with --out, then run the same command again",
    errno.EDQUOT: "the disk quota is used up; free some room or write elsewhere with --out, then run the command again",
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


def write_whole(path: Path, pieces: Sequence[bytes]) -> None:
    """Replace `path` by the pieces' bytes so that after a crash it holds the old bytes or the new ones.

    The caller makes the new name itself durable with `sync_folder`, once for many files.
    """
    partial = path.with_name(path.name + PARTIAL)
    with disk_errors(path):
        try:
            with partial.open("wb") as file:
                file.writelines(pieces)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                partial.unlink()
            raise


def sync_folder(folder: Path) -> None:
    """Make names created or renamed in a folder durable."""
    with disk_errors(folder):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Create a folder and its missing parents, durably."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    with disk_errors(folder):
        folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)


def lock_folder(folder: Path) -> int:
    """Lock a folder for one writer; returns the descriptor that holds the lock until it is closed or the process ends.

    The lock is on the folder itself, so that no lock file is left in the store and a killed writer frees it.
    """
    with disk_errors(folder):
        descriptor = os.open(folder, os.O_RDONLY)
    try:
        with disk_errors(folder):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ConflictError(
                    f"another process is writing to {folder}; wait until it has finished, or write elsewhere with --out"
                ) from None
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
