"""Imports point one way, down the line of LAYERS: checked on the source, so that lazy imports count too."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import s2rm_data

PACKAGE = Path(s2rm_data.__file__).parent
LAYERS = [
    {"cli"},
    {"training", "evaluation", "generate", "server"},
    {"loading"},
    {"models", "metrics"},
    {"store", "generators"},
]
BASE = {"errors", "files", "interrupt", "registry", "config", "seeding", "philox", "compiled", "schema", "progress", ""}
APART = {"models": {"store", "generators"}, "metrics": {"store", "generators"}}  # lower, and still not to be imported
FORBIDDEN = {  # external package -> the only parts that may import it
    "zarr": {"store"},
    "click": {"cli"},
    "rich": {"cli"},
    "torch": {"models", "loading", "training", "evaluation", "metrics", "cli"},
}


def parts_imported(path: Path) -> set[tuple[str, str]]:
    """(top-level package, part of s2rm_data) of every import statement of a file."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names = (
                [f"{node.module}.{alias.name}" for alias in node.names] if node.module == "s2rm_data" else [node.module]
            )
        for name in names:
            pieces = [*(name or "").split("."), "", ""]
            found.add((pieces[0], pieces[1] if pieces[0] == "s2rm_data" else ""))
    return found


def layer(part: str) -> int:
    return next((depth for depth, parts in enumerate(LAYERS) if part in parts), len(LAYERS))


def part_of(path: Path) -> str:
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py") if first.endswith(".py") else first


FILES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.relative_to(PACKAGE).as_posix())
def test_imports_point_down(path: Path) -> None:
    here = part_of(path)
    if here in ("__main__", "__init__"):
        return
    for package, part in parts_imported(path):
        if package == "s2rm_data" and part != here and part not in BASE and not part.startswith("__"):
            allowed = layer(part) > layer(here) and part not in APART.get(here, set())
            assert allowed, f"{here} must not import {part}"
        assert here in FORBIDDEN.get(package, {here}), f"{here} must not import {package}"


def test_every_part_of_the_package_has_a_layer() -> None:
    parts = {part_of(path) for path in FILES} - {"__main__", "__init__"}
    assert parts <= set().union(*LAYERS) | BASE


@pytest.mark.parametrize("module", ["s2rm_data.generate", "s2rm_data.generators.bballs", "s2rm_data.generators.sc2"])
def test_making_data_needs_no_torch(module: str) -> None:
    code = f"import sys, {module}; sys.exit('torch' in sys.modules or 'zarr' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys, s2rm_data.cli.data; sys.exit(any(m in sys.modules for m in ('numpy', 'numba', 'torch', 'zarr')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
