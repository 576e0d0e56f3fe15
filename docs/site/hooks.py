"""How the pages of the repository become a site: pages from outside docs/, notebooks, links between them, versions.

A page links to files as the repository has them, so that it also reads well there. Here, links to other pages are made
to fit the site, and what the site does not have (source files) stays as text.

Every version has a folder of its own in the site, as the tool `mike` lays them out; the theme's selector reads their
names from versions.json. `latest` leads to the newest.
"""

from __future__ import annotations

import html
import json
import posixpath
import re
import shutil
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert as mathml
from markdown import Extension, Markdown
from markdown.preprocessors import Preprocessor
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
LATEST = "latest"
OUTSIDE = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
LISTS = {
    "decisions": "# Decisions\n\nWhy some things are as they are.",
    "howto": "# How to",
    "notebooks": "# Notebooks\n\nThey run as they are, on two cores in some minutes, and in Colab after `pip install`.",
}
# What people ask for comes first in the search, how it came about last.
SOUGHT = {"index.md": 3, "install.md": 3, "tutorial.md": 4, "training.md": 4, "commands.md": 3, "changelog.md": 0.2}
CSS = """
.md-typeset pre.log { overflow-x: auto; overflow-wrap: anywhere; white-space: pre-wrap; font-size: .68rem; opacity: .8 }
.md-typeset .output, .md-typeset .equation { overflow-x: auto; overflow-y: hidden }
.md-typeset mtd:nth-child(odd) { text-align: right }
.md-typeset mtd:nth-child(even) { text-align: left }
.md-typeset math { font-family: "STIX Two Math", "Cambria Math", "Latin Modern Math", math; font-size: 1.1em }
.md-typeset img { height: auto }
"""
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
_MATH = re.compile(r"^```math\n(.*?)\n```$", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"(```.*?```|`[^`\n]*`)", re.DOTALL)


