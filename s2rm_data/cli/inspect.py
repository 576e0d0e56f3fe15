"""`info`, `verify`, `repair` and `stats`: what is in a store, is it what was written, and making it so again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from s2rm_data.cli.options import STORE_PATH, group_argument, out_folder
from s2rm_data.cli.run import aligned, say_json
from s2rm_data.core.addresses import StorePath
from s2rm_data.core.amounts import human
from s2rm_data.core.errors import ConflictError, DamagedStoreError, UsageError
from s2rm_data.display.progress import progress_for

if TYPE_CHECKING:
    from s2rm_data.inspection.stats import GroupStats
    from s2rm_data.store import Store

STORE = click.argument("store", type=STORE_PATH)


@click.command
@STORE
@group_argument(nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="As JSON on standard output.")
def info(store: StorePath, group: tuple[str, ...], as_json: bool) -> None:
    """List the groups of STORE; with GROUP, its arrays, their shapes and how it was made.

    \b
    Examples:
      s2rm-data info data.zarr
      s2rm-data info data.zarr bballs/train
      s2rm-data info data.zarr --json | jq '.groups | keys'
    """
    from s2rm_data.store import Store

    opened = Store(store)
    if as_json:
        click.echo(json.dumps(_as_json(opened, group or opened.groups), indent=2, sort_keys=True))
        return
    for path in dict.fromkeys(group):
        _print_group(opened[path])
    if not group:
        _print_groups(opened)


def _print_groups(opened: Store) -> None:
    click.echo(f"{opened.path}  {human(sum(e.nbytes for e in opened.manifest.objects.values()))}")
    lines, damage = [("group", "sequences", "size", "made by")], []
    for path in opened.groups:
        try:
            group = opened[path]
            maker = "{generator} {generator_version}, seed {seed}".format_map({**_UNKNOWN, **group.settings})
            lines.append((path, f"{len(group):,}", human(group.nbytes), maker))
        except DamagedStoreError as error:
            damage.append(str(error))
            lines.append((path, "damaged", "", ""))
    for path, (there, total) in opened.unfinished.items():
        lines.append((path, "unfinished", "", f"{there} of {total} shards; run the command that makes it again"))
    for line in aligned(lines, "<>><") if len(lines) > 1 else []:
        click.echo(_printable(line))
    click.echo(f"`s2rm-data info {opened.path} GROUP` shows arrays and settings" if len(lines) > 1 else "empty")
    if damage:
        ask = f"{opened.path}: `s2rm-data verify {opened.path}` lists everything that is wrong"
        raise DamagedStoreError("\n".join([*damage, ask]))


_UNKNOWN = dict.fromkeys(("generator", "generator_version", "seed"), "?")


def _print_group(group: Any) -> None:
    settings = group.settings
    unit = next(iter(group.arrays.values())).dims[0]
    click.echo(_printable(f"{group.path}  {len(group):,} {unit}s, {human(group.nbytes)}"))
    width = max(len(name) for name in group.arrays)
    for name, array in group.arrays.items():
        click.echo(_printable(f"  {name:<{width}}  {array.dtype!s:<8} {array.words()}"))
    config = settings.get("config", {})
    if isinstance(config, dict):
        config = ", ".join(f"{key} {value}" for key, value in sorted(config.items()))
    maker = "{generator} {generator_version}, seed {seed}".format_map({**_UNKNOWN, **settings})
    click.echo(_printable(f"  made by {maker}: {config}"))
    click.echo(_printable(f"  {group.attributes.get('package', '?')}: {group.attributes.get('command', '?')}"))


def _printable(text: str) -> str:
    """Without control characters, with which a stranger's store could write anywhere on the terminal."""
    return "".join(c if c.isprintable() else "?" for c in text)


def _as_json(store: Store, paths: Iterable[str]) -> dict[str, Any]:
    groups = {}
    for path in paths:
        group = store[path]
        arrays = {
            name: {"dtype": str(a.dtype), "shape": list(a.shape), "dims": list(a.dims), **a.layout.attributes}
            for name, a in group.arrays.items()
        }
        groups[path] = {"count": len(group), "bytes": group.nbytes, "arrays": arrays, **group.attributes}
    unfinished = {path: {"shards": there, "of": total} for path, (there, total) in store.unfinished.items()}
    return {"store": str(store.path), "groups": groups, "unfinished": unfinished}


@click.command
@STORE
@click.option("-q", "--quiet", is_flag=True, help="Say nothing unless something is wrong.")
@click.option("--json", "as_json", is_flag=True, help="As JSON on standard output.")
def verify(store: StorePath, quiet: bool, as_json: bool) -> None:
    """Check every byte of STORE against its manifest.

    Prints a content digest for each group; it does not depend on how the content is split into files. Beside a command
    that is writing to the store, what it has not committed yet is told but is no problem.

    \b
    Example:
      s2rm-data verify data.zarr && echo intact
    """
    from s2rm_data.store import verify as verify_store

    with progress_for("verifying", "bytes", quiet=quiet) as progress:
        report = verify_store(store, progress)
    if as_json:
        found = {"store": str(store), "problems": report.problems, "notes": report.notes, "digests": report.digests}
        click.echo(json.dumps(found, indent=2))
    if report.problems:
        for problem in report.problems[:-1] if not as_json else []:
            click.echo(f"s2rm-data: {problem}", err=True)
        count = len(report.problems)
        raise DamagedStoreError(f"{report.problems[-1]}\n{store}: {count} problem{'s' * (count != 1)} found")
    if not quiet and not as_json:
        for note in report.notes:
            click.echo(f"s2rm-data: {note}", err=True)
        for group, digest in report.digests.items():
            click.echo(f"{digest}  {group}")
        click.echo(f"{store}: {report.objects:,} objects, {human(report.nbytes)}, all as committed")


@click.command
@STORE
@group_argument()
@click.option("-q", "--quiet", is_flag=True, help="No progress, no summary.")
@click.option("--json", "as_json", is_flag=True, help="A summary as JSON on standard output.")
def repair(store: StorePath, group: str, quiet: bool, as_json: bool) -> None:
    """Make again what is missing or damaged of GROUP in STORE, and nothing else.

    What is made must be, to the byte, what was committed; otherwise it is not written and the command fails. Battles
    that were played in StarCraft II itself, or recorded, cannot be made again.

    \b
    Example:
      s2rm-data repair data.zarr bballs/train
    """
    from s2rm_data.making.repair import repair as repair_group

    with progress_for("repairing", "sequences", quiet=quiet) as progress:
        done = repair_group(store, group, progress=progress)
    if as_json:
        say_json(store=str(store), group=group, repaired=done.objects, checked=done.checked)
    elif not quiet:
        for name in done.objects:
            click.echo(name)
        made = f"{len(done.objects):,} of {done.checked:,} objects made again" if done.objects else "nothing to repair"
        click.echo(f"s2rm-data: {store}: {made}", err=True)


@click.command
@click.argument("store", type=STORE_PATH)
@group_argument(nargs=-1)
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
    from s2rm_data.inspection.world_inspection import save_stats, stats_of
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
        say_json(**{entry.group: entry.to_json() for entry in found})
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
        click.echo(f"{generator}")
        for line in aligned(cells, "<" + ">" * len(entries)):
            click.echo("  " + line)
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
