"""`s2rm-data remove`, `rename` and `merge`: which groups a store has."""

from __future__ import annotations

import sys

import click

from s2rm_data.cli.options import STORE_PATH, group_argument
from s2rm_data.cli.run import say_json
from s2rm_data.core.addresses import StorePath
from s2rm_data.core.amounts import human
from s2rm_data.core.errors import UsageError


@click.command
@click.argument("store", type=STORE_PATH)
@group_argument(nargs=-1, required=True)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("-q", "--quiet", is_flag=True, help="No summary.")
def remove(store: StorePath, group: tuple[str, ...], yes: bool, quiet: bool) -> None:
    """Remove each GROUP from STORE, finished or not.

    What can be made again is made again by its command, which `s2rm-data info` shows. If this command is interrupted,
    run it again.

    \b
    Example:
      s2rm-data remove data.zarr bballs/test_6
    """
    from s2rm_data.store.regrouping import remove_group

    if not yes:
        if not sys.stdin.isatty():
            raise UsageError("removing has to be confirmed, and there is no terminal to ask in; add --yes")
        click.confirm(f"remove {', '.join(group)} from {store}?", abort=True, err=True)
    for name in dict.fromkeys(group):
        nbytes = remove_group(store, name)
        if not quiet:
            click.echo(f"s2rm-data: {name} removed, {human(nbytes)}", err=True)


@click.command
@click.argument("store", type=STORE_PATH)
@group_argument()
@click.argument("name")
@click.option("-q", "--quiet", is_flag=True, help="No summary.")
def rename(store: StorePath, group: str, name: str, quiet: bool) -> None:
    """Give GROUP of STORE another NAME, in the same world; its bytes stay the same.

    A renamed group is no longer what its command makes: the command would make it again under the old name, and
    `s2rm-data repair` cannot repair it. If this command is interrupted, run it again.

    \b
    Example:
      s2rm-data rename data.zarr bballs/train bballs/train_seed0
    """
    from s2rm_data.store.regrouping import rename_group

    rename_group(store, group, name)
    if not quiet:
        click.echo(f"s2rm-data: {group} is {name} now", err=True)


@click.command
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
    from s2rm_data import api

    done = api.merge(store, verify=verify, quiet=quiet)
    if as_json:
        counts = {"parts": done.parts, "objects": done.objects, "bytes": done.nbytes}
        say_json(store=str(store), groups=list(done.groups), **counts)
    elif not quiet:
        what = f"{done.parts:,} parts merged" if done.parts else "merged already"
        click.echo(f"s2rm-data: {what}: {done.objects:,} objects, {human(done.nbytes)} in {store}", err=True)
