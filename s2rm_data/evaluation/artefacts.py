"""Everything an evaluation leaves in its folder.

results.json            every number, of every run
tables/*.csv            one line per cell: mean over seeds, interval, the paper's number
tables.md               the tables as Markdown, to be pasted into a page or an issue
figures/*.png, *.svg    one file per figure
rollouts/*.gif          truth above each model
report.html             all of it on one page that needs nothing else
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from s2rm_data.errors import ConflictError, DiskError
from s2rm_data.evaluation.enclaves import enclave_section
from s2rm_data.evaluation.entrants import entries_of, first_of_each
from s2rm_data.evaluation.evaluate import Evaluation
from s2rm_data.evaluation.learning_curves import learning_curve_section
from s2rm_data.evaluation.report import Page, Section, page
from s2rm_data.files import disk_errors, make_folder, remove, write_whole

_COMPLETE = ("results.json", "report.html")  # removed first and written last
_PARTS = ("tables", "tables.md", "figures", "rollouts")


@dataclass(frozen=True, kw_only=True)
class Written:
    report: Path
    files: list[Path]


def check_folder(folder: Path, *, overwrite: bool) -> None:
    """Before hours of work: can the results be written, and is nothing in the way?"""
    if folder.exists() and not folder.is_dir():
        raise ConflictError(f"{folder} is a file; give --out another name")
    if (folder / "results.json").exists() and not overwrite:
        raise ConflictError(f"{folder} holds the results of another evaluation; add --overwrite, or give another --out")
    ours = (*_COMPLETE, *_PARTS, "results.json.partial")
    foreign = [p.name for p in folder.iterdir() if p.name not in ours] if folder.exists() else []
    if foreign and not (folder / "results.json").exists():
        raise ConflictError(f"{folder} holds other files ({foreign[0]}, ...); give --out another name")
    probe = folder / "results.json.partial"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise DiskError(f"cannot write to {folder}: {error.strerror or error}; choose another --out") from None


def write_artefacts(made: Evaluation, folder: Path) -> Written:
    """Replace an earlier evaluation in the folder; results of two are never mixed."""
    make_folder(folder)
    with disk_errors(folder):
        for name in (*_COMPLETE, *_PARTS):
            remove(folder / name)
        (folder / "tables").mkdir()
    files: list[Path] = []
    for table in made.tables.values():
        files.append(folder / "tables" / f"{table.name}.csv")
        write_whole(files[-1], [_text_bytes(table.to_csv())])
    files.append(folder / "tables.md")
    write_whole(files[-1], [_text_bytes("\n".join(table.to_markdown() for table in made.tables.values()))])
    sections = _sections(made, folder, files)
    notes = [note for name in made.worlds if (note := made.evaluation_of(name).paper_note)]
    package, store = made.results["package"], made.results["store"]
    report, results = folder / "report.html", folder / "results.json"
    write_whole(report, [_text_bytes(page(made.runs, sections, package=package, store=store, notes=notes))])
    # Last: its existence means that the evaluation is complete.
    write_whole(results, [(json.dumps(made.results, indent=1) + "\n").encode()])
    return Written(report=report, files=[report, results, *files])


def _text_bytes(text: str) -> bytes:
    """In UTF-8; names of files, which can be any bytes, are shown as they would be in a message."""
    return text.encode(errors="backslashreplace")


def _sections(made: Evaluation, folder: Path, files: list[Path]) -> list[Section]:
    def page_of(world: str) -> Page:
        runs = made.runs_of(world)
        return Page(folder=folder, store=made.store, entries=entries_of(runs), drawn=first_of_each(runs), files=files)

    sections = []
    for name, results in made.worlds.items():
        world, own = made.evaluation_of(name), page_of(name)
        sections += world.sections(results, made.world_tables[name], own)
        if curves := learning_curve_section(own.entries, world.learning, name, own):
            sections.append(curves)
    if made.enclaves:
        worlds = {name: made.evaluation_of(name) for name in made.worlds}
        everything = page_of(next(iter(worlds)))
        sections.append(enclave_section(made.enclaves, made.runs, worlds, made.tables["enclaves"], everything))
    return sections
