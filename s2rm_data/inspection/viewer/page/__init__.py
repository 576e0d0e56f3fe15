"""The page itself: one HTML, one style sheet, and scripts that are read in the order of SCRIPTS as one.

No build step, no framework, nothing from a network. `write_page` makes one file of it, with a few sequences inside."""

from __future__ import annotations

import base64
import gzip
import hashlib
import itertools
import json
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from s2rm_data.core.progress import Progress
from s2rm_data.core.write import write_whole
from s2rm_data.inspection.scene import Discs
from s2rm_data.inspection.viewer.answers import Answers

SCRIPTS = ("data", "colours", "arena", "panels", "player", "model", "main")
POLICY = (
    "default-src 'none'; script-src {scripts}; style-src {styles}; img-src data:; base-uri 'none'; form-action 'none'"
)


@cache
def script() -> str:
    parts = "\n".join(_read(f"{name}.js") for name in SCRIPTS)
    return f'"use strict";\n(() => {{\n{parts}\n}})();\n'


@cache
def style() -> str:
    return _read("viewer.css")


@cache
def page() -> str:
    """For a server that has `viewer.css` and `viewer.js` beside it."""
    return _filled('<link rel="stylesheet" href="viewer.css">', "", '<script src="viewer.js"></script>')


def _filled(head: str, data: str, code: str) -> str:
    text = _read("viewer.html")
    for mark, value in (("<!--style-->", head), ("<!--data-->", data), ("<!--script-->", code)):
        before, _, after = text.partition(mark)
        text = f"{before}{value}{after}"
    return text


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _read(name: str) -> str:
    return (resources.files(__package__) / name).read_text(encoding="utf-8")


DROPPED = (0.0, 0.5)  # shares of the views for which predictions are inside
START = 20  # steps that a roll-out is shown first, as in the paper's appendix 'Rollouts'

Question = tuple[str, dict[str, str]]


def write_page(
    answers: Answers, target: Path, groups: Sequence[str], numbers: Sequence[int], progress: Progress | None = None
) -> int:
    """Write `target` with these sequences of every group, those that it has; returns the file's bytes."""
    progress = progress or Progress()
    table = _table(answers, groups)
    held: list[list[Any]] = [["catalogue", {}, _spelled(json.dumps(table).encode())]]
    questions: list[Question] = [("enclaves", {"run": run["name"]}) for run in table["runs"] if run["enclaves"]]
    for path in groups:
        about = answers.about(path)
        there = [number for number in numbers if number < about["count"]] or [0]
        held.append(["group", {"group": path}, _spelled(json.dumps({**about, "numbers": there}).encode())])
        questions += itertools.chain.from_iterable(_questions(answers, table, path, number) for number in there)
    progress.start(len(questions), 0)
    for route, given in questions:
        held.append([route, given, _spelled(answers.answer(route, given)[1])])
        progress.advance(1)
    code, rules = script(), style()
    policy = POLICY.format(scripts=_digest(code), styles=_digest(rules))  # the page may run no script but its own
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
    data = json.dumps(held, separators=(",", ":")).replace("<", "\\u003c")
    data = f'<script type="application/json" id="embedded">{data}</script>'
    text = _filled(f"{meta}<style>{rules}</style>", data, f"<script>{code}</script>").encode()
    write_whole(target, [text])
    return len(text)


def _table(answers: Answers, groups: Sequence[str]) -> dict[str, Any]:
    table = answers.table()
    worlds = [{**w, "groups": [path for path in w["groups"] if path in groups]} for w in table["worlds"]]
    table["worlds"] = [world for world in worlds if world["groups"]]
    names = {world["name"] for world in table["worlds"]}
    table["runs"] = [run for run in table["runs"] if run["world"] in names]
    return {**table, "dropped": list(DROPPED), "starts": [START]}


def _questions(answers: Answers, table: dict[str, Any], path: str, number: int) -> Iterator[Question]:
    """All that the page can ask of one sequence."""
    what = {"group": path, "number": str(number)}
    yield "episode", what
    scene = answers.scene(path, str(number))
    things = next((layer.detailed for layer in scene.layers if isinstance(layer, Discs)), 0)
    for index in range(things):
        yield "details", {**what, "index": str(index)}
    world = path.partition("/")[0]
    for run in (run for run in table["runs"] if run["world"] == world):
        # 0 is one step ahead; the page asks for a roll-out no later than the last step but one.
        starts = [0, max(1, min(scene.steps - 1, START))] if run["rolls_out"] else [0]
        for index, start, dropped in itertools.product(range(max(things, 1)), starts, DROPPED):
            asked = {"index": str(index), "start": str(start), "dropped": f"{dropped:g}"}
            yield "prediction", {"run": run["name"], **what, **asked}


def _spelled(data: bytes) -> str:
    return base64.b64encode(gzip.compress(data, 9, mtime=0)).decode()
