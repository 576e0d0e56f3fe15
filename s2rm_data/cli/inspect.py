"""`info` and `verify`: what is in a store, and whether it is still what was written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from s2rm_data.cli.progress import progress_for
from s2rm_data.cli.run import EXIT_STATUSES
from s2rm_data.cli.sizes import human
from s2rm_data.errors import DamagedStoreError

STORE = click.argument("store", type=click.Path(path_type=Path))


@click.command(epilog=EXIT_STATUSES)
@STORE
@click.option("--json", "as_json", is_flag=True, help="As JSON on standard output.")
def info(store: Path, as_json: bool) -> None:
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
            "\n".join([*damage, f"{store}: s2rm-data verify {store} lists everything that is wrong"])
        )


def _print_group(group: Any) -> None:
    settings = group.settings
    click.echo(f"\n{group.path}  {len(group):,} {next(iter(group.arrays.values())).dims[0]}s, {human(group.nbytes)}")
    width = max(len(name) for name in group.arrays)
    for name, array in group.arrays.items():
        shape = " x ".join(f"{size} {dim}" for dim, size in zip(array.dims, array.shape, strict=True))
        click.echo(f"  {name:<{width}}  {array.dtype!s:<8} {shape}")
    config = ", ".join(f"{key} {value}" for key, value in sorted(settings["config"].items()))
    click.echo(f"  made by {settings['generator']} {settings['generator_version']}, seed {settings['seed']}: {config}")
    click.echo(f"  {group.attributes['package']}: {group.attributes['command']}")


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
def verify(store: Path, quiet: bool, as_json: bool) -> None:
    """Check every byte of STORE against its manifest.

    Prints a content digest for each group; it does not depend on how the content is split into files.

    \b
    Example:
      s2rm-data verify data.zarr && echo intact
    """
    from s2rm_data.store import verify as verify_store

    with progress_for("verifying", "bytes", quiet=quiet) as progress:
        report = verify_store(store, progress)
    if as_json:
        click.echo(json.dumps({"store": str(store), "problems": report.problems, "digests": report.digests}, indent=2))
    if report.problems:
        for problem in report.problems[:-1] if not as_json else []:
            click.echo(f"s2rm-data: {problem}", err=True)
        count = len(report.problems)
        raise DamagedStoreError(f"{report.problems[-1]}\n{store}: {count} problem{'s' * (count != 1)} found")
    if not quiet and not as_json:
        for group, digest in report.digests.items():
            click.echo(f"{digest}  {group}")
        click.echo(f"{store}: {report.objects:,} objects, {human(report.nbytes)}, all as committed")
