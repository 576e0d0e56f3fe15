"""What comes from outside the package: modules named with --plugin, and entry points of installed packages.

A plug-in module exports what a built-in file does (`MODEL`, `POLICY`, `WORLD`, ..., named like the module), or several
under the plural (`MODELS = {"name": ...}`).
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import importlib.util
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from s2rm_data.core.errors import UsageError

# What a plug-in may export, each also under its plural.
EXPORTS = ("MODEL", "POLICY", "WORLD", "PLACE", "LOGGER", "EXPORT_FORMAT", "CODEC", "PRESET")
IMPORT_FAILURES = (Exception, SystemExit)  # a script may call sys.exit


@dataclass(frozen=True, kw_only=True)
class Plugin:
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
    plugin = Plugin(name=module.__name__, version=str(getattr(module, "__version__", "") or _file_version(module)))
    _loaded.append((module, plugin, str(Path(named).absolute()) if named.endswith(".py") else named))
    return plugin


def plugins_loaded() -> list[str]:
    """Names that `load_plugin` takes to load again, in another process, what was loaded here."""
    return [named for *_, named in _loaded]


def _file_version(module: ModuleType) -> str:
    """What tells one state of a file from another where it has no `__version__`."""
    file = getattr(module, "__file__", None)
    return f"sha256:{hashlib.sha256(Path(file).read_bytes()).hexdigest()[:12]}" if file else ""


def _import_module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and name.startswith(error.name):
            raise UsageError(
                f"there is no module {name!r} for --plugin; give its name, or the path of a .py file"
            ) from None
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


def installed(group: str) -> list[importlib.metadata.EntryPoint]:
    return list(_all_entry_points().select(group=group))


def origin_of(entry_point: importlib.metadata.EntryPoint) -> Plugin:
    package = entry_point.dist
    if package is None:
        return Plugin(name=entry_point.value, version="")
    return Plugin(name=package.name, version=package.version)
