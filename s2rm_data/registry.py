"""Things found by name: every module of a package that defines a given attribute is an entry under the module's name.

Adding an entry is adding one file; nothing else is edited. Listing names reads the folder and imports nothing.
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass
from typing import Any

from s2rm_data.errors import UsageError, did_you_mean


@dataclass(frozen=True, kw_only=True)
class Registry:
    """`kind` is the word messages use (`policy`), `hint` the command that lists the entries."""

    package: str
    attribute: str
    kind: str
    hint: str = ""

    def names(self) -> list[str]:
        """Sorted names; modules that start with an underscore are shared parts, not entries."""
        path = importlib.import_module(self.package).__path__
        return sorted(m.name for m in pkgutil.iter_modules(path) if not m.name.startswith("_"))

    def load(self, name: str) -> Any:
        names = self.names()
        if name not in names:
            suggestion = did_you_mean(name, names) or "."
            hint = f" ({self.hint})" if self.hint else ""
            raise UsageError(f"no {self.kind} {name!r}{suggestion} The choices are {', '.join(names)}{hint}")
        return getattr(importlib.import_module(f"{self.package}.{name}"), self.attribute)
