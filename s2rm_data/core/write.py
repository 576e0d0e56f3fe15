"""Files written whole or not at all, and locks against a second writer.

Everything that the package writes goes through here: a temporary name, fsync, rename, fsync of the folder. Nothing is
replaced before its replacement is complete, nothing is removed that is not listed, and nothing is written or removed
through a link below a folder of ours. On Windows, what needs a lock on a folder is refused (docs/install.md)."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from s2rm_data.core.errors import ConflictError, DamagedStoreError, DiskError, MissingComponentError, UnreadableError
from s2rm_data.core.read import folder_inside, read_inside

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


def write_whole(path: Path, pieces: Iterable[bytes]) -> None:
    """Replace `path` by the pieces' bytes so that after a crash it holds the old bytes or the new ones."""
    with disk_errors(path):
        _put(path, pieces, at=None, where=path)
    sync_folder(path.parent)


def write_inside(root: Path, name: str, pieces: Iterable[bytes], tag: str = "") -> None:
    """As `write_whole`, below `root` and through no link. `sync_inside` makes names durable, once for many files. `tag`
    keeps the temporary names of several processes apart that write the same file."""
    folder, _, last = name.rpartition("/")
    with disk_errors(root / name), _made(root, folder) as at:
        _put(last, pieces, at=at, where=root / name, tag=tag)


def _put(name: str | Path, pieces: Iterable[bytes], *, at: int | None, where: Path, tag: str = "") -> None:
    partial = f"{name}{tag}{PARTIAL}"
    try:
        with os.fdopen(_created(partial, at, where.with_name(Path(partial).name)), "wb") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, name, src_dir_fd=at, dst_dir_fd=at)
    except BaseException:
        _discard(partial, at)
        raise


