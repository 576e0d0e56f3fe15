"""`s2rm-data merge`."""

from __future__ import annotations

import json

import click

from s2rm_data.addresses import StorePath
from s2rm_data.cli.options import STORE_PATH
from s2rm_data.cli.progress import progress_for
from s2rm_data.cli.run import EXIT_STATUSES
from s2rm_data.cli.sizes import human


@click.command(epilog=EXIT_STATUSES)
@click.argument("store", type=STORE_PATH)
@click.option("--verify", is_flag=True, help="Read every byte of the parts first, not only their sizes.")
@click.option("-q", "--quiet", is_flag=True, help="No progress, no summary.")
@click.option("--json", "as_json", is_flag=True, help="A summary as JSON on standard output.")
def merge(store: StorePath, verify: bool, quiet: bool, as_json: bool) -> None:
    """Commit the parts that were made in STORE with --part, all at once.

    Refuses, and names, parts that are missing or not finished, and parts of unlike settings or versions. The result is
    byte for byte the store that one process makes. A merge that was interrupted is finished by running it again.

    \b
    Example:
      s2rm-data bballs --part 1/2 -o data.zarr       # on one machine
      s2rm-data bballs --part 2/2 -o data.zarr       # on another one, or later
      s2rm-data merge data.zarr
    """
    from s2rm_data.making import merge as merge_parts

    with progress_for("checking", "bytes", quiet=quiet) as progress:
        done = merge_parts(store, verify=verify, progress=progress)
    if as_json:
        summary = {"store": str(store), "groups": list(done.groups), "parts": done.parts}
        click.echo(json.dumps({**summary, "objects": done.objects, "bytes": done.nbytes}))
    elif not quiet:
        what = f"{done.parts:,} parts merged" if done.parts else "merged already"
        click.echo(f"s2rm-data: {what}: {done.objects:,} objects, {human(done.nbytes)} in {store}", err=True)
