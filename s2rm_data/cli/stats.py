"""`s2rm-data stats`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from s2rm_data.addresses import StorePath
from s2rm_data.cli.options import STORE_PATH, out_folder
from s2rm_data.cli.progress import progress_for
from s2rm_data.cli.run import EXIT_STATUSES
from s2rm_data.errors import ConflictError, UsageError

if TYPE_CHECKING:
    from s2rm_data.inspection.stats import GroupStats


@click.command(epilog=EXIT_STATUSES)
@click.argument("store", type=STORE_PATH)
@click.argument("group", nargs=-1)
@out_folder("stats", "Folder for the figures and stats.json; those of an earlier run are replaced.")
@click.option("--table-only", is_flag=True, help="Print the table and write nothing.")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
@click.option("--json", "as_json", is_flag=True, help="Everything as JSON on standard output, without the table.")
def stats(store: StorePath, group: tuple[str, ...], out: Path, table_only: bool, quiet: bool, as_json: bool) -> None:
    """Count what is in the groups of STORE: as a table, and as one figure per world.

    Bouncing balls: speeds, collisions, where pixels are on. StarCraft II: units, lengths, win rates, where units stand.
    Other worlds: what they say, or else the mean and the range of every array. Without GROUP, all complete groups are
    counted.

    \b
    Examples:
      s2rm-data stats data.zarr
      s2rm-data stats data.zarr sc2/3s5z/train --table-only
      s2rm-data stats data.zarr --json | jq '."sc2/3s5z/train".win_share'
    """
    from s2rm_data.inspection.world import save_stats, stats_of
    from s2rm_data.store import Store

    opened = Store(store)
    groups = [opened[path] for path in dict.fromkeys(group or opened.groups)]
    if not groups:
        raise UsageError(f"{store} has no finished group to count")
    if not table_only and out.exists() and not out.is_dir():
        raise ConflictError(f"{out} is a file, not a folder; choose another --out, or --table-only")
    with progress_for("counting", "sequences", quiet=quiet) as progress:
        progress.start(sum(len(chosen) for chosen in groups), 0)
        found = [stats_of(chosen, progress) for chosen in groups]
    if as_json:
        click.echo(json.dumps({entry.group: entry.to_json() for entry in found}))
    else:
        _print_tables(found)
    if not table_only:
        for path in save_stats(list(zip(groups, found, strict=True)), out):
            click.echo(str(path), err=as_json)


def _print_tables(found: Sequence[GroupStats]) -> None:
    """One table per world, groups as columns: they have more lines than a terminal has columns."""
    for generator in dict.fromkeys(entry.generator for entry in found):
        entries = [entry for entry in found if entry.generator == generator]
        columns = [entry.row | entry.details for entry in entries]
        names = dict.fromkeys(name for column in columns for name in column)
        cells = [["", *(entry.short_name for entry in entries)]]
        cells += [[_words(name), *(_text(column.get(name)) for column in columns)] for name in names]
        widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
        click.echo(f"{generator}")
        for row in cells:
            padded = [row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))]
            click.echo("  " + "  ".join(padded).rstrip())
        click.echo()


def _words(name: str) -> str:
    for unit, spelled in (("_px_per_frame", ", px/frame"), ("_px", ", px"), ("_steps", ", steps")):
        if name.endswith(unit):
            return name.removesuffix(unit).replace("_", " ") + spelled
    return name.replace("_", " ")


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, list):
        return " to ".join(f"{part:g}" for part in value)
    return f"{value:,}" if isinstance(value, int) else f"{value:g}" if isinstance(value, float) else str(value)
