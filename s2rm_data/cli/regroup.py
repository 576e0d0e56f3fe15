"""`s2rm-data remove` and `s2rm-data rename`."""

from __future__ import annotations

import sys

import click

from s2rm_data.addresses import StorePath
from s2rm_data.cli.options import STORE_PATH
from s2rm_data.cli.run import EXIT_STATUSES
from s2rm_data.cli.sizes import human
from s2rm_data.errors import UsageError


@click.command(epilog=EXIT_STATUSES)
@click.argument("store", type=STORE_PATH)
@click.argument("group", nargs=-1, required=True)
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


@click.command(epilog=EXIT_STATUSES)
@click.argument("store", type=STORE_PATH)
@click.argument("group")
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