def on_startup(**_: Any) -> None:
    """A copy of the package with an __init__.py in every folder: mkdocstrings finds nothing below one without."""
    copy = ROOT / "build" / "source" / "s2rm_data"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(ROOT / "s2rm_data", copy, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in (path for path in copy.rglob("*") if path.is_dir()):
        (folder / "__init__.py").touch()


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    found = re.search(r'__version__ = "(.+)"', (ROOT / "s2rm_data" / "__init__.py").read_text())
    assert found
    version = found[1]
    config.markdown_extensions.append(Examples())
    config.site_name = f"s2rm-data {version}"
    config.site_dir = str(Path(config.site_dir) / version)  # builds of other versions stay
    config.extra["version"] = {"provider": "mike", "default": LATEST}
    _check_nav(config)
    return config


def on_post_build(config: MkDocsConfig) -> None:
    """The list of versions, newest first, and pages that lead to those of the newest."""
    site = Path(config.site_dir).parent
    versions = sorted((p.parent.name for p in site.glob("[0-9]*/index.html")), key=_version_key, reverse=True)
    newest = site / versions[0]
    entries = [{"version": v, "title": v, "aliases": [LATEST] if v == newest.name else []} for v in versions]
    (site / "versions.json").write_text(json.dumps(entries))
    shutil.rmtree(site / LATEST, ignore_errors=True)
    for page in newest.rglob("*.html"):
        path = page.relative_to(newest)
        _write_redirect(site / LATEST / path, "../" * len(path.parts) + f"{newest.name}/{path.as_posix()}")
    _write_redirect(site / "index.html", f"{LATEST}/index.html")


def _version_key(name: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", name)]


def _write_redirect(path: Path, target: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    script = f"location.replace({json.dumps(target)} + location.search + location.hash)"
    path.write_text(
        f'<!doctype html><meta charset="utf-8"><title>s2rm-data</title><script>{script}</script>'
        f'<meta http-equiv="refresh" content="1; url={target}"><a href="{target}">{target}</a>\n'
    )


def _check_nav(config: MkDocsConfig) -> None:
    """Pages that mkdocs.yml does not name yet stand under 'How to'; notebooks have a place of their own."""
    listed = json.dumps(config.nav)
    new = [p.name for p in sorted((ROOT / "docs").glob("*.md")) if f'"{p.name}"' not in listed]
    how_to = next(entry["How to"] for entry in config.nav or [] if "How to" in entry)
    how_to += [{_title(ROOT / "docs" / name): name} for name in new]
    notebooks = [
        {n.stem.capitalize(): f"notebooks/{n.stem}.md"} for n in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
    ]
    if notebooks:
        config.nav.insert(3, {"Notebooks": notebooks})  # after the tutorial


def _title(page: Path) -> str:
    return next(line for line in page.read_text().split("\n") if line.startswith("# ")).removeprefix("# ")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for source, target in OUTSIDE.items():
        files.append(File.generated(config, target, content=(ROOT / source).read_text()))
    for notebook in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        text = notebook_markdown(json.loads(notebook.read_text()))
        files.append(File.generated(config, f"notebooks/{notebook.stem}.md", content=text))
    for folder, head in LISTS.items():
        pages = {p.stem: _title(p) for p in sorted((ROOT / "docs" / folder).glob("*.md"))}
        pages |= {p.stem: p.stem.capitalize() for p in sorted((ROOT / "docs" / folder).glob("*.ipynb"))}
        listed = "\n".join(f"- [{title}]({name}.md)" for name, title in pages.items())
        files.append(File.generated(config, f"{folder}/index.md", content=f"{head}\n\n{listed}\n"))
    for example in sorted((ROOT / "examples").glob("*.py")):
        text = f"# examples/{example.name}\n\n````python\n{example.read_text()}````\n"
        files.append(File.generated(config, f"examples/{example.stem}.md", content=text))
    files.append(File.generated(config, "site.css", content=CSS))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Equations as MathML, links outside code, and how much a page counts in a search."""
    here = page.file.src_uri
    page.meta["search"] = {"boost": SOUGHT.get(here, 0.3 if here.startswith(("decisions/", "fidelity")) else 1)}
    markdown = _MATH.sub(lambda match: f"<div class=equation>{mathml(match[1], display='block')}</div>", markdown)
    parts = _CODE.split(markdown)
    parts[::2] = [_LINK.sub(lambda match: _relinked(match, here, files), part) for part in parts[::2]]
    return "".join(parts)


def _relinked(match: re.Match[str], here: str, files: Files) -> str:
    mark, text, link = match.groups()
    if "://" in link or link.startswith(("#", "mailto:", "data:")):
        return match[0]
    path, hash_, anchor = link.partition("#")
    own = next((source for source, target in OUTSIDE.items() if target == here), f"docs/{here}")
    target = posixpath.normpath(posixpath.join(posixpath.dirname(own), path))
    target = OUTSIDE.get(target, target.removeprefix("docs/"))
    target = re.sub(r"^(notebooks/\w+)\.ipynb$|^(examples/\w+)\.py$", lambda m: f"{m[1] or m[2]}.md", target)
    target = f"{target}/index.md" if (ROOT / "docs" / target).is_dir() else target
    if files.get_file_from_path(target) is None:
        return text
    return f"{mark}[{text}]({posixpath.relpath(target, posixpath.dirname(here) or '.')}{hash_}{anchor})"


class Examples(Extension):
    """Examples in docstrings, which begin with >>>, as code."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802 - the library's name
        md.preprocessors.register(_ExampleLines(md), "examples", 100)  # before fences are read


class _ExampleLines(Preprocessor):
    def run(self, lines: list[str]) -> list[str]:
        made: list[str] = []
        inside = False
        for line in [*lines, ""]:
            begins = line.startswith(">>> ")
            if begins and not inside:
                made += ["", "```python"]
            if inside and not line.strip():
                made += ["```", ""]
            inside = begins or (inside and bool(line.strip()))
            made.append(line.removeprefix(">>> ").removesuffix("  # doctest: +SKIP") if inside else line)
        return made[: len(made) - 1] if made and not made[-1] else made


# -- notebooks


def notebook_markdown(notebook: dict[str, Any]) -> str:
    """Text, code and outputs of a notebook; pictures stay inside the page."""
    return "\n\n".join(_cell(cell) for cell in notebook["cells"])


def _cell(cell: dict[str, Any]) -> str:
    source = "".join(cell["source"])
    if cell["cell_type"] != "code":
        return source
    return "\n\n".join([f"```python\n{source}\n```", *filter(None, map(_output, cell["outputs"]))])


def _output(output: dict[str, Any]) -> str:
    data = output.get("data", {})
    for kind in ("image/png", "image/gif"):
        if kind in data:
            return f'<img alt="Output of the cell above" src="data:{kind};base64,{"".join(data[kind]).strip()}">'
    if "text/html" in data:
        return '<div class="output">' + "".join(data["text/html"]).replace("\n", " ") + "</div>"
    text = "".join(output.get("text", data.get("text/plain", "")))
    return f'<pre class="log">{html.escape(text)}</pre>' if text.strip() else ""
