"""The report: one page of HTML with everything in it, no script, no network, images inlined."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from s2rm_data.core.optional import needed
from s2rm_data.core.paint import save_figure, save_gif
from s2rm_data.core.write import make_folder
from s2rm_data.evaluation.candidates import Entry
from s2rm_data.evaluation.runs import Run
from s2rm_data.evaluation.tables import Row, Table
from s2rm_data.store import Store

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from PIL.Image import Image

PAPER = (
    "Rahaman, N., Goyal, A., Gondal, M. W., Wuthrich, M., Bauer, S., Sharma, Y., Bengio, Y., Schoelkopf, B.: "
    "S2RMs: Spatially Structured Recurrent Modules. arXiv:2007.06533, 2020"
)


@dataclass(kw_only=True)
class Section:
    """`folded`: its tables open on a click, and do not count for the verdict at the top. `lead`: of its figures the
    one, truth beside prediction, that stands above all."""

    title: str
    text: str = ""
    figures: list[tuple[Path, str]] = field(default_factory=list)  # (file, caption)
    tables: list[Table] = field(default_factory=list)
    folded: bool = False
    lead: tuple[Path, str] | None = None


@dataclass(frozen=True, kw_only=True)
class Page:
    """Where a world's sections are drawn: `entries` are its models, `drawn` one run of each with its title."""

    folder: Path
    store: Store
    entries: Sequence[Entry]
    drawn: Mapping[str, str]

    def add_figure(self, section: Section, name: str, figure: Figure, caption: str = "") -> None:
        """To figures/, as PNG, SVG and PDF, and to the section."""
        path = save_figure(figure, self.folder / "figures" / name, ("png", "svg", "pdf"))[0]
        section.figures.append((path, caption))

    def add_animation(
        self, section: Section, name: str, images: Iterable[Image], milliseconds: int, caption: str = ""
    ) -> None:
        """To rollouts/, as GIF, and to the section."""
        make_folder(self.folder / "rollouts")
        section.figures.append((save_gif(images, self.folder / "rollouts" / f"{name}.gif", milliseconds), caption))


@dataclass(kw_only=True)
class _Verdict:
    """In how many columns of the tables a model beats the references, and the rows where it does not. `standing`:
    won (everywhere), mixed (in half or more), lost."""

    label: str
    won: int = 0
    compared: int = 0
    lost: list[tuple[Table, Row]] = field(default_factory=list)

    @property
    def standing(self) -> str:
        return standing(self.won, self.compared)


def standing(won: int, compared: int) -> str:
    return "won" if won == compared else "mixed" if 2 * won >= compared else "lost"


@cache
def _environment() -> Any:
    jinja2 = needed("jinja2", "train", "a report")
    loader = jinja2.FileSystemLoader(Path(__file__).parent / "templates")
    settings = {"autoescape": True, "trim_blocks": True, "lstrip_blocks": True, "undefined": jinja2.StrictUndefined}
    environment = jinja2.Environment(loader=loader, **settings)
    environment.tests["endingwith"] = str.endswith
    environment.globals["standing"] = standing
    return environment


def table_html(table: Table) -> str:
    """One table, as the report shows it."""
    return str(_environment().get_template("table.html").module.show(table))


def page(runs: Sequence[Run], sections: Sequence[Section], **facts: Any) -> str:
    """`facts`: package, store, command, date, quick (how little was looked at, if so), digests of the groups by path,
    and notes: what the paper says of the worlds evaluated."""
    facts = {"quick": "", "digests": {}, "date": "", "command": "", "notes": ()} | facts
    facts["title"] = "Evaluation of " + ", ".join(dict.fromkeys(run.label for run in runs))
    facts["rehearsals"] = list(dict.fromkeys(run.label for run in runs if run.config.get("preset") == "smoke"))
    facts |= {"verdicts": _verdicts(sections), "paper": PAPER, "budget": _budget, "inlined": _inlined}
    return str(_environment().get_template("report.html").render(runs=runs, sections=sections, **facts))


def _verdicts(sections: Sequence[Section]) -> list[_Verdict]:
    verdicts: dict[str, _Verdict] = {}
    tables = [table for section in sections if not section.folded for table in section.tables]
    for table, row in ((t, row) for t in tables for row in t.rows if row.kind == "model" and row.note):
        label = f"{row.label} on {table.world}"
        verdict = verdicts.setdefault(label, _Verdict(label=label))
        won, compared = table.ahead(row)
        verdict.won, verdict.compared = verdict.won + won, verdict.compared + compared
        verdict.lost += [(table, row)] if row.note.startswith("does not beat") else []
    return list(verdicts.values())


def _budget(run: Run) -> str:
    if not (training := run.config):
        return "trained elsewhere"
    steps = f"{training['steps']:,} steps" if training.get("steps") else f"{training.get('epochs', '?')} epochs"
    return steps + (f", batches of {training['batch_size']}" if training.get("batch_size") else "")


def _inlined(path: Path) -> str:
    """A PNG or GIF."""
    return f"data:image/{path.suffix[1:]};base64,{base64.b64encode(path.read_bytes()).decode()}"
