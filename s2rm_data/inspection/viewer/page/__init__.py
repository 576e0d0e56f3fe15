"""The page itself: one HTML, one style sheet, and scripts that are read in the order of SCRIPTS as one.

No build step, no framework, nothing from a network.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib import resources

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


def page_with(data: str) -> str:
    """All in one: `data` is what #embedded holds, JSON without a `<`. The page may run no script but its own."""
    assert "<" not in data
    code, rules = script(), style()
    policy = POLICY.format(scripts=_digest(code), styles=_digest(rules))
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
    held = f'<script type="application/json" id="embedded">{data}</script>'
    return _filled(f"{meta}<style>{rules}</style>", held, f"<script>{code}</script>")


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
