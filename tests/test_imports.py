"""What a file may import is read from its path: checked on the source. No list here names a file."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import s2rm_data
from s2rm_data.core.registry import WORLDS

PACKAGE = Path(s2rm_data.__file__).parent
# A stage, and what its files may import beside each other. `generators/W/STAGE` may import what STAGE may.
SEES = {"core": set[str]()}
SEES["starcraft"] = SEES["store"] = {"core"}
SEES["envs"] = {"core", "starcraft"}
SEES["making"] = {"core", "store"}
SEES["inspection"] = {"core", "store", "making"}
SEES["learning"] = {"core", "store", "making"}
SEES["models"] = SEES["learning"] | {"learning"}
SEES["training"] = SEES["models"] | {"models"}
SEES["evaluation"] = SEES["training"] | {"training", "inspection"}
SEES["display"] = SEES["training"] | {"training"}
SEES["api"] = SEES["evaluation"] | {"evaluation", "starcraft", "envs", "display"}
SEES["cli"] = SEES["extend"] = SEES["api"] | {"api"}
WORLD_FOLDERS = {"making", "learning", "evaluation", "inspection"}
TORCH = {"learning", "models", "training", "evaluation", "api", "cli"}
FORBIDDEN = {  # external package -> the only stages that may import it
    "zarr": {"store"},
    "click": {"cli"},
    "rich": {"cli", "display"},
}
NAMES_A_WORLD = {"api", "cli/sc2_server.py"}  # the front door's own names, and a command


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


def problems(where: Path, path: Path) -> Iterator[str]:
    """What a file may not import; `where` is its path in the package, from which alone this is judged."""
    parts = where.with_suffix("").parts
    world = parts[1] if parts[0] == "generators" and len(parts) > 2 else ""
    door = bool(world) and len(parts) == 3 and parts[2] in ("__init__", "world")  # imports the rest when it is asked
    stage = ("evaluation" if door else parts[2]) if world else parts[0]
    if stage.startswith("__"):
        return  # the package's own front page and `python -m`
    if world and not door and stage not in WORLD_FOLDERS:
        yield f"{where} lies in no stage's folder; a world has {', '.join(sorted(WORLD_FOLDERS))}"
        return
    for imported in imports_of(path):
        name = ".".join(imported)
        if imported[0] == "torch" and (stage not in TORCH or door):
            yield f"{where} must not import {name}"
        if stage not in FORBIDDEN.get(imported[0], {stage}):
            yield f"{where} must not import {name}"
        if imported[0] != "s2rm_data" or len(imported) == 1 or imported[1].startswith("__"):
            continue
        if imported[1] == "generators" and len(imported) > 3:
            there = imported[3]
            inside = bool(world) and imported[2] == world
            if not inside or not (there in {stage, "world"} or there in SEES[stage]):
                yield f"{where} must not import {name}"
        elif imported[1] not in {stage, *SEES[stage], *({"starcraft"} if world else ())} and imported[1:2] != (
            "generators",
        ):
            yield f"{where} must not import {name}"


FILES = sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))


def test_imports_point_down() -> None:
    found = [problem for where in FILES for problem in problems(where, PACKAGE / where)]
    assert not found, "\n".join(found)


def test_every_part_of_the_package_is_a_stage() -> None:
    parts = {where.with_suffix("").parts[0] for where in FILES}
    assert {part for part in parts if not part.startswith("__")} <= {*SEES, "generators"}


@pytest.mark.parametrize(
    ("where", "text", "right"),
    [
        ("generators/bballs/learning/augment.py", "import torch", True),
        ("generators/bballs/making/augment.py", "import torch", False),
        ("generators/bballs/making/augment.py", "import s2rm_data.generators.bballs.learning.ball_crops", False),
        ("generators/bballs/learning/augment.py", "from s2rm_data.generators.sc2.world import WORLD", False),
        ("generators/bballs/augment.py", "import os", False),
        ("starcraft/augment.py", "from s2rm_data.store import Store", False),
        ("store/augment.py", "from s2rm_data.making import generate", False),
        ("inspection/augment.py", "from s2rm_data.learning.batch import Batch", False),
        ("evaluation/augment.py", "from s2rm_data.inspection.scene import Scene", True),
        ("training/augment.py", "import click", False),
    ],
)
def test_a_new_file_is_judged_by_where_it_lies(where: str, text: str, right: bool, tmp_path: Path) -> None:
    file = tmp_path / "augment.py"
    file.write_text(text)
    assert (not list(problems(Path(where), file))) == right


def test_no_stage_imports_or_names_a_world() -> None:
    worlds = set(WORLDS.names())
    for where in FILES:
        stage = where.with_suffix("").parts[0]
        if stage in {"generators", "starcraft", "__init__"} | NAMES_A_WORLD or where.as_posix() in NAMES_A_WORLD:
            continue
        for imported in imports_of(PACKAGE / where):
            assert imported[:2] != ("s2rm_data", "generators"), f"{where} imports {'.'.join(imported)}"
        for node in ast.walk(ast.parse((PACKAGE / where).read_text())):
            assert not (isinstance(node, ast.Constant) and node.value in worlds), f"{where}:{node.lineno} names a world"


LIGHT = {
    "making data needs no PyTorch": (
        ("s2rm_data.making", "s2rm_data.generators.bballs", "s2rm_data.generators.sc2", "s2rm_data.starcraft.battle"),
        ("torch", "zarr"),
    ),
    "to show help imports nothing heavy": (
        (
            "s2rm_data",
            "s2rm_data.envs",
            "s2rm_data.extend",
            "s2rm_data.cli.data",
            "s2rm_data.cli.train",
            "s2rm_data.cli.eval",
        ),
        ("numpy", "numba", "torch", "zarr", "matplotlib", "scipy"),
    ),
}


@pytest.mark.parametrize("claim", LIGHT)
def test_what_imports_stay_light(claim: str) -> None:
    modules, heavy = LIGHT[claim]
    for module in modules:
        code = f"import sys, {module}; sys.exit(any(m in sys.modules for m in {heavy}))"
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0, module


def test_the_help_of_every_world_imports_nothing_heavy() -> None:
    code = (
        "import sys; from click.testing import CliRunner; from s2rm_data.cli.data import data\n"
        "from s2rm_data.core.registry import WORLDS\n"
        "assert all(CliRunner().invoke(data, [name, '--help']).exit_code == 0 for name in WORLDS.names())\n"
        "sys.exit(any(m in sys.modules for m in ('numpy', 'numba', 'torch', 'zarr')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