def _created(partial: str, at: int | None, where: Path) -> int:
    """A descriptor of a new file. What a kill left under the name goes; a link, which may lead anywhere, is refused."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    try:
        return os.open(partial, flags, 0o666, dir_fd=at)
    except FileExistsError:
        _clear_the_way(partial, at, where)
        return os.open(partial, flags, 0o666, dir_fd=at)


def _clear_the_way(partial: str | Path, at: int | None, where: Path) -> None:
    try:
        kind = os.lstat(partial).st_mode if at is None else os.stat(partial, dir_fd=at, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(kind):
        what = f"{'a link' if stat.S_ISLNK(kind) else 'no regular file'}, where this program writes for a moment"
        raise ConflictError(f"{where} is {what}; nothing is written through it. Remove it")
    os.unlink(partial, dir_fd=at)


def _discard(partial: str | Path, at: int | None) -> None:
    """Our own half-written file; anything but a regular one was not made here."""
    with contextlib.suppress(OSError, ConflictError):
        _clear_the_way(partial, at, Path(partial))


@contextlib.contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """A temporary path to write to, which takes the place of `path` once it is complete and on the disk."""
    partial = path.with_name(path.name + PARTIAL)
    with disk_errors(path):
        _clear_the_way(partial, None, partial)
        try:
            yield partial
            _sync(partial)
            partial.replace(path)
        except BaseException:
            _discard(partial, None)
            raise
    sync_folder(path.parent)


# -- below a folder, through no link


@contextlib.contextmanager
def _made(root: Path, folder: str) -> Iterator[int]:
    """A descriptor of a folder below `root`; it and those above it are made, durably, if they are missing."""
    with contextlib.ExitStack() as stack:
        try:
            at = stack.enter_context(folder_inside(root, folder))
        except FileNotFoundError:
            above, _, last = folder.rpartition("/")
            with _made(root, above) as parent:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(last, dir_fd=parent)
                os.fsync(parent)
            at = stack.enter_context(folder_inside(root, folder))
        yield at


def sync_inside(root: Path, names: Iterable[str]) -> None:
    for folder in dict.fromkeys(name.rpartition("/")[0] for name in names):
        with disk_errors(root / folder), folder_inside(root, folder) as at:
            os.fsync(at)


def move_inside(root: Path, pairs: Mapping[str, str]) -> None:
    """Give files below `root` other names, durably. One that is not there has been moved before."""
    for source, target in pairs.items():
        old, _, first = source.rpartition("/")
        new, _, last = target.rpartition("/")
        with disk_errors(root / target), contextlib.suppress(FileNotFoundError), folder_inside(root, old) as there:
            os.stat(first, dir_fd=there, follow_symlinks=False)
            with _made(root, new) as here:
                os.rename(first, last, src_dir_fd=there, dst_dir_fd=here)
    sync_inside(root, pairs.values())
    _remove_empty(root, pairs)


def remove_inside(root: Path, names: Iterable[str]) -> None:
    """Remove regular files below `root`, and the folders that are empty then; nothing else, and through no link."""
    for name in (chosen := list(names)):
        folder, _, last = name.rpartition("/")
        gone = contextlib.suppress(FileNotFoundError, NotADirectoryError, ConflictError)
        with disk_errors(root / name), gone, folder_inside(root, folder) as at:
            if stat.S_ISREG(os.stat(last, dir_fd=at, follow_symlinks=False).st_mode):
                os.unlink(last, dir_fd=at)
    _remove_empty(root, chosen)


def _remove_empty(root: Path, names: Iterable[str]) -> None:
    """The folders above the files of these names that are empty now, the innermost first."""
    above = {str(parent) for name in names for parent in PurePosixPath(name).parents} - {"."}
    for folder in sorted(above, reverse=True):
        parent, _, last = folder.rpartition("/")
        with contextlib.suppress(OSError, ConflictError), folder_inside(root, parent) as at:
            os.rmdir(last, dir_fd=at)


# -- folders that are replaced as a whole

LIST = "files.json"  # in such a folder: the names of its files, which may be removed when it is replaced
_LISTED = "s2rm-data folder 1"


@contextlib.contextmanager
def replaced_folder(path: Path) -> Iterator[Path]:
    """A new folder to fill, which takes the place of `path`, if that is there, once it is complete and on the disk.

    It lists what is in it. What takes its place later removes what is listed, and is refused if there is anything else.
    Where the system cannot exchange two folders in one step, `path` is away between two renames; whoever is interrupted
    there, or replaces it after a kill, puts the old content back."""
    partial, old = (path.with_name(f"{path.name}{ending}{PARTIAL}") for ending in ("", ".old"))
    with disk_errors(path):
        _put_back(old, path)
        check_replaceable(path)
        _drop(partial, old)
        partial.mkdir()
        try:
            _write_list(partial, None)
            yield partial
            names = [name for name in _inside(partial) if name != LIST]
            for name in names:
                _sync(partial / name)
            _write_list(partial, names)
            for folder in {partial, *((partial / name).parent for name in names)}:
                sync_folder(folder)
            if not os.path.lexists(path):
                partial.rename(path)
            elif not _exchanged(partial, path):
                path.rename(old)
                partial.rename(path)
            sync_folder(path.parent)
            _drop(partial, old)
        except BaseException:
            with contextlib.suppress(ConflictError, DiskError, OSError):  # the first error is the one to tell
                _put_back(old, path)
                _drop(partial, old)
            raise


def check_replaceable(path: Path) -> None:
    """Refuse a folder in which anything lies that is not listed in it: nobody may lose it."""
    if path.is_symlink() or (path.exists() and not path.is_dir()):
        raise ConflictError(f"{path} is a link or a file, not a folder of this program; give --out another name")
    if not path.is_dir():
        return
    if os.path.ismount(path):
        raise ConflictError(f"{path} is where a file system is mounted, and cannot be exchanged; give a folder in it")
    listed = _listed(path) or []
    foreign = [name for name in _inside(path) if name not in {*listed, LIST}]
    if foreign:
        why = "" if listed else " and has no list of what this program wrote there"
        kept = "nothing of it is replaced. Move them elsewhere, or give --out another name"
        raise ConflictError(f"{path} holds other files ({foreign[0]}, ...){why}; {kept}")


def _inside(folder: Path) -> list[str]:
    """Names of all that is below a folder, without folders that have something in them; links are not followed."""
    found: list[Path] = []

    def refuse(error: OSError) -> None:
        raise error

    for inner, folders, files in os.walk(folder, onerror=refuse):
        links = [name for name in folders if (Path(inner) / name).is_symlink()]
        found += [Path(inner) / name for name in (*files, *links)] or ([] if folders else [Path(inner)])
    return sorted(path.relative_to(folder).as_posix() for path in found if path != folder)


def _write_list(folder: Path, names: Sequence[str] | None) -> None:
    """None: the folder is being filled, and all regular files in it are this program's."""
    write_whole(folder / LIST, [json.dumps({"format": _LISTED, "files": names}, indent=1).encode() + b"\n"])


