"""Compiled functions whose cache on disk is never stale, and never in the way.

Numba looks a cached function up by the age of the file that defines it, and does not notice when a file changes that it
took constants or functions from. Here the stamp of a cached function is a digest of its module and of all that this
imports, directly or not: what compiled code is made of comes through an import. Comments may change without a new
compilation. Where neither the package's folder nor the user's cache can be written to, as in containers, the cache is
in the temporary folder; where that fails too, or the disk is full, functions are compiled in memory at every start."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from pickle import UnpicklingError
from types import SimpleNamespace
from typing import Any

import numba as nb
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering

from s2rm_data.core.errors import S2RMWarning
from s2rm_data.core.progress import COMPILING

_HERE = Path(__file__).resolve()
_PACKAGE = _HERE.parents[1]
_IMPORT = re.compile(r"^[ \t]*(?:from|import)[ \t]+s2rm_data([.\w]*)(?:[ \t]+import[ \t]+(\([^)]*\)|.*))?", re.M)
_NAME = re.compile(r"(\w+)(?:\s+as\s+\w+)?")
_COMMENT = re.compile(rb"^([^'\"#]*)#.*|#[^'\"]*$")
_FOR_TYPES = re.compile(r"^if TYPE_CHECKING:\n(?:[ \t]+.*\n|\n)*", re.M)
_UNREADABLE = (OSError, EOFError, UnpicklingError, ImportError, AttributeError, LookupError, TypeError, ValueError)


def stamp_of(function: Callable[..., Any]) -> str:
    """What a cached function must agree with: a digest of all sources that it can be made of."""
    file = _resolved(function.__code__.co_filename)
    if file.is_relative_to(_PACKAGE):
        return _digest(_read(one)[0] for one in closure(file))
    own = plugin_sources(file) if file.is_file() else []  # a notebook's cell is told apart by its text
    return _digest([_package(), *(one.read_bytes() for one in own)])


@cache
def _resolved(name: str) -> Path:
    return Path(name).resolve()


def _digest(contents: Iterable[bytes]) -> str:
    return hashlib.sha256(b"".join(contents)).hexdigest()


@cache
def _package() -> bytes:
    """Digest of all that code from elsewhere may have taken constants from."""
    return _digest(file.read_bytes() for file in sorted(_PACKAGE.rglob("*.py"))).encode()


@cache
def closure(file: Path) -> list[Path]:
    """A file of the package, all that it imports from the package, directly or not, and this one, whose own imports
    never become part of compiled code; nor does the `__init__` of a package, unless a name is imported from it."""
    found, waiting = {_HERE}, {file}
    while waiting:
        found |= waiting
        waiting = set().union(*(_read(one)[1] for one in waiting)) - found
    return sorted(found)


@cache
def _read(file: Path) -> tuple[bytes, frozenset[Path]]:
    """The digest of a file, and the package's files that it imports anywhere but for types alone."""
    source = file.read_bytes()
    text = _FOR_TYPES.sub("", source.decode())
    imported = frozenset[Path]().union(*(_imported(*statement) for statement in _IMPORT.findall(text)))
    return hashlib.sha256(without_comments(source)).digest(), imported


def without_comments(source: bytes) -> bytes:
    """Source but for blank lines and comments: a `#` with no quote before it or none behind it begins one."""
    lines = (_COMMENT.sub(rb"\1", line).rstrip() if b"#" in line else line for line in source.split(b"\n"))
    return b"\n".join(filter(None, lines))


@cache
def _imported(module: str, names: str) -> frozenset[Path]:
    """The files behind `from module import names`, or behind `import module` if there are no names."""
    found = {_file(f"{module}.{name}") for name in _NAME.findall(names)}
    if not found or None in found:  # something that is no module of its own
        found.add(_file(module))
    return frozenset(file for file in found if file)


@cache
def _file(module: str) -> Path | None:
    """The file of a module named from the package on, such as ".core.compiled", if it is one."""
    place = _PACKAGE.joinpath(*module.split("."))
    return next((file for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file()), None)


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
    """`numba.njit` without the interpreter lock, cached; compiled at first use, and with a signature for it alone."""

    def compile_function(function: Callable[..., Any]) -> Any:
        if nb.config.DISABLE_JIT:  # type: ignore[attr-defined]
            return function
        dispatcher = _cached(function, options)
        _take_in_by_parts(dispatcher, function, signature, options)
        if signature is not None:
            _hold_to(signature, dispatcher)
        return dispatcher

    return compile_function


