"""Things found by name: files of a folder, entry points of installed packages, and modules named with --plugin.

Adding an entry is adding one file, inside this package or outside of it. Listing names reads folders and the metadata
of installed packages and imports nothing. A plug-in module exports what a built-in file does (`MODEL`, `POLICY`,
`WORLD`, ..., named like the module), or several under the plural (`MODELS = {"name": ...}`)."""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import importlib.util
import pkgutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from s2rm_data.core.errors import UsageError, did_you_mean

# What a plug-in may export, each also under its plural.
EXPORTS = ("MODEL", "POLICY", "WORLD", "PLACE", "LOGGER", "EXPORT_FORMAT", "CODEC", "PRESET")
IMPORT_FAILURES = (Exception, SystemExit)  # a script may call sys.exit


class Plugin(NamedTuple):
    """Where an entry comes from: the name and version of the package, or the file of a module."""

    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}".strip()


_loaded: list[tuple[ModuleType, Plugin, str]] = []  # and as it was asked for; files by their whole path


def added(attribute: str) -> dict[str, tuple[Any, Plugin]]:
    """The entries of one kind that modules named with --plugin bring, by name."""
    brought = ((exports(module, attribute), plugin) for module, plugin, _ in _loaded)
    return {name: (entry, plugin) for entries, plugin in brought for name, entry in entries.items()}


def plural(attribute: str) -> str:
    return attribute.removesuffix("Y") + "IES" if attribute.endswith("Y") else attribute + "S"


def exports(module: ModuleType, attribute: str) -> dict[str, Any]:
    """Entries of one kind by name: the plural's, and the single one under its own name or the module's."""
    several = plural(attribute)
    listed = getattr(module, several, {})
    if not isinstance(listed, Mapping) or not all(isinstance(name, str) for name in listed):
        raise UsageError(f'the plug-in {module.__name__} has a {several} that is not a dict such as {{"name": ...}}')
    entries = dict(listed)
    if hasattr(module, attribute):
        entry = getattr(module, attribute)
        name = getattr(entry, "name", None)
        entries[name if isinstance(name, str) else module.__name__.rpartition(".")[2]] = entry
    return entries


def load_plugin(named: str) -> Plugin:
    """Import a module, or a Python file, and make all it exports known for the rest of the process."""
    module = _import_file(Path(named)) if named.endswith(".py") else _import_module(named)
    known = next((plugin for other, plugin, _ in _loaded if other is module), None)
    if known:
        return known
    if not any(exports(module, attribute) for attribute in EXPORTS):
        raise UsageError(f"the plug-in {named} exports nothing to add; it should define one of {', '.join(EXPORTS)}")
    file, version = getattr(module, "__file__", None), getattr(module, "__version__", "")
    if file and not version:  # what tells one state of a file from another
        version = f"sha256:{hashlib.sha256(Path(file).read_bytes()).hexdigest()[:12]}"
    plugin = Plugin(module.__name__, str(version))
    _loaded.append((module, plugin, str(Path(named).absolute()) if named.endswith(".py") else named))
    return plugin


def plugins_loaded() -> list[str]:
    """Names that `load_plugin` takes to load again, in another process, what was loaded here."""
    return [named for *_, named in _loaded]


def _import_module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and name.startswith(error.name):
            missing = f"there is no module {name!r} for --plugin; give its name, or the path of a .py file"
            raise UsageError(missing) from None
        raise UsageError(f"the plug-in {name} cannot be imported: {error}") from error
    except IMPORT_FAILURES as error:
        raise UsageError(f"the plug-in {name} cannot be imported: {type(error).__name__}: {error}") from error


def _import_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise UsageError(f"there is no file {path} for --plugin")
    name = path.stem
    known = sys.modules.get(name)
    if known is not None:
        if getattr(known, "__file__", None) and Path(str(known.__file__)).resolve() == path.resolve():
            return known
        raise UsageError(f"the plug-in {path} has the name of another module that is loaded, {name}; rename the file")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except IMPORT_FAILURES as error:
        del sys.modules[name]
        raise UsageError(f"the plug-in {path} cannot be imported: {type(error).__name__}: {error}") from error
    return module


@cache
def _all_entry_points() -> Any:
    return importlib.metadata.entry_points()  # reads the metadata of every installed package


def origin_of(entry_point: importlib.metadata.EntryPoint) -> Plugin:
    package = entry_point.dist
    return Plugin(package.name, package.version) if package else Plugin(entry_point.value, "")


@dataclass(frozen=True, kw_only=True)
class Registry:
    """Of the entries in the folder `package`. `kind` is the word messages use, `hint` the command that lists them. A
    policy's file ends with POLICY; installed packages name theirs in the group of entry points `s2rm_data.policies`."""

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
        return {e.name: e for e in _all_entry_points().select(group=self.entry_points) if e.name not in built_in}

    def require(self, name: str) -> None:
        """Raise a `UsageError` for a name that is not there; nothing is imported."""
        names = self.names()
        if name not in names:
            hint = f" ({self.hint})" if self.hint else ""
            outside = "if a plug-in brings it, install its package or name its module with --plugin"
            choices = f"the choices are {', '.join(names)}{hint}; {outside}"
            raise UsageError(f"no {self.kind} {name!r}{did_you_mean(str(name), names, choices)}")

    def load(self, name: str) -> Any:
        """The entry; an unknown name, or a plug-in that cannot be imported, is a `UsageError`."""
        brought = added(self.attribute)
        if name in brought:
            if name in self._built_in():
                plugin = brought[name][1].name
                raise UsageError(f"the plug-in {plugin} brings a {self.kind} {name!r}, which is built in")
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
        if name in (brought := added(self.attribute)):
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
