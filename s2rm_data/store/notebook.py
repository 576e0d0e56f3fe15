"""How a store shows itself in a notebook: its groups as a table, and one picture. All names are escaped."""

from __future__ import annotations

import base64
import io
from html import escape
from typing import TYPE_CHECKING

from s2rm_data.core.errors import S2RMError
from s2rm_data.core.registry import WORLDS

if TYPE_CHECKING:
    from s2rm_data.store.reader import Group, Store


def store_html(store: Store) -> str:
    rows = []
    for path in store.groups:
        try:
            group = store[path]
            cells = (path, f"{len(group):,}", f"{group.nbytes / 1e6:,.1f} MB", ", ".join(group.arrays))
        except S2RMError as error:
            cells = (path, "", "", str(error))
        rows.append("".join(f"<td style='text-align:left'>{escape(cell)}</td>" for cell in cells))
    for path, (there, total) in store.unfinished.items():
        rows.append(f"<td>{escape(path)}</td><td colspan=3>unfinished: {there} of {total} shards</td>")
    head = "".join(f"<th style='text-align:left'>{name}</th>" for name in ("group", "sequences", "size", "arrays"))
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    title = f"<b>Store</b> <code>{escape(str(store.path))}</code>"
    return f"<div>{title}<table><tr>{head}</tr>{body}</table>{_picture(store)}</div>"


def group_html(group: Group) -> str:
    rows = ""
    for name, array in group.arrays.items():
        shape = " x ".join(f"{size:,} {dim}" for dim, size in zip(array.dims, array.shape, strict=True))
        cells = f"<td style='text-align:left'>{escape(name)}</td><td>{escape(str(array.dtype))}</td>"
        rows += f"<tr>{cells}<td style='text-align:left'>{escape(shape)}</td></tr>"
    title = f"<b>Group</b> <code>{escape(group.path)}</code>, {len(group):,} sequences, {group.nbytes / 1e6:,.1f} MB"
    return f"<div>{title}<table>{rows}</table></div>"


def _picture(store: Store) -> str:
    """The first picture of the first group whose world draws one; nothing if that does not work here."""
    for path in store.groups:
        try:
            name = str(store[path].settings["generator"])
            inspection = WORLDS.load(name).inspection() if name in WORLDS.names() else None
            if inspection is None or not len(store[path]):
                continue
            data = io.BytesIO()
            next(iter(inspection.pictures(store[path], 0))).convert("RGB").save(data, "png")
        except (S2RMError, ImportError, OSError, StopIteration):
            continue
        source = base64.b64encode(data.getvalue()).decode()
        return f"<img alt='{escape(path, quote=True)}' src='data:image/png;base64,{source}'>"
    return ""
