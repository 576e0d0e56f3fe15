"""Modules of optional packages; not in core/errors.py, which compiled code imports: no stamp could follow this."""

from __future__ import annotations

import importlib
from typing import Any

from s2rm_data.core.errors import missing_component


def needed(module: str, extra: str, needed_for: str) -> Any:
    """An optional module; what is missing, of it or of what it imports, is an error that says how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise missing_component((error.name or module).partition(".")[0], extra, needed_for) from None
