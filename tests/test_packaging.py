"""What the package says of itself agrees with itself."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import yaml

import s2rm_data

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_install_page_lists_every_extra() -> None:
    page = (ROOT / "docs" / "install.md").read_text()
    for extra in PROJECT["optional-dependencies"]:
        assert f"`{extra}`" in page, extra


def test_the_tests_install_every_extra_but_that_of_the_site() -> None:
    named = ",".join(re.findall(r"s2rm-data\[([^]]+)\]", " ".join(PROJECT["optional-dependencies"]["test"])))
    assert {*named.split(","), "docs", "test"} == set(PROJECT["optional-dependencies"])


def test_the_citation_is_of_this_package() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert (citation["version"], citation["license"]) == (s2rm_data.__version__, PROJECT["license"])
    assert citation["authors"] == [{"name": author["name"]} for author in PROJECT["authors"]]


def test_the_versions_of_python_are_those_that_the_workflow_tests() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text())
    tested = workflow["jobs"]["full"]["strategy"]["matrix"]["python"]
    named = [c.rpartition(" ")[2] for c in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", c)]
    assert named == tested
    assert PROJECT["requires-python"] == f">={tested[0]}"
