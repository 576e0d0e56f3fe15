"""What the package says of itself agrees with itself."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
import tomllib
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
import yaml

import s2rm_data
from s2rm_data.training.config import parse_assignments

ROOT = Path(__file__).parents[1]
SPEC: Any = spec_from_file_location("release", ROOT / "tools" / "release.py")
release = module_from_spec(SPEC)
SPEC.loader.exec_module(release)
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
    tested = workflow["jobs"]["data"]["strategy"]["matrix"]["python"]
    named = [c.rpartition(" ")[2] for c in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", c)]
    assert named == tested
    assert PROJECT["requires-python"] == f">={tested[0]}"


MAY_WRITE = {
    ("release", "publish"): {"contents": "write", "id-token": "write"},
    ("pages", "deploy"): {"pages": "write", "id-token": "write"},
}


def test_a_release_is_refused_until_tag_version_notes_and_addresses_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    version = s2rm_data.__version__
    assert release.notes(version) and len(release.addresses()) == 1
    filled = f"README.md still has {release.PLACEHOLDER}" not in release.problems(f"v{version}")
    assert [p for p in release.problems(f"v{version}") if "still has" not in p] == []
    assert not filled or release.problems(f"v{version}") == []
    assert "the tag is v9.9" in release.problems("v9.9")[0] and release.notes("9.9") == ""
    monkeypatch.setattr(release, "PLACEHOLDER", "no such address")
    assert release.problems(f"v{version}") == []


def test_what_is_built_and_run_elsewhere_is_named_by_digest() -> None:
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        for line in path.read_text().splitlines():
            if "uses:" in line:
                assert re.search(r"uses: [\w-]+/[\w-]+@[0-9a-f]{40}  # v\d", line), (path.name, line)
        workflow = yaml.safe_load(path.read_text())
        assert workflow["permissions"] == {}
        for name, job in workflow["jobs"].items():
            assert job["permissions"] == MAY_WRITE.get((path.stem, name), {"contents": "read"}), (path.name, name)
    recipe = (ROOT / "Dockerfile").read_text()
    assert re.search(r"^ARG BASE=python@sha256:[0-9a-f]{64}$", recipe, re.MULTILINE)
    assert not re.search(r"chmod[^\n]*(a|o)\+\w*w", recipe)
    for installed in re.findall(r"pip (?:install|wheel) [^&\n]*", recipe):
        assert "--require-hashes" in installed or "--no-deps" in installed, installed


def test_the_image_is_given_all_that_its_wheel_is_made_of() -> None:
    targets = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    taken = {name.split("/")[0] for name in (*targets["packages"], *targets["force-include"])}
    shown = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = " ".join(re.findall(r"^COPY (?!--from)(.*) \S+$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)).split()
    assert taken <= set(copied)
    assert {name.split("/")[0] for name in copied} <= shown


def test_the_packages_of_the_image_are_those_of_the_constraints_and_have_digests() -> None:
    versions = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().split())
    extras = PROJECT["optional-dependencies"]
    wanted = {"build": ["hatchling"], "data": PROJECT["dependencies"]}
    wanted["train"] = [*wanted["data"], *extras["train"], *extras["export"], *extras["publish"]]
    for name, needed in wanted.items():
        entries = re.split(r"\n(?=\S)", (ROOT / "requirements" / f"{name}.txt").read_text().strip())
        assert all(re.match(r"\S+==\S+ (;.* )?\\\n    --hash=sha256:[0-9a-f]{64}\b", entry) for entry in entries), name
        pinned = dict(entry.split()[0].split("==") for entry in entries)
        assert {re.split(r"[^\w-]", word)[0] for word in needed} <= pinned.keys(), name
        unlike = {
            one: (version, versions[one]) for one, version in pinned.items() if versions.get(one, version) != version
        }
        assert not unlike, (name, unlike)


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
def test_the_demo_s_commands_reach_the_shell_whole() -> None:
    done = subprocess.run(["make", "-n", "demo"], cwd=ROOT, capture_output=True, text=True, check=True)
    trained = [line.partition("&& ")[2] for line in done.stdout.splitlines() if "/s2rm-train " in line]
    assert len(trained) == 2
    for line in trained:
        words = line.partition("s2rm-train ")[2].partition(" && ")[0].split()
        fields = parse_assignments(tuple(v for flag, v in itertools.pairwise(words) if flag == "--set"))
        assert words[-2] == "--out" and fields.get("image_size", [8, 24]) == [8, 24], line
