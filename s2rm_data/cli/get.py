"""`s2rm-data get`: a named data set, made here and compared with its digests."""

from __future__ import annotations

import time
from pathlib import Path

import click

from s2rm_data.cli.options import STORE_PATH, completing
from s2rm_data.core.addresses import StorePath
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
