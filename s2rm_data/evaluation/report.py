"""One page of HTML with everything in it: no script, no network, images inlined."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from s2rm_data.evaluation.paper import paper_tables
from s2rm_data.evaluation.tables import Cell, Row, Table

_TYPES = {".png": "image/png", ".gif": "image/gif"}
_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:1180px;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}
h1{font-size:1.6rem}h2{margin-top:2.6rem;border-bottom:2px solid #ddd}h3{font-size:1rem;margin:1.6rem 0 .2rem}
figure{margin:1rem 0}img{max-width:100%;height:auto;image-rendering:auto}
figcaption,.caption{color:#555;font-size:.88rem}
.scroll{overflow-x:auto}table{border-collapse:collapse;font-size:.86rem;
font-variant-numeric:tabular-nums;margin:.4rem 0}
th,td{padding:.22rem .55rem;text-align:right;border-bottom:1px solid #e6e6e6;white-space:nowrap;vertical-align:top}
th:first-child,td:first-child{text-align:left}
td.note{text-align:left;white-space:normal;min-width:15rem;font-size:.8rem}
tr.reference td{color:#666;background:#f7f7f7}tr.paper td{color:#777}td.best{font-weight:700}
td.trained,th.trained{background:#f6f1dc}.half{color:#666;font-weight:400;font-size:.78rem}
.paper-number{display:block;color:#8a5a00;font-weight:400;font-size:.78rem}
.lost{color:#a4000f}.won{color:#1b6b3a}ul.verdict li{margin:.2rem 0}summary{cursor:pointer;margin:.8rem 0;color:#225}
"""


@dataclass(kw_only=True)
class Section:
    title: str
    text: str = ""
    figures: list[tuple[Path, str]] = field(default_factory=list)  # (file, caption)
    tables: list[Table] = field(default_factory=list)
    folded: bool = False  # tables open on a click

    def add_figure(self, path: Path, caption: str = "") -> None:
        self.figures.append((path, caption))


def page(results: dict[str, Any], sections: Sequence[Section]) -> str:
    body = "".join(_section(section) for section in sections)
    title = "Evaluation of " + ", ".join(dict.fromkeys(run["label"] for run in results["runs"].values()))
    return (
        "<!doctype html>\n<html lang=en><head><meta charset=utf-8>"
        "<meta name=viewport content='width=device-width,initial-scale=1'>"
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>"
        f"<h1>{escape(title)}</h1>{_runs(results)}{_verdict(sections)}{_legend()}{body}{_sources()}</body></html>\n"
    )


def _runs(results: dict[str, Any]) -> str:
    heads = ("run", "model", "task", "seed", "parameters", "preset", "budget", "trained on")
    rows = []
    for name, run in results["runs"].items():
        training = run["training"]
        budget = f"{training['steps']:,} steps" if training.get("steps") else f"{training.get('epochs', '?')} epochs"
        if training.get("batch_size"):
            budget += f" of {training['batch_size']}"
        groups = ", ".join(path for path in run["groups"] if path.endswith("/train"))
        cells = (name, run["label"], run["task"], run["seed"], f"{run['parameters']:,}", training.get("preset"), budget)
        rows.append("".join(f"<td>{escape(str(cell))}</td>" for cell in (*cells, groups)))
    head = "".join(f"<th>{head}</th>" for head in heads)
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return (
        f"<p>Made by {escape(results['package'])} on the store <code>{escape(results['store'])}</code>. Every number "
        "is in <code>results.json</code>, every table in <code>tables/</code> as CSV.</p>"
        f"<div class=scroll><table><tr>{head}</tr>{body}</table></div>"
    )


