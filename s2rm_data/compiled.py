"""Compiled functions whose cache on disk is never stale, and never in the way.

Numba looks a cached function up by the age of the file that defines it, and does not notice when a file changes that it
took constants or functions from: after an update the old code would keep making data. Here the stamp of every cached
function is a digest of all sources that compiled code is made of, so that any change compiles all of it anew.

Where neither the package's folder nor the user's cache can be written to, as in containers, the cache is in the
temporary folder; where that fails too, or the disk is full, functions are compiled in memory at every start.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import stat
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba as nb

from s2rm_data.errors import S2RMWarning

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
    files += [file for part in ("generators", "loading") for file in sorted((_PACKAGE / part).rglob("*.py"))]
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()


SOURCES = sources_digest()


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
        _harden(dispatcher._cache)
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


def _harden(cache: Any) -> None:
    """Stamp a cache, and make one that cannot be read or written behave as if there were none."""
    cache._cache_file._source_stamp = SOURCES
    load, save = cache.load_overload, cache.save_overload

    def load_overload(*arguments: Any) -> Any:
        try:
            return load(*arguments)
        except _UNREADABLE:
            with contextlib.suppress(OSError):
                cache.flush()  # an index that cannot be read could not be added to either
            return None

    def save_overload(*arguments: Any) -> None:
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