def _hold_to(signature: Any, dispatcher: Any) -> None:
    """Compile for one signature when the function is first called, or asked for as an argument."""
    result = dispatcher.get_compile_result

    @cache
    def settle() -> Any:
        with global_compiler_lock:  # another thread may have come first
            if not dispatcher.signatures:
                dispatcher.compile(signature)
                dispatcher.disable_compile()
        return dispatcher

    dispatcher._compile_for_args = lambda *arguments, **named: settle()  # which numba then calls
    dispatcher.get_compile_result = lambda *arguments, **named: (settle(), result(*arguments, **named))[1]


def _take_in_by_parts(dispatcher: Any, function: Callable[..., Any], signature: Any, options: Any) -> None:
    """Let compiled functions that call this one take it in as a part; only for Python is it machine code of its own.
    Numba optimises a function by itself, then again inside each that calls it, and so on: most of its time. It would
    also compile it for each constant argument. What is called by compiled code alone is then never finished by itself.
    """
    add = dispatcher.add_overload

    @cache
    def part() -> Any:
        bare = {**options, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        found: Any = nb.njit(nogil=True, pipeline_class=_PartCompiler, **bare)(function)
        found._compiling_counter = dispatcher._compiling_counter  # by which a function that calls itself is known
        if signature is not None:
            found.compile(signature)
            found.disable_compile()
        return found

    def get_call_template(positional: Any, named: Any) -> Any:
        kinds = {name: nb.types.unliteral(kind) for name, kind in named.items()}
        return part().get_call_template(tuple(nb.types.unliteral(kind) for kind in positional), kinds)

    def add_overload(result: Any) -> None:
        for environment in result._find_referenced_environments():  # those of its parts; what prints or raises has one
            result.library.codegen.set_env(environment.env_name, environment)
        add(result)

    dispatcher.get_call_template, dispatcher.add_overload = get_call_template, add_overload
    dispatcher.get_overload = lambda wanted: part().get_overload(wanted)


class _Part(JITCodeLibrary):
    """Code that is taken into other code: it is optimised there, and is no machine code of its own."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        return 0

    codegen: Any = SimpleNamespace(set_env=lambda name, environment: None)  # no machine code: nothing could read it


@register_pass(mutates_CFG=True, analysis_only=False)
class _PartLowering(NativeLowering):
    _name = "part_lowering"

    def run_pass(self, state: Any) -> bool:
        state.library = _Part(state.targetctx.codegen(), state.func_id.func_qualname)
        return bool(super().run_pass(state))


class _PartCompiler(CompilerBase):
    def define_pipelines(self) -> list[Any]:
        manager = DefaultPassBuilder.define_nopython_pipeline(self.state)
        manager.passes = [(_PartLowering if one is NativeLowering else one, text) for one, text in manager.passes]
        manager.finalize()
        return [manager]


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
    nowhere = "no folder for compiled code can be written to, so it is compiled at every start"
    _say_once(f"{nowhere}; NUMBA_CACHE_DIR names one")
    return nb.njit(cache=False, nogil=True, **options)(function)


@contextlib.contextmanager
def _temporary_cache() -> Iterator[None]:
    """Point numba to a temporary folder of the user's own: cached functions are code, nobody else may put any there."""
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


@cache
def _say_once(message: str) -> None:
    warnings.warn(message, S2RMWarning, stacklevel=2)


# How the StarCraft II engine and all that is compiled around it is: IEEE arithmetic as written; division by zero gives
# inf or nan, as in NumPy. Functions only read and write arrays that their caller owns, so no reference counts are kept
# (`_nrt`): counting them, atomically, at every call took half of the engine's time.
_ARRAYS_ONLY: dict[str, Any] = {"error_model": "numpy", "_nrt": False}
kernel = compiled(**_ARRAYS_ONLY)
# Functions that only kernels call; Python cannot call them. They are inlined wherever they are called: an array is
# seven to ten arguments of a call, and passing dozens of them took half of the engine's time again.
inner = compiled(**_ARRAYS_ONLY, no_cpython_wrapper=True, no_cfunc_wrapper=True, forceinline=True)
