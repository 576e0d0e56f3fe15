"""The pages tell the truth: every code block of README.md, CONTRIBUTING.md and docs/ runs, every link leads somewhere.

A page is one test. Its blocks run in order, in a folder that holds `data.zarr` (both worlds, small) and a short run in
`runs/`; the Python blocks of a page share their names. Comments in the Markdown, unseen by readers, direct it:

    <!-- folder: empty -->                        the page makes its own data and starts in an empty folder
    <!-- small: s2rm-train | --preset smoke -->   add options to the lines of the next block that begin so
    <!-- bucket: mine -->                         there is an S3 server with this bucket, to which the environment leads
    <!-- skip: pip -->                            do not run the next block, for one of the reasons in NEEDS
    <!-- needs: torchrl>=0.13 -->                 run the next block where that library is, which may warn as it likes
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import sys
import tomllib
import warnings
from pathlib import Path
from typing import Any

import pytest
from buckets import ENVIRONMENT, make_bucket
from docs_pages import EMPTY_FOLDER, PAGES, ROOT, Block, anchors_of, blocks_of, links_of, programs
from patience import complete

import s2rm_data

NEEDS = ("GPU", "StarCraft II", "browser", "cluster", "network", "pip", "pygame")  # what a test may not have
MATERIAL = """
s2rm-data bballs --balls 3,6 --train 24 --val 6 --test 4 --quiet
s2rm-data sc2 --scenario 3s5z --train 6 --val 3 --quiet
"""
RUN = "s2rm-train --store data.zarr --task bballs --preset smoke --steps 2 --out runs/s2gru --quiet"
STATED_SHAPE = re.compile(r"#\s*(\(\d+,(?: \d+,?)*\))")

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="shell blocks need bash")


class Shell:
    """Runs scripts as a user does who has the package installed."""

    def __init__(self, folder: Path) -> None:
        scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
        folder.mkdir()
        programs(folder, scripts, sys.executable)
        self._environment = {
            **{name: value for name, value in os.environ.items() if name != "SC2PATH"},
            "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(Path(s2rm_data.__file__).parents[1]),
            "OMP_NUM_THREADS": "1",  # tests share the cores; models this small gain nothing from a second thread
        }

    def run(self, script: str, cwd: Path, where: str, extra: dict[str, str] | None = None) -> None:
        report = f"trap 'echo \"failed: {where.split(':')[0]}:$LINENO\" >&2' ERR; "
        environment = {**self._environment, **(extra or {})}
        words = ["bash", "-euo", "pipefail", "-c", report + script]
        done = complete(words, cpu_seconds=600, cwd=cwd, env=environment, text=True)
        said = f"{done.stdout[-1000:]}\n{done.stderr[-3000:]}"
        assert done.returncode == 0, f"the block at {where} ended with exit status {done.returncode}\n{said}"


@pytest.fixture(scope="session")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    return Shell(tmp_path_factory.mktemp("programs") / "bin")


@pytest.fixture(scope="session")
def material(tmp_path_factory: pytest.TempPathFactory, shell: Shell) -> Path:
    """A folder with a small store of both worlds."""
    folder = tmp_path_factory.mktemp("material")
    shell.run(MATERIAL, folder, "material:1")
    return folder


@pytest.fixture(scope="session")
def runs(material: Path, shell: Shell) -> Path:
    """The folder `runs` with a short run on the store."""
    shell.run(RUN, material, "runs:1")
    return material / "runs"


@pytest.fixture
def folder(page: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Where the page's blocks run."""
    text = page.read_text()
    if EMPTY_FOLDER not in text:
        shutil.copytree(request.getfixturevalue("material") / "data.zarr", tmp_path / "data.zarr")
        if any("--run runs" in block.code for block in running(page)):
            shutil.copytree(request.getfixturevalue("runs"), tmp_path / "runs")
    return tmp_path


@pytest.fixture
def bucket_environment(page: Path, request: pytest.FixtureRequest) -> dict[str, str]:
    """What leads to the bucket that a page asks for."""
    asked = re.search(r"^<!-- bucket: (\S+) -->$", page.read_text(), re.MULTILINE)
    if not asked:
        return {}
    address: str = request.getfixturevalue("s3_address")
    make_bucket(address, asked[1])
    return {**ENVIRONMENT, "AWS_ENDPOINT_URL": address}


def run_python(block: Block, names: dict[str, Any]) -> None:
    """Statement by statement; a comment that begins with a shape, such as `# (3, 4) float32`, must be true."""
    for statement in ast.parse(block.padded, str(block.page)).body:
        if isinstance(statement, ast.Expr):
            value = eval(compile(ast.Expression(statement.value), str(block.page), "eval"), names)
            stated = STATED_SHAPE.search(block.padded.split("\n")[(statement.end_lineno or 0) - 1])
            if stated:
                here = f"{block.page.relative_to(ROOT)}:{statement.lineno}"
                assert tuple(getattr(value, "shape", value)) == ast.literal_eval(stated[1]), here
        else:
            exec(compile(ast.Module([statement], []), str(block.page), "exec"), names)


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def running(page: Path) -> list[Block]:
    runs = ("python", "sh")
    return [block for block in blocks_of(page) if not (block.skip or block.missing) and block.language in runs]


# What takes more than ten seconds of the processor's time and is not read first; each command on it has its own tests.
DEAR = ("docs/evaluation.md", "docs/data_format.md", "docs/environments.md", "docs/publishing.md", "docs/cloud.md")


@pytest.mark.costs(30)
@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.whole] * (name_of(page) in DEAR)) for page in PAGES if running(page)],
    ids=name_of,
)
def test_every_block_of_the_page_runs(
    page: Path, folder: Path, shell: Shell, bucket_environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in running(page):
        if block.language == "sh":
            shell.run(block.script, folder, block.where, bucket_environment)
            continue
        try:
            with warnings.catch_warnings():
                if block.needs:
                    warnings.simplefilter("ignore")
                run_python(block, names)
        except Exception as error:
            raise AssertionError(f"the block at {block.where} failed: {error!r}") from error


def test_a_skipped_block_needs_what_a_test_may_not_have() -> None:
    for block in (block for page in PAGES for block in blocks_of(page)):
        assert not block.skip or any(need in block.skip for need in NEEDS), f"{block.where}: {block.skip}"


def test_the_page_on_python_lists_every_public_name() -> None:
    listed = set(re.findall(r"`s2\.(\w+)`", (ROOT / "docs" / "api.md").read_text()))
    assert listed == {name for name in s2rm_data.__all__ if hasattr(s2rm_data, name)}


def test_every_link_leads_somewhere() -> None:
    for page in PAGES:
        for link in links_of(page):
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            assert target.exists(), f"{name_of(page)}: {link}"
            assert not anchor or anchor in anchors_of(target), f"{name_of(page)}: no heading {link}"


def test_prose_is_wrapped() -> None:
    """At 120 columns; a row of a table cannot be wrapped."""
    for page in PAGES:
        for number, line in enumerate(page.read_text().split("\n"), 1):
            assert len(line) <= 120 or line.startswith("|"), f"{name_of(page)}:{number}"