def _listed(folder: Path) -> list[str] | None:
    """What a folder lists; all regular files of one that was being filled. None for a folder of somebody else."""
    try:
        document = json.loads(read_inside(folder, LIST, 64 << 20))
        if document["format"] != _LISTED:
            return None
        names = _inside(folder) if document["files"] is None else document["files"]
        return [name for name in names if isinstance(name, str) and ".." not in name.split("/")]
    except UnreadableError:  # perhaps it lists something
        raise
    except (DamagedStoreError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _drop(*folders: Path) -> None:
    """Remove folders that this program filled, or has begun to fill: what each lists, and then the list."""
    for folder in folders:
        if folder.is_dir() and not folder.is_symlink():
            names = _listed(folder)
            remove_inside(folder, [name for name in names or () if name != LIST])
            last = {LIST + PARTIAL} if names is None else {LIST + PARTIAL, LIST}  # a kill may come before the list
            if not set(_inside(folder)) - last:
                remove_inside(folder, last)
                folder.rmdir()
        if os.path.lexists(folder):
            raise ConflictError(f"{folder} is in the way, where this program writes for a while; move it elsewhere")


def _put_back(old: Path, path: Path) -> None:
    if os.path.lexists(old) and not os.path.lexists(path):
        old.rename(path)


def _exchanged(one: Path, other: Path) -> bool:
    """Whether two names changed places in one step, which Linux offers on most file systems."""
    if not sys.platform.startswith("linux"):
        return False
    import ctypes

    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    at_cwd, exchange = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of <fcntl.h> and <linux/fs.h>
    return bool(rename(at_cwd, os.fsencode(one), at_cwd, os.fsencode(other), exchange) == 0)


def _sync(path: Path, links: int = getattr(os, "O_NOFOLLOW", 0)) -> None:
    descriptor = os.open(path, links | (os.O_RDONLY if fcntl else os.O_RDWR))  # Windows syncs what it could write to
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Make names created or renamed in a folder durable, where a folder can be opened."""
    if fcntl:
        with disk_errors(folder):
            _sync(folder, links=0)


def make_folder(folder: Path) -> None:
    """Create a folder and its missing parents, durably."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    with disk_errors(folder):
        folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)


def lock_folder(folder: Path, *, shared: bool = False) -> int:
    """Lock a folder for one writer, or `shared` by several that agree: by a descriptor, until that is closed. The lock
    is on the folder itself, so that no lock file is left behind and a killed writer frees it."""
    if not fcntl:
        raise MissingComponentError(
            f"{folder} cannot be locked against a second writer: this system has no locks on folders. On Windows, use "
            "WSL 2, where everything works as on Linux; data that are there already can be read and drawn without it"
        )
    with disk_errors(folder):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            if _locked(descriptor, fcntl.LOCK_SH if shared else fcntl.LOCK_EX):
                return descriptor
            busy = f"another process is writing to {folder}"
            raise ConflictError(f"{busy}; wait until it has finished, or write elsewhere with --out")
        except BaseException:
            os.close(descriptor)
            raise


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
