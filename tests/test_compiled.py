"""Compiled code on disk must not outlive the sources it was made of."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import s2rm_data
from s2rm_data.compiled import SOURCES, plugin_sources, sources_digest
from s2rm_data.generators.bballs.simulate import _simulate
from s2rm_data.generators.sc2.engine.step import step_batch
from s2rm_data.philox import philox

PACKAGE = Path(s2rm_data.__file__).parent


def test_every_compiled_function_is_stamped_with_all_sources() -> None:
    assert sources_digest() == SOURCES
    for function in (philox, step_batch):
        assert function._cache._cache_file._source_stamp == SOURCES
    assert callable(_simulate)


def test_no_function_is_compiled_past_the_stamp() -> None:
    offenders = [file for file in PACKAGE.rglob("*.py") if "njit" in file.read_text()]
    assert offenders == [PACKAGE / "compiled.py"]


def test_a_constant_changed_in_another_file_changes_what_compiled_code_does(tmp_path: Path) -> None:
    copy = tmp_path / "s2rm_data"
    copy.mkdir()
    (copy / "generators").mkdir()
    (copy / "__init__.py").write_text("")
    for name in ("compiled.py", "errors.py", "philox.py", "progress.py"):
        shutil.copy(PACKAGE / name, copy)
    (copy / "generators" / "__init__.py").write_text("")
    (copy / "generators" / "kernel.py").write_text(
        "from s2rm_data.compiled import compiled\n"
        "from s2rm_data.generators.constant import VALUE\n\n\n"
        "@compiled()\ndef value():\n    return VALUE\n"
    )
    said = []
    for number in (1, 2):
        (copy / "generators" / "constant.py").write_text(f"VALUE = {number}\n")
        code = "from s2rm_data.generators.kernel import value; print(value())"
        said.append(
            subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
        )
    assert [done.stdout.strip() for done in said] == ["1", "2"]


@pytest.fixture
def unwritable(tmp_path: Path) -> Path:
    """A folder with the package, in which nothing can be cached: a file is where each folder would be."""
    for part in ("s2rm_data", "s2rm_data/generators"):
        (tmp_path / part).mkdir()
        (tmp_path / part / "__init__.py").write_text("")
        (tmp_path / part / "__pycache__").write_text("")
    for name in ("compiled.py", "errors.py", "philox.py", "progress.py"):
        shutil.copy(PACKAGE / name, tmp_path / "s2rm_data")
    (tmp_path / "s2rm_data" / "generators" / "kernel.py").write_text(
        "from s2rm_data.compiled import compiled\n\n\n"
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
            "from s2rm_data.compiled import compiled\n"
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
