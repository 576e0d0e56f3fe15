"""How the engine's functions are compiled: without the interpreter lock, cached on disk, IEEE arithmetic as written.

They only read and write arrays that their caller owns, so no reference counts are kept (`_nrt`): counting them,
atomically, at every call took half of the engine's time. Division by zero gives inf or nan, as in NumPy, and is not
checked for.

Numba notices when the file of a cached function changes, but not when a file it takes constants or functions from does.
`forget_stale` does: it compares a digest of all sources with the one that was compiled in.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from types import ModuleType
from typing import Any

import numba as nb

from s2rm_data import philox
from s2rm_data.generators.sc2 import maps, snapshot, units

_OPTIONS: dict[str, Any] = {"nogil": True, "cache": True, "error_model": "numpy", "_nrt": False}
compiled = nb.njit(**_OPTIONS)
# Functions that only compiled functions call; they compile in less time, and Python cannot call them.
inner = nb.njit(**(_OPTIONS | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}))


def _digest() -> int:
    names = ("chance", "combat", "compiled", "layout", "loop", "motion", "step")
    files = [Path(__file__).with_name(f"{name}.py") for name in names]
    files += [Path(module.__file__ or "") for module in (philox, maps, snapshot, units)]
    return int.from_bytes(hashlib.sha256(b"".join(file.read_bytes() for file in files)).digest()[:7], "big")


SOURCES = _digest()


@compiled
def _compiled_from():  # type: ignore[no-untyped-def]
    return SOURCES


def forget_stale(*modules: ModuleType) -> None:
    """Empty the modules' caches of compiled functions if any source has changed since; call before using them."""
    if _compiled_from() == SOURCES:
        return
    functions = [value for module in modules for value in vars(module).values() if hasattr(value, "recompile")]
    for function in (_compiled_from, *functions):
        function._cache.flush()
    _compiled_from.recompile()
