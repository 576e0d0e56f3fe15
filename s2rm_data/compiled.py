"""Compiled functions whose cache on disk is never stale, and never in the way.

Numba looks a cached function up by the age of the file that defines it, and does not notice when a file changes that it
took constants or functions from: after an update the old code would keep making data. Here the stamp of every cached
function is a digest of all sources that compiled code is made of, so that any change compiles all of it anew. That of
a plug-in's function also covers the plug-in's own files.

Where neither the package's folder nor the user's cache can be written to, as in containers, the cache is in the
temporary folder; where that fails too, or the disk is full, functions are compiled in memory at every start.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import stat
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numba as nb

from s2rm_data.errors import S2RMWarning
from s2rm_data.progress import COMPILING

_PACKAGE = Path(__file__).parent
_UNREADABLE = (
    OSError,
    EOFError,
    pickle.UnpicklingError,
    ImportError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
)
_said: set[str] = set()


def sources_digest() -> str:
    """SHA-256 of every file that compiled functions, or the constants frozen into them, come from."""
    files = [_PACKAGE / "compiled.py", _PACKAGE / "philox.py"]
    files += [file for part in ("generators", "loading", "envs") for file in sorted((_PACKAGE / part).rglob("*.py"))]
    return _digest(files)


def _digest(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()


SOURCES = sources_digest()


def stamp_of(function: Callable[..., Any]) -> str:
    """What a cached function must agree with: the package's sources and, for a plug-in's, its own."""
    file = Path(function.__code__.co_filename).resolve()
    if file.is_relative_to(_PACKAGE.resolve()) or not file.is_file():  # a notebook's cell is told apart by its text
        return SOURCES
    return f"{SOURCES} {_digest(plugin_sources(file))}"


def plugin_sources(file: Path) -> list[Path]:
    """What a plug-in's function may take constants from: its whole package, or the loaded modules in its folder."""
    folder = file.parent
    if (folder / "__init__.py").is_file():
        while (folder.parent / "__init__.py").is_file():
            folder = folder.parent
        return sorted(folder.rglob("*.py"))
    loaded = {Path(str(name)).resolve() for m in list(sys.modules.values()) if (name := getattr(m, "__file__", None))}
    beside = {other for other in loaded if other.parent == folder and other.suffix == ".py" and other.is_file()}
    return sorted({file} | beside)  # some modules, such as torch._classes, name files that do not exist


def compiled(signature: Any = None, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """`numba.njit` without the interpreter lock, cached; with a signature, compiled at once and for it alone."""

    def compile_function(function: Callable[..., Any]) -> Any:
        if nb.config.DISABLE_JIT:  # type: ignore[attr-defined]
            return function
        dispatcher = _cached(function, options)
        if signature is not None:
            dispatcher.compile(signature)
            dispatcher.disable_compile()
        return dispatcher

    return compile_function


def _cached(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """A dispatcher with a cache in the first place that can be written to, if there is any."""
    for place in (contextlib.nullcontext, _temporary_cache):
        try:
            with place():
                dispatcher: Any = nb.njit(cache=True, nogil=True, **options)(function)
        except (RuntimeError, OSError):  # numba: "no locator available"
            continue
        _harden(dispatcher._cache, stamp_of(function))
        return dispatcher
    _say_once(
        "no folder for compiled code can be written to, so it is compiled at every start; NUMBA_CACHE_DIR names one"
    )
    return nb.njit(cache=False, nogil=True, **options)(function)


@contextlib.contextmanager
def _temporary_cache() -> Iterator[None]:
    """Point numba to a folder of the user's own among the temporary files.

    Cached functions are code: nobody else may be able to put any there.
    """
    if not hasattr(os, "getuid"):
        raise PermissionError("this system does not say whose folders are")
    folder = Path(tempfile.gettempdir()) / f"s2rm-data-compiled-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise PermissionError(f"{folder} belongs to somebody else or is open to others")
    before = nb.config.CACHE_DIR  # type: ignore[attr-defined]
    nb.config.CACHE_DIR = str(folder)  # type: ignore[attr-defined]
    try:
        yield
    finally:
        nb.config.CACHE_DIR = before  # type: ignore[attr-defined]


def _harden(cache: Any, stamp: str) -> None:
    """Stamp a cache, and make one that cannot be read or written behave as if there were none."""
    cache._cache_file._source_stamp = stamp
    load, save = cache.load_overload, cache.save_overload

    def load_overload(*arguments: Any) -> Any:
        try:
            found = load(*arguments)
        except _UNREADABLE:
            with contextlib.suppress(OSError):
                cache.flush()  # an index that cannot be read could not be added to either
            found = None
        if found is None:
            COMPILING.begin()  # numba compiles what is not in the cache, and then saves it
        return found

    def save_overload(*arguments: Any) -> None:
        COMPILING.end()
        try:
            save(*arguments)
        except OSError as error:
            where = cache.cache_path
            _say_once(f"compiled code cannot be kept in {where} ({error.strerror}), so it is compiled at every start")

    cache.load_overload, cache.save_overload = load_overload, save_overload


def _say_once(message: str) -> None:
    if message not in _said:
        _said.add(message)
        warnings.warn(message, S2RMWarning, stacklevel=2)
