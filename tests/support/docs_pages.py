"""Markdown pages taken apart: code blocks with what directs them, headings and links."""

from __future__ import annotations

import importlib.metadata
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

import forking
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
EMPTY_FOLDER = "<!-- folder: empty -->"
LANGUAGES = ("python", "sh", "text", "math")

_FENCE = re.compile(r"^```(\S*)$")
_MARK = re.compile(r"^<!-- (skip|small|needs): (.+) -->$")
_LINK = re.compile(r"\]\(([^)\s]+)\)")


@dataclass(frozen=True, kw_only=True)
class Block:
    """`line` is that of the first line of code; `small` holds (how a line begins, options to add to it), `needs` a
    library, as pip would be asked for it.
    """

    page: Path
    line: int
    language: str
    code: str
    skip: str = ""
    small: tuple[tuple[str, str], ...] = ()
    needs: str = ""

    @property
    def missing(self) -> bool:
        """Whether it needs a library that is not here."""
        try:
            asked = Requirement(self.needs) if self.needs else None
            return asked is not None and importlib.metadata.version(asked.name) not in asked.specifier
        except importlib.metadata.PackageNotFoundError:
            return True

    @property
    def where(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def padded(self) -> str:
        """The code at its own line numbers, so that messages about a line are about a line of the page."""
        return "\n" * (self.line - 1) + self.code

    @property
    def script(self) -> str:
        """A shell block, padded, with its small sizes in place."""
        return "\n".join(self._reduced(line) for line in self.padded.split("\n"))

    def _reduced(self, line: str) -> str:
        command = re.split(r"(?:^|\s)#", line, maxsplit=1)[0].rstrip()  # without the comment
        return " ".join([command, *(options for begin, options in self.small if command.startswith(begin))])


def blocks_of(page: Path) -> list[Block]:
    """Fenced blocks in order. A mark concerns the next block; blocks without a language are an error."""
    found, marks, lines = [], [], page.read_text().split("\n")
    number = 0
    while number < len(lines):
        mark, fence = _MARK.match(lines[number]), _FENCE.match(lines[number])
        number += 1
        if mark:
            marks.append(mark.groups())
        elif fence:
            end = lines.index("```", number)
            found.append(_block(page, number + 1, fence[1], "\n".join(lines[number:end]), marks))
            marks, number = [], end + 1
    assert not marks, f"{page.name}: {marks} stand before no block"
    return found


def _block(page: Path, line: int, language: str, code: str, marks: list[tuple[str, ...]]) -> Block:
    assert language in LANGUAGES, f"{page.name}:{line}: a block in {language!r}; blocks are in {LANGUAGES}"
    small = tuple(tuple(part.strip() for part in text.split("|", 1)) for kind, text in marks if kind == "small")
    for begin, _ in small:
        assert any(row.startswith(begin) for row in code.split("\n")), f"{page.name}:{line}: no line begins {begin!r}"
    once = {kind: text for kind, text in marks if kind != "small"}
    return Block(page=page, line=line, language=language, code=code, small=small, **once)  # type: ignore[arg-type]


def links_of(page: Path) -> list[str]:
    """Links to files of the repository and to headings, outside code."""
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL)
    return [link for link in _LINK.findall(prose) if "://" not in link]


def anchors_of(page: Path) -> set[str]:
    """Headings as the names that links use: small letters, words joined by hyphens, no punctuation."""
    prose = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", prose, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def programs(folder: Path, scripts: dict[str, str], python: str) -> None:
    """Write the package's commands into `folder`, as an installation does, and `python` beside them."""
    for name, target in scripts.items():
        module, function = target.split(":")
        code = f"import sys; sys.argv[0] = {name!r}; from {module} import {function}; sys.exit({function}())"
        words = forking.command(name) if name in forking.MAINS else [python, "-c", code]
        _program(folder / name, f'exec {shlex.join(words)} "$@"')
    _program(folder / "python", f'exec {shlex.quote(python)} "$@"')


def _program(path: Path, line: str) -> None:
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)
