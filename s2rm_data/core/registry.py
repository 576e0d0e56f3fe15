"""Things found by name: files of a folder, entry points of installed packages, and modules named with --plugin.

Adding an entry is adding one file, inside this package or outside of it; nothing else is edited. Listing names reads
folders and the metadata of installed packages and imports nothing.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import pkgutil
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from s2rm_data.core.errors import UsageError, did_you_mean
from s2rm_data.core.plugins import IMPORT_FAILURES, Plugin, added, installed, origin_of, plural


@dataclass(frozen=True, kw_only=True)
class Registry:
    """Of the entries in the folder `package`. `kind` is the word messages use, `hint` the command that lists them.

    A policy's file ends with POLICY; installed packages name theirs in the group of entry points `s2rm_data.policies`.
    """

    package: str
    kind: str
    hint: str = ""

    @property
    def attribute(self) -> str:
        return self.kind.replace(" ", "_").upper()

    @property
    def entry_points(self) -> str:
        return f"s2rm_data.{plural(self.attribute).lower()}"

    def names(self) -> list[str]:
        """Sorted names; modules that start with an underscore are shared parts, not entries."""
        return sorted({*self._built_in(), *self._installed(), *added(self.attribute)})

    def _built_in(self) -> list[str]:
        # To import the package may cost torch.
        folder = Path(__file__).parents[1].joinpath(*self.package.split(".")[1:])
        return [m.name for m in pkgutil.iter_modules([str(folder)]) if not m.name.startswith("_")]

    def _installed(self) -> dict[str, importlib.metadata.EntryPoint]:
        built_in = self._built_in()
        return {e.name: e for e in installed(self.entry_points) if e.name not in built_in}

    def require(self, name: str) -> None:
        """Raise a `UsageError` for a name that is not there; nothing is imported."""
        names = self.names()
        if name not in names:
            hint = f" ({self.hint})" if self.hint else ""
            choices = (
                f"the choices are {', '.join(names)}{hint}; if a plug-in brings it, install its package or name its "
                "module with --plugin"
            )
            raise UsageError(f"no {self.kind} {name!r}{did_you_mean(str(name), names, choices)}")

    def load(self, name: str) -> Any:
        """The entry; an unknown name, or a plug-in that cannot be imported, is a `UsageError`."""
        brought = added(self.attribute)
        if name in brought:
            if name in self._built_in():
                raise UsageError(
                    f"the plug-in {brought[name][1].name} brings a {self.kind} {name!r}, which is built in"
                )
            return brought[name][0]
        if name in self._built_in():
            return getattr(importlib.import_module(f"{self.package}.{name}"), self.attribute)
        self.require(name)
        entry_point = self._installed()[name]
        try:
            found = entry_point.load()
            return getattr(found, self.attribute) if isinstance(found, ModuleType) else found
        except IMPORT_FAILURES as error:
            raise UsageError(
                f"the {self.kind} {name!r} of the package {origin_of(entry_point)} cannot be loaded "
                f"({entry_point.value}): {type(error).__name__}: {error}; repair or uninstall the package"
            ) from error

    def name_of(self, entry: Any) -> str | None:
        """The name under which an entry is found, if it is."""
        for name, (brought, _) in added(self.attribute).items():
            if brought is entry:
                return name
        module, _, last = str(getattr(entry, "__module__", "")).rpartition(".")
        if module == self.package and last in self._built_in():
            return last
        loaded = [name for name, point in self._installed().items() if point.module in sys.modules]
        return next((name for name in loaded if self.load(name) is entry), None)

    def origin(self, name: str) -> Plugin | None:
        """The plug-in that an entry comes from; None for built-in ones."""
        brought = added(self.attribute)
        if name in brought:
            return brought[name][1]
        entry_point = self._installed().get(name)
        return origin_of(entry_point) if entry_point else None


MODELS = Registry(package="s2rm_data.models.zoo", kind="model", hint="s2rm-train --list-models shows them")
WORLDS = Registry(package="s2rm_data.generators", kind="world", hint="s2rm-data --help lists them")
CODECS = Registry(package="s2rm_data.models.codecs", kind="codec")
PRESETS = Registry(package="s2rm_data.training.presets", kind="preset")
LOGGERS = Registry(package="s2rm_data.training.loggers", kind="logger")
PLACES = Registry(package="s2rm_data.store.places", kind="place")
EXPORT_FORMATS = Registry(package="s2rm_data.inspection.export", kind="export format")


def plugins_used(*used: tuple[Registry, str]) -> dict[str, str]:
    """Name and version of the plug-in behind each of these entries, by the entry's name; built-in ones are left out."""
    origins = {name: registry.origin(name) for registry, name in used}
    return {name: str(origin) for name, origin in origins.items() if origin}
