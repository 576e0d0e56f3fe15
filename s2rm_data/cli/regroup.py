"""`s2rm-data get`, `remove`, `rename` and `merge`: which groups a store has."""

import sys
import time
from pathlib import Path

import click

from s2rm_data.cli.options import STORE_PATH, completing, group_argument
from s2rm_data.cli.run import say_json
from s2rm_data.core.addresses import StorePath
from s2rm_data.core.amounts import human
from s2rm_data.core.errors import UsageError
from s2rm_data.display.progress import say


def _names() -> list[str]:
    from s2rm_data.making.recipe import recipes

    return [*recipes()]


@click.command
@click.argument("name", required=False, shell_complete=completing(_names))
@click.option("-o", "--out", type=STORE_PATH, default=Path("data.zarr"), show_default=True, help="Store to add it to.")
@click.option("-j", "--workers", type=int, default=None, help="Shards made at once.  [default: one per core]")
@click.option("--list", "listing", is_flag=True, help="List the data sets that have names.")
@click.option("--seal", is_flag=True, help="Write the digests of what is made into the recipe NAME, a file of yours.")
@click.option("-q", "--quiet", is_flag=True, help="No progress, no summary.")
def get(name: str | None, out: StorePath, workers: int | None, listing: bool, seal: bool, quiet: bool) -> None:
    """Make the data set NAME, or that of a recipe in a TOML file, and compare it with the recipe's digests.

    A data set is a recipe and a digest: made again anywhere, it has the same bytes, or the command says what differs
    and ends with status 5.

    \b
    Examples:
      s2rm-data get --list
      s2rm-data get paper-bballs
      s2rm-data get my.toml --out my.zarr
      s2rm-data get my.toml --seal         # write the digests into the file
    """
    from s2rm_data import api
    from s2rm_data.making.recipe import Recipe

    if listing:
        for each in _names():
            click.echo(f"{each}  {Recipe.of(each).title}")
        return
    if name is None:
        raise UsageError("no data set named; `s2rm-data get --list` lists them, or name a recipe, as in my.toml")
    begun, recipe = time.monotonic(), Recipe.of(name)
    api.get(name, out, workers=workers, seal=seal, quiet=quiet)
    verdict = "sealed" if seal else "all as the recipe says" if recipe.digests else "the recipe has no digests yet"
    if not quiet:
        say(f"{name} in {out}: {verdict} ({time.monotonic() - begun:.1f} s)")


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
