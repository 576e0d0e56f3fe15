"""Compiled code on disk must not outlive the sources it was made of."""

from __future__ import annotations

import ast
import os
import re
import shutil
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import pytest

import s2rm_data
from s2rm_data.core.compiled import closure, compiled, plugin_sources, stamp_of, without_comments
from s2rm_data.core.philox import philox
from s2rm_data.starcraft.engine.step import step_batch

pytestmark = pytest.mark.costs(3)

PACKAGE = Path(s2rm_data.__file__).parent
FILES = [file for file in PACKAGE.rglob("*.py") if re.search(r"^@(compiled|inner|policy)\b", file.read_text(), re.M)]


def test_every_compiled_function_is_stamped() -> None:
    for function in (philox, step_batch):
        assert function._cache._cache_file._source_stamp == stamp_of(function.py_func)
    assert stamp_of(philox.py_func) != stamp_of(step_batch.py_func)


def test_no_function_is_compiled_past_the_stamp() -> None:
    offenders = [file for file in PACKAGE.rglob("*.py") if "njit" in file.read_text()]
    assert offenders == [PACKAGE / "core" / "compiled.py"]


def imported_by(file: Path) -> set[Path]:
    """What a module imports from the package, by Python's own parser; what only the type checker sees is left out."""
    tree = ast.parse(file.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = [ast.Pass()]
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{file}:{node.lineno}: relative import"
            inside = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= inside if all(map(source_of, inside)) else {*inside, str(node.module)}
    return {source for name in names if (source := source_of(name))}


def source_of(module: str) -> Path | None:
    place = PACKAGE.parent.joinpath(*module.split("."))
    for file in (place.with_suffix(".py"), place / "__init__.py"):
        if file.is_file() and PACKAGE in file.parents:
            return file
    return None


def test_a_stamp_covers_whatever_a_module_imports() -> None:
    here = PACKAGE / "core" / "compiled.py"
    for file in FILES:
        found = set(closure(file))
        assert {file, here} <= found
        for source in found - {here}:
            assert imported_by(source) <= found, source
            assert not re.search(r"import_module|__import__|\bexec\(", source.read_text()), f"who can follow {source}?"


def test_a_stamp_covers_nothing_that_a_function_is_not_made_of() -> None:
    for file in FILES:
        own, sources = file.relative_to(PACKAGE).parts, [found.relative_to(PACKAGE).parts for found in closure(file)]
        stages = {"making", "learning", own[2] if own[0] == "generators" else ""}
        assert {parts[0] for parts in sources} <= {"core", "starcraft", "generators", "learning"}  # the last for scores
        assert {parts[2] for parts in sources if parts[0] == "generators"} <= stages, file


def meaning(source: bytes) -> str:
    """A module's syntax tree but for docstrings and places."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            node.body = [line for line in node.body if ast.unparse(line)[:1] not in ("'", '"')]
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            node.value = ast.Constant(None)
    return ast.dump(tree)


def test_a_stamp_covers_all_but_comments() -> None:
    for source in {source for file in FILES for source in closure(file)}:
        text = source.read_bytes()
        assert meaning(without_comments(text)) == meaning(text), source
    for line in (b"a = 1", b"a = 'b'", b"a = ['b',", b""):
        assert without_comments(line + b"  # c") == without_comments(line)
    for line in (b"a = '#b'", b'a = "#b" + "c"'):
        assert without_comments(line) == line


CORE = ("compiled.py", "errors.py", "progress.py")
KERNEL = """
from s2rm_data.core.compiled import compiled
from s2rm_data.generators.constant import TWICE

@compiled()
def value():
    return TWICE
"""


def test_compiled_code_follows_constants_and_no_other_edit(tmp_path: Path) -> None:
    """The cached machine code is written again when, and only when, what it was made of has changed."""
    copy = tmp_path / "s2rm_data"
    for part in ("core", "generators/figures", "cli"):
        (copy / part).mkdir(parents=True)
    for name in CORE:
        shutil.copy(PACKAGE / "core" / name, copy / "core")
    (copy / "generators" / "kernel.py").write_text(KERNEL)
    far = "VALUE = 1\n"
    sources = {
        "generators/far.py": far,
        "generators/constant.py": "from s2rm_data.generators import far\nTWICE = 2 * far.VALUE\n",
        "generators/figures/figure.py": "from s2rm_data.generators.kernel import value\n",
        "__init__.py": "",
        "cli/command.py": "",
        "api.py": "",
    }

    def run() -> tuple[str, set[tuple[str, int]]]:
        for name, text in sources.items():
            (copy / name).write_text(text)
            os.utime(copy / name, (1e9, 1e9))  # neither its age nor its size tells
        code = (
            "import s2rm_data.api, s2rm_data.cli.command\n"
            "from s2rm_data.generators.figures.figure import value; print(value())"
        )
        names = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, env=names, capture_output=True, text=True, check=True
        )
        return done.stdout, {(file.name, file.stat().st_mtime_ns) for file in (tmp_path / "cache").rglob("*.nb?")}

    first = run()
    assert first[0] == "2\n"
    assert len(first[1]) == 2
    for name in sources:
        sources[name] += "# A comment\n"
    for name in ("generators/figures/figure.py", "cli/command.py", "api.py"):
        sources[name] += "X = 1\n"
    assert run() == first
    sources["generators/far.py"] = far.replace("1", "2")
    assert run()[0] == "4\n"


PARTS = """
import numpy as np
from s2rm_data.core.compiled import compiled

@compiled()
def checked(x):
    if x > 5:
        raise ValueError("too large", x)
    return x

@compiled()
def factorial(n):
    return 1 if n <= 1 else n * factorial(n - 1)

@compiled("int64(int64)")
def double(n):
    return 2 * n

@compiled()
def outer(x):
    return checked(x) + factorial(5) + double(3) + double(np.int32(2))
"""


def test_what_compiled_code_calls_is_taken_in_and_can_be_called_by_itself(tmp_path: Path) -> None:
    """It becomes machine code of its own, and a file of the cache, for Python alone; read back, it does the same."""
    (tmp_path / "parts.py").write_text(PARTS)

    def run(code: str) -> str:
        path = os.pathsep.join([str(tmp_path), str(PACKAGE.parent)])
        names = {**os.environ, "PYTHONPATH": path, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
        command = [sys.executable, "-c", f"from parts import *\n{code}"]
        return subprocess.run(command, env=names, capture_output=True, text=True, check=True).stdout

    fails = "try:\n    outer(7)\nexcept ValueError as error:\n    print(*error.args)"
    for _ in range(2):
        assert run(f"print(outer(2))\n{fails}") == "132\ntoo large 7\n"
        assert [file.name.split("-")[0] for file in (tmp_path / "cache").rglob("*.nbc")] == ["parts.outer"]
    assert run("print(checked(3), factorial(4), double(2), double(np.int8(2)))") == "3 24 4 4\n"
    assert len(list((tmp_path / "cache").rglob("*.nbc"))) == 4


@pytest.fixture
def unwritable(tmp_path: Path) -> Path:
    """A folder with the package, in which nothing can be cached: a file is where each folder would be."""
    for part in ("s2rm_data", "s2rm_data/core", "s2rm_data/generators"):
        (tmp_path / part).mkdir()
        (tmp_path / part / "__init__.py").write_text("")
        (tmp_path / part / "__pycache__").write_text("")
    for name in CORE:
        shutil.copy(PACKAGE / "core" / name, tmp_path / "s2rm_data" / "core")
    (tmp_path / "s2rm_data" / "generators" / "kernel.py").write_text(
        "from s2rm_data.core.compiled import compiled\n\n\n"
        "@compiled()\ndef one():\n    return 1\n\n\n"
        "@compiled('int64()')\ndef two():\n    return 2\n"
    )
    (tmp_path / "temporary").mkdir()
    return tmp_path


def use(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    code = "from s2rm_data.generators.kernel import one, two; print(one(), two())"
    inherited = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "NUMBA_CACHE_DIR")}
    names = {"HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null/cache", "TMPDIR": str(folder / "temporary")}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**inherited, **names, **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "1 2\n"
    return done


def test_threads_that_call_a_function_at_once_have_it_compiled_once() -> None:
    @compiled("int64(int64)")
    def twice(x):  # type: ignore[no-untyped-def]
        return 2 * x

    at_once = threading.Barrier(4)
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda x: (at_once.wait(), twice(x))[1], range(4))) == [0, 2, 4, 6]


def test_a_read_only_install_without_a_home_caches_among_temporary_files(unwritable: Path) -> None:
    assert use(unwritable).stderr == ""
    (folder,) = (unwritable / "temporary").iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert len(list(folder.rglob("*.nbc"))) == 2
    use(unwritable)


def test_a_cache_that_others_can_write_to_is_not_used(unwritable: Path) -> None:
    use(unwritable)
    (folder,) = (unwritable / "temporary").iterdir()
    folder.chmod(0o777)
    assert "no folder for compiled code can be written to" in use(unwritable).stderr


def test_where_nothing_can_be_cached_code_is_compiled_in_memory_and_that_is_said_once(unwritable: Path) -> None:
    (unwritable / "temporary" / f"s2rm-data-compiled-{os.getuid()}").write_text("in the way")
    for shown in ("default", "always"):  # Python by itself says what is said in one place once, or every time
        assert use(unwritable, PYTHONWARNINGS=shown).stderr.count("compiled at every start") == 1


def test_a_damaged_cache_is_compiled_anew(unwritable: Path) -> None:
    cache = unwritable / "cache"
    use(unwritable, NUMBA_CACHE_DIR=str(cache))
    for file in cache.rglob("kernel.one*"):
        for damaged in (b"", file.read_bytes()[:-7], bytes(100)):
            file.write_bytes(damaged)
            use(unwritable, NUMBA_CACHE_DIR=str(cache))


@pytest.mark.parametrize("changed", ["kernel.py", "constant.py"])
@pytest.mark.parametrize("kind", ["module", "package"])
def test_a_changed_plugin_is_compiled_anew(kind: str, changed: str, tmp_path: Path) -> None:
    """Also when neither the age nor the size of its files tells."""
    folder = tmp_path if kind == "module" else tmp_path / "zoo"
    prefix = "" if kind == "module" else "zoo."
    folder.mkdir(exist_ok=True)
    if kind == "package":
        (folder / "__init__.py").touch()
    said = []
    for number in (1, 2):
        values = {name: number if name == changed else 1 for name in ("kernel.py", "constant.py")}
        (folder / "constant.py").write_text(f"VALUE = {values['constant.py']}\n")
        (folder / "kernel.py").write_text(
            "from s2rm_data.core.compiled import compiled\n"
            f"from {prefix}constant import VALUE\n\n\n"
            f"@compiled('int64()')\ndef value():\n    return {values['kernel.py']} * VALUE\n"
        )
        for file in ("kernel.py", "constant.py"):
            os.utime(folder / file, (1e9, 1e9))
        code = f"from {prefix}kernel import value; print(value())"
        path = os.pathsep.join([str(tmp_path), str(PACKAGE.parent)])
        environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-c", code]
        said.append(subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True))
    assert [done.stdout.strip() for done in said] == ["1", "2"]
    assert list(folder.glob("__pycache__/*.nbi"))  # it was cached


def test_loaded_modules_without_a_file_are_no_sources_of_a_plug_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """torch._classes says it was loaded from `_classes.py`, wherever the program runs."""
    ghost = ModuleType("ghost")
    ghost.__file__ = "ghost.py"
    monkeypatch.setitem(sys.modules, "ghost", ghost)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("")
    assert plugin_sources(tmp_path / "mine.py") == [tmp_path / "mine.py"]