def _verdict(sections: Sequence[Section]) -> str:
    """For each model, in how many columns of the tables it beats the references, and where it does not."""
    tables = [table for section in sections if not section.folded for table in section.tables]
    rows: dict[str, list[tuple[Table, Row]]] = {}
    for table in tables:
        for row in table.rows:
            if row.kind == "model" and row.note:
                rows.setdefault(f"{row.label} on {table.name.partition('_')[0]}", []).append((table, row))
    if not rows:
        return ""
    items = []
    for label, own in rows.items():
        won, compared = (sum(counts) for counts in zip(*(table.ahead(row) for table, row in own), strict=True))
        text = f"<b>{escape(label)}</b> beats every reference in {won} of {compared} columns"
        lost = [f"<li>{escape(t.title)}: {escape(r.note)}</li>" for t, r in own if r.note.startswith("does not beat")]
        if lost:
            text += f"<details><summary>where it does not</summary><ul>{''.join(lost)}</ul></details>"
        items.append(f"<li class={'lost' if lost else 'won'}>{text}</li>")
    return f"<h2>Do the models beat what needs no model?</h2><ul class=verdict>{''.join(items)}</ul>"


def _legend() -> str:
    return (
        "<p class=caption>In all tables larger is better. A number is the mean over the seeds of a model; ± is the "
        "half-width of its 95% interval (Student's t over seeds), shown when there are two or more. <b>Bold</b>: the "
        "best of our models, the oracle TTO left out. Grey rows: references that need no model. "
        "<span class=paper-number style='display:inline'>Brown: the paper's number.</span> Yellow columns: what the "
        "models were trained on.</p>"
    )


def _sources() -> str:
    notes = paper_tables()
    return (
        f"<h2>The paper's numbers</h2><p class=caption>{escape(notes['source'])}. {escape(notes['notes']['bballs'])} "
        f"StarCraft II: {escape(notes['notes']['sc2'])}</p>"
    )


def _section(section: Section) -> str:
    figures = "".join(_figure(path, caption) for path, caption in section.figures)
    tables = "".join(_table(table) for table in section.tables)
    if section.folded and tables:
        tables = f"<details><summary>{len(section.tables)} tables</summary>{tables}</details>"
    return f"<h2>{escape(section.title)}</h2><p>{escape(section.text)}</p>{figures}{tables}"


def _figure(path: Path, caption: str) -> str:
    data = base64.b64encode(path.read_bytes()).decode()
    words = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    alt = escape(caption or path.stem.replace("_", " "))
    return f'<figure><img alt="{alt}" src="data:{_TYPES[path.suffix]};base64,{data}">{words}</figure>'


def _table(table: Table) -> str:
    marks = ["trained" if column in table.in_distribution else "" for column in table.columns]
    head = "".join(
        f'<th class="{mark}">{escape(column)}</th>' for column, mark in zip(table.columns, marks, strict=True)
    )
    noted = any(row.note for row in table.rows)
    head += "<th style='text-align:left'>against the references</th>" if noted else ""
    rows = "".join(_row(table, row, marks, noted) for row in table.rows)
    return (
        f"<h3>{escape(table.title)}</h3><div class=caption>{escape(table.caption)}</div><div class=scroll><table>"
        f"<tr><th>{escape(table.corner)}</th>{head}</tr>{rows}</table></div>"
    )


def _row(table: Table, row: Row, marks: Sequence[str], noted: bool) -> str:
    cells = []
    for column, (cell, mark) in enumerate(zip(row.cells, marks, strict=True)):
        best = row.kind == "model" and row.model != "tto" and cell.mean is not None and cell.mean == table.best(column)
        classes = " ".join(name for name in (mark, "best" if best and row.note else "") if name)
        cells.append(f'<td class="{classes}">{_cell(cell, table.digits)}</td>')
    note = ""
    if noted:
        colour = "won" if row.note.startswith("beats") else "lost"
        note = f'<td class="note {colour}">{escape(row.note)}</td>'
    return f"<tr class={row.kind}><td>{escape(row.label)}</td>{''.join(cells)}{note}</tr>"


def _cell(cell: Cell, digits: int) -> str:
    if cell.mean is None and cell.paper is None:
        return "–"
    text = "" if cell.mean is None else f"{cell.mean:.{digits}f}"
    if cell.half_width is not None:
        text += f" <span class=half>± {cell.half_width:.{digits}f}</span>"
    if cell.paper is not None:
        text += f"<span class=paper-number>{cell.paper:.{digits}f}</span>"
    return text
