"""How the engine's functions are compiled: without the interpreter lock, cached on disk, IEEE arithmetic as written.

They only read and write arrays that their caller owns, so no reference counts are kept (`_nrt`): counting them,
atomically, at every call took half of the engine's time. Division by zero gives inf or nan, as in NumPy, and is not
checked for.
"""

from __future__ import annotations

from typing import Any

from s2rm_data import compiled as base

_OPTIONS: dict[str, Any] = {"error_model": "numpy", "_nrt": False}
compiled = base.compiled(**_OPTIONS)
# Functions that only compiled functions call; Python cannot call them. They are inlined wherever they are called: an
# array is seven to ten arguments of a call, and passing dozens of them took half of the engine's time again.
inner = base.compiled(**_OPTIONS, no_cpython_wrapper=True, no_cfunc_wrapper=True, forceinline=True)
