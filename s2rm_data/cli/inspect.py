"""`info`, `verify` and `repair`: what is in a store, whether it is still what was written, and making it so again."""

from __future__ import annotations

import json
from typing import Any

import click

from s2rm_data.addresses import StorePath
from s2rm_data.cli.options import STORE_PATH
from s2rm_data.cli.progress import progress_for
from s2rm_data.cli.run import EXIT_STATUSES
from s2rm_data.cli.sizes import human
from s2rm_data.errors import DamagedStoreError

STORE = click.argument("store", type=STORE_PATH)


@click.command(epilog=EXIT_STATUSES)
@STORE
@click.option("--json", "as_json", is_flag=True, help="As JSON on standard output.")
def info(store: StorePath, as_json: bool) -> None:
    """Show the tree of STORE: groups, arrays, shapes, sizes and how each group was made.

    \b
    Examples:
      s2rm-data info data.zarr
      s2rm-data info data.zarr --json | jq '.groups | keys'
    """
    from s2rm_data.store import Store

    opened = Store(store)
    if as_json:
        click.echo(json.dumps(_as_json(opened), indent=2, sort_keys=True))
        return
    click.echo(f"{store}  {human(sum(e.nbytes for e in opened.manifest.objects.values()))}")
    damage = []
    for path in opened.groups:
        try:
            _print_group(opened[path])
        except DamagedStoreError as error:
            damage.append(str(error))
            click.echo(f"\n{path}  damaged")
    for path, (there, total) in opened.unfinished.items():
        click.echo(f"\n{path}  unfinished: {there} of {total} shards; run the command that makes it again")
    if not opened.manifest.groups:
        click.echo("\nempty")
    if damage:
        raise DamagedStoreError(
            "\n".join([*damage, f"{store}: `s2rm-data verify {store}` lists everything that is wrong"])
        )


def _print_group(group: Any) -> None:
    settings = group.settings
    click.echo()
    unit = next(iter(group.arrays.values())).dims[0]
    click.echo(_printable(f"{group.path}  {len(group):,} {unit}s, {human(group.nbytes)}"))
    width = max(len(name) for name in group.arrays)
    for name, array in group.arrays.items():
        shape = " x ".join(f"{size} {dim}" for dim, size in zip(array.dims, array.shape, strict=True))
        click.echo(_printable(f"  {name:<{width}}  {array.dtype!s:<8} {shape}"))
    config = settings.get("config", {})
    config = (
        ", ".join(f"{key} {value}" for key, value in sorted(config.items())) if isinstance(config, dict) else config
    )
    generator, version, seed = (settings.get(key, "?") for key in ("generator", "generator_version", "seed"))
    click.echo(_printable(f"  made by {generator} {version}, seed {seed}: {config}"))
    click.echo(_printable(f"  {group.attributes.get('package', '?')}: {group.attributes.get('command', '?')}"))


def _printable(text: str) -> str:
    """Without control characters, with which a stranger's store could write anywhere on the terminal."""
    return "".join(c if c.isprintable() else "?" for c in text)


def _as_json(store: Any) -> dict[str, Any]:
    groups = {}
    for path in store.groups:
        group = store[path]
        arrays = {
            name: {"dtype": str(a.dtype), "shape": list(a.shape), "dims": list(a.dims), **a.layout.attributes}
            for name, a in group.arrays.items()
        }
        groups[path] = {"count": len(group), "bytes": group.nbytes, "arrays": arrays, **group.attributes}
    unfinished = {path: {"shards": there, "of": total} for path, (there, total) in store.unfinished.items()}
    return {"store": str(store.path), "groups": groups, "unfinished": unfinished}


@click.command(epilog=EXIT_STATUSES)
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
        click.echo(
            json.dumps(
                {"store": str(store), "problems": report.problems, "notes": report.notes, "digests": report.digests},
                indent=2,
            )
        )
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


@click.command(epilog=EXIT_STATUSES)
@STORE
@click.argument("group")
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
        click.echo(json.dumps({"store": str(store), "group": group, "repaired": done.objects, "checked": done.checked}))
    elif not quiet:
        for name in done.objects:
            click.echo(name)
        made = f"{len(done.objects):,} of {done.checked:,} objects made again" if done.objects else "nothing to repair"
        click.echo(f"s2rm-data: {store}: {made}", err=True)
