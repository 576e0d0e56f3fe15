"""`s2rm-data card`."""

from __future__ import annotations

import datetime
from pathlib import Path

import click

from s2rm_data.addresses import StorePath
from s2rm_data.cli.options import STORE_PATH, out_folder
from s2rm_data.cli.progress import progress_for
from s2rm_data.cli.run import EXIT_STATUSES
from s2rm_data.errors import ConflictError


@click.command(epilog=EXIT_STATUSES)
@click.argument("store", type=STORE_PATH)
@out_folder("card", "Folder to write to.")
@click.option("--title", default=None, help="Title of the data set.  [default: of its worlds]")
@click.option("--author", default="The s2rm-data developers", show_default=True, help="Who publishes it.")
@click.option("--license", "licence", default="mit", show_default=True, help="mit, apache-2.0, cc-by-4.0 or cc0-1.0.")
@click.option("--date", "published", type=click.DateTime(["%Y-%m-%d"]), help="Day of publication.  [default: today]")
@click.option("--overwrite", is_flag=True, help="Replace a card that is there.")
@click.option("-q", "--quiet", is_flag=True, help="No progress, no list of files.")
def card(
    store: StorePath,
    out: Path,
    title: str | None,
    author: str,
    licence: str,
    published: datetime.datetime | None,
    overwrite: bool,
    quiet: bool,
) -> None:
    """Describe STORE for people who find it: README.md with pictures and statistics, and Croissant metadata.

    Put the store, and Parquet exports for Hugging Face if you like, into the same folder, and it can be published as it
    is: the card lists the exports that it finds beside itself. Needs pip install 's2rm-data[publish]'.

    \b
    Examples:
      s2rm-data card data.zarr
      s2rm-data export data.zarr bballs/train bballs/val -f parquet -o card && s2rm-data card data.zarr
    """
    from s2rm_data.inspection.card import About, write_card
    from s2rm_data.store import Store
    from s2rm_data.world import world_of

    opened = Store(store)
    if (out / "README.md").exists() and not overwrite:
        raise ConflictError(
            f"{out / 'README.md'} is there already; choose another --out, or replace it with --overwrite"
        )
    worlds = dict.fromkeys(world_of(opened[path]).title for path in opened.groups)
    about = About(
        title=title or " and ".join(worlds),
        author=author,
        licence=licence,
        published=str((published or datetime.datetime.now()).date()),
    )
    with progress_for("counting", "sequences", quiet=quiet) as progress:
        written = write_card(opened, out, about, progress)
    for path in () if quiet else written:
        click.echo(str(path))
