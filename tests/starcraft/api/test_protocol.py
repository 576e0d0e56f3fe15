"""Packages that are missing, old or the wrong ones: one message that says what to install."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HIDE = """
import sys
class Hidden:
    def find_spec(name, path=None, target=None):
        if name in {hidden!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Hidden)
sys.path.insert(0, {folder!r})
"""
CHECK = """
import sys
from s2rm_data.core.errors import S2RMError
from s2rm_data.starcraft.api import protocol as packages
try:
    packages.{check}()
except S2RMError as error:
    sys.exit(f"{{error.exit_status}} {{error}}")
"""


def check(name: str, folder: Path, hidden: tuple[str, ...] = ()) -> str:
    """Standard error of a process that checks, with `folder` before all packages and some of them out of reach."""
    code = HIDE.format(folder=str(folder), hidden=hidden) + CHECK.format(check=name)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False).stderr


def package(folder: Path, name: str, **modules: str) -> Path:
    (folder / name).mkdir(parents=True)
    (folder / name / "__init__.py").write_text("")
    for module, text in modules.items():
        (folder / name / f"{module}.py").write_text(text)
    return folder


@pytest.mark.parametrize("name", ["require_protocol", "require_pysc2"])
def test_what_is_installed_fits_together(name: str, tmp_path: Path) -> None:
    assert check(name, tmp_path) == ""


@pytest.mark.parametrize(
    ("name", "hidden", "says"),
    [
        ("require_protocol", "s2clientprotocol", "'pys2clientprotocol'"),
        ("require_pysc2", "pysc2", "'pysc2'"),
        ("require_pysc2", "websocket", "'websocket'"),
    ],
)
def test_a_missing_package_names_the_extra(name: str, hidden: str, says: str, tmp_path: Path) -> None:
    message = check(name, tmp_path, (hidden,))
    assert message.startswith("4 talking to StarCraft II needs the package")
    assert says in message
    assert "pip install 's2rm-data[sc2]'" in message


def test_the_old_protocol_package_is_recognised(tmp_path: Path) -> None:
    old = "raise TypeError('Descriptors cannot be created directly.\\nIf this call came from a _pb2.py file ...')"
    message = check("require_protocol", package(tmp_path, "s2clientprotocol", sc2api_pb2=old))
    assert "(Descriptors cannot be created directly.)" in message
    assert "pip install --force-reinstall --no-deps pys2clientprotocol" in message
