"""Is this commit what a tag says? Prints the notes of its version, for the release.

    python tools/release.py v0.3.0

The version stands in s2rm_data/__init__.py, CITATION.cff and CHANGELOG.md, and the addresses of the project, which
begin with PLACEHOLDER until there are any, are filled in.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PLACEHOLDER = "https://example.org/s2rm-data"
WITH_ADDRESSES = ("README.md", "pyproject.toml", "CITATION.cff", "docs/tutorial.md")


def notes(version: str) -> str:
    """What the changelog says of a version."""
    text = (ROOT / "CHANGELOG.md").read_text()
    found = re.search(rf"^## {re.escape(version)}\b[^\n]*\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return found[1].strip() if found else ""


def problems(tag: str) -> list[str]:
    version = re.findall(r'__version__ = "(.+)"', (ROOT / "s2rm_data" / "__init__.py").read_text())[0]
    found = [] if tag == f"v{version}" else [f"the tag is {tag}, the version {version}"]
    if f"\nversion: {version}\n" not in (ROOT / "CITATION.cff").read_text():
        found.append(f"CITATION.cff is not of version {version}")
    if not notes(version):
        found.append(f"CHANGELOG.md has no notes of {version}")
    return found + [
        f"{name} still has {PLACEHOLDER}" for name in WITH_ADDRESSES if PLACEHOLDER in (ROOT / name).read_text()
    ]


def addresses() -> set[str]:
    """Of the repository, wherever one stands; one, if all were filled in alike."""
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
    cited = re.findall(r"repository-code: (\S+)", (ROOT / "CITATION.cff").read_text())
    cloned = re.findall(r"git clone (\S+)", (ROOT / "README.md").read_text())
    return {urls["Repository"], *cited, *cloned}


if __name__ == "__main__":
    wrong = problems(sys.argv[1])
    if wrong:
        sys.exit("\n".join(wrong))
    sys.stdout.write(notes(sys.argv[1].removeprefix("v")) + "\n")
