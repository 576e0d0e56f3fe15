"""Compiled functions whose cache on disk is never stale.

Numba looks a cached function up by the age of the file that defines it, and does not notice when a file changes that it
took constants or functions from: after an update the old code would go on making data. Here the stamp of every cached
function is a digest of all sources that compiled code is made of, so that any change compiles all of it anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba as nb

_PACKAGE = Path(__file__).parent


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
        dispatcher: Any = nb.njit(cache=True, nogil=True, **options)(function)
        dispatcher._cache._cache_file._source_stamp = SOURCES
        if signature is not None:
            dispatcher.compile(signature)
            dispatcher.disable_compile()
        return dispatcher

    return compile_function
