"""Imports point one way, down the list of LAYERS, and no stage names a world: checked on the source."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import s2rm_data
from s2rm_data.registry import WORLDS

PACKAGE = Path(s2rm_data.__file__).parent
LAYERS = [
    {"api"},
    {"cli"},
    {"envs"},
    {"training", "evaluation", "making", "inspection"},
    {"loading", "models"},
    {"store", "generators"},
    {
        "addresses", "errors", "registry", "config", "cores", "files", "interrupt", "sealing", "seeding", "philox",
        "compiled",
        "schema", "progress", "options", "world", "learning", "batch", "metrics", "painting", "scene", "",
    },
]  # fmt: skip
BASE = len(LAYERS) - 1
# Modules of a world stand beside the stage that asks for them; all its others only make data.
WORLD_PARTS = {
    "training": {
        "evaluation", "rollouts", "tables", "figures", "examples", "robustness", "one_step", "paper", "inspection",
        "stats", "recorder", "api", "foresight",
    },
    "loading": {"loading", "learning", "crops", "images", "scores"},
}  # fmt: skip
NAMES_A_WORLD = {"cli/sc2_server.py", "api.py", "envs"}  # a command, the front door's own names, the environments
FORBIDDEN = {  # external package -> the only parts that may import it
    "zarr": {"store"},
    "click": {"cli"},
    "rich": {"cli"},
}
TORCH = {"models", "loading", "training", "evaluation", "metrics", "cli", "batch", "learning", "api"}


def imports_of(path: Path) -> Iterator[tuple[str, ...]]:
    """Every module that a file imports at run time, in pieces; lazy imports count, those for the type checker not."""
    tree = ast.parse(path.read_text())
    skipped: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            skipped |= {id(inner) for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from (tuple(alias.name.split(".")) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            for alias in node.names:
                yield (*str(node.module).split("."), alias.name)


def layer(module: tuple[str, ...]) -> int:
    """Of `("generators", "sc2", "loading", ...)`; smaller is higher."""
    part = module[0] if module else ""
    if part == "generators" and (len(module) == 2 or module[2:3] == ("world",)):
        return layer(("training",))  # the world's door: what is behind it is imported when a stage asks
    if part == "generators" and len(module) > 2:
        for stage, names in WORLD_PARTS.items():
            if module[2] in names:
                return layer((stage,))
    return next((depth for depth, parts in enumerate(LAYERS) if part in parts), BASE)


def module_of(path: Path) -> tuple[str, ...]:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


FILES = [path for path in sorted(PACKAGE.rglob("*.py")) if path.name != "__main__.py" or path.parent != PACKAGE]
named = pytest.mark.parametrize("path", FILES, ids=lambda p: p.relative_to(PACKAGE).as_posix())


@named
def test_imports_point_down(path: Path) -> None:
    here = module_of(path)
    if not here:
        return  # the front door's lazy names
    for imported in imports_of(path):
        if imported[0] == "s2rm_data" and len(imported) > 1 and not imported[1].startswith("__"):
            there = imported[1:]
            same_part = there[0] == here[0]
            beside = here[0] == "generators" and layer(there) == layer(here)
            allowed = layer(there) > layer(here) or same_part or beside or layer(here) == layer(there) == BASE
            assert allowed, f"{'.'.join(here)} must not import {'.'.join(there)}"
            if same_part and here[0] == "generators":
                assert layer(there) >= layer(here), f"{'.'.join(here)} makes data and must not import {there}"
        assert here[0] in FORBIDDEN.get(imported[0], {here[0]}), f"{here[0]} must not import {imported[0]}"
        if imported[0] == "torch" and here[0] == "generators":
            assert layer(here) < layer(("generators",)), f"{'.'.join(here)} makes data and must not import torch"
        elif imported[0] == "torch":
            assert here[0] in TORCH, f"{here[0]} must not import torch"


@named
def test_no_stage_imports_or_names_a_world(path: Path) -> None:
    where = path.relative_to(PACKAGE).as_posix()
    if where.startswith("generators/") or where in NAMES_A_WORLD or where.split("/")[0] in NAMES_A_WORLD:
        return
    worlds = set(WORLDS.names())
    for imported in imports_of(path):
        assert imported[:2] != ("s2rm_data", "generators"), f"{where} imports {'.'.join(imported)}"
    for node in ast.walk(ast.parse(path.read_text())):
        assert not (isinstance(node, ast.Constant) and node.value in worlds), f"{where}:{node.lineno} names a world"


def test_every_part_of_the_package_has_a_layer() -> None:
    parts = {module_of(path)[0] for path in FILES if module_of(path)}
    assert parts <= set().union(*LAYERS)


@pytest.mark.parametrize("module", ["s2rm_data.making", "s2rm_data.generators.bballs", "s2rm_data.generators.sc2"])
def test_making_data_needs_no_torch(module: str) -> None:
    code = f"import sys, {module}; sys.exit('torch' in sys.modules or 'zarr' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("module", ["s2rm_data", "s2rm_data.cli.data", "s2rm_data.cli.train", "s2rm_data.cli.eval"])
def test_help_imports_nothing_heavy(module: str) -> None:
    heavy = ("numpy", "numba", "torch", "zarr", "matplotlib", "scipy")
    code = f"import sys, {module}; sys.exit(any(m in sys.modules for m in {heavy}))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_help_of_every_world_imports_nothing_heavy() -> None:
    code = (
        "import sys; from click.testing import CliRunner; from s2rm_data.cli.data import data\n"
        "from s2rm_data.registry import WORLDS\n"
        "assert all(CliRunner().invoke(data, [name, '--help']).exit_code == 0 for name in WORLDS.names())\n"
        "sys.exit(any(m in sys.modules for m in ('numpy', 'numba', 'torch', 'zarr')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
