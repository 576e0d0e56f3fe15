"""`s2rm-data export` and `card`: data for people who work elsewhere."""

import datetime
import functools
from pathlib import Path
from typing import Any

import click

from s2rm_data.cli.options import STORE_PATH, group_argument, named_option, out_folder
from s2rm_data.cli.run import say_json
from s2rm_data.core.addresses import StorePath
from s2rm_data.core.amounts import human
from s2rm_data.core.errors import ConflictError
from s2rm_data.core.registry import EXPORT_FORMATS
from s2rm_data.display.progress import progress_for


@click.command
@click.argument("store", type=STORE_PATH)
@group_argument(nargs=-1, required=True)
@named_option("-f", "--format", "form", names=EXPORT_FORMATS.names, words=".  [default: npz]", default="npz")
@click.option("-n", "--count", type=int, default=None, help="Only the first sequences of each group.  [default: all]")
@out_folder("exports", "Folder to write to.")
@click.option("--overwrite", is_flag=True, help="Replace what is there under the same names.")
@click.option("-q", "--quiet", is_flag=True, help="No progress, no summary.")
@click.option("--json", "as_json", is_flag=True, help="A summary as JSON on standard output.")
def export(
    store: StorePath, group: tuple[str, ...], form: str, out: Path, quiet: bool, as_json: bool, **how: Any
) -> None:
    """Copy each GROUP of STORE to a file of another format, or to a folder of tar files or GIFs.

    Frames are written as 0 and 1, one byte per pixel; NPZ and HDF5 are compressed and carry the group's settings.
    Writing needs little memory whatever the size of the group, but `numpy.load` reads a whole array of an NPZ at once:
    choose HDF5 to read in parts. Parquet is for Hugging Face's `datasets`, WebDataset for streaming into PyTorch.

    \b
    Examples:
      s2rm-data export data.zarr bballs/test_3                     # exports/bballs-test_3.npz
      s2rm-data export data.zarr bballs/train bballs/val -f hdf5   # needs pip install 's2rm-data[export]'
      s2rm-data export data.zarr bballs/train -f parquet           # needs pip install 's2rm-data[publish]'
      s2rm-data export data.zarr bballs/train -f webdataset        # exports/bballs-train/000000.tar, ...
      s2rm-data export data.zarr sc2/3s5z/val -f gif -n 3          # exports/sc2-3s5z-val/00000.gif, ...
    """
    from s2rm_data.inspection.export_format import export as export_group
    from s2rm_data.inspection.export_format import work_of
    from s2rm_data.store import Store

    opened = Store(store)
    groups = [opened[path] for path in dict.fromkeys(group)]
    write: Any = functools.partial(export_group, form=form, folder=out, **how)
    with progress_for("exporting", EXPORT_FORMATS.load(form).counts, quiet=quiet) as progress:
        progress.start(sum(work_of(chosen, form, how["count"]) for chosen in groups), 0)
        made = [write(chosen, progress=progress) for chosen in groups]
    sizes = {str(path): sum(p.stat().st_size for p in [path, *path.rglob("*")] if p.is_file()) for path in made}
    if as_json:
        say_json(store=str(store), format=form, made=sizes)
    elif not quiet:
        for path, nbytes in sizes.items():
            click.echo(f"{path}  {human(nbytes)}")


@click.command
@click.argument("store", type=STORE_PATH)
@out_folder("card", "Folder to write to.")
@click.option("--title", default=None, help="Title of the data set.  [default: of its worlds]")
@click.option("--author", default="The s2rm-data developers", show_default=True, help="Who publishes it.")
@click.option("--license", "licence", default="mit", show_default=True, help="mit, apache-2.0, cc-by-4.0 or cc0-1.0.")
@click.option("--date", "published", type=click.DateTime(["%Y-%m-%d"]), help="Day of publication.  [default: today]")
@click.option("--overwrite", is_flag=True, help="Replace a card that is there.")
@click.option("-q", "--quiet", is_flag=True, help="No progress, no list of files.")
def card(store: StorePath, out: Path, overwrite: bool, quiet: bool, **options: Any) -> None:
    """Describe STORE for people who find it: README.md with pictures and statistics, and Croissant metadata.

    Put the store, and Parquet exports for Hugging Face if you like, into the same folder, and it can be published as it
    is: the card lists the exports that it finds beside itself. Needs pip install 's2rm-data[publish]'.

    \b
    Examples:
      s2rm-data card data.zarr
      s2rm-data export data.zarr bballs/train bballs/val -f parquet -o card && s2rm-data card data.zarr
    """
    from s2rm_data.inspection.card import About, write_card
    from s2rm_data.making.world import world_of
    from s2rm_data.store import Store

    opened = Store(store)
    if (out / "README.md").exists() and not overwrite:
        there = f"{out / 'README.md'} is there already"
        raise ConflictError(f"{there}; choose another --out, or replace it with --overwrite")
    title = options["title"] or " and ".join(dict.fromkeys(world_of(opened[path]).title for path in opened.groups))
    day = str((options["published"] or datetime.datetime.now()).date())
    about = About(title=title, author=options["author"], licence=options["licence"], published=day)
    with progress_for("counting", "sequences", quiet=quiet) as progress:
        written = write_card(opened, out, about, progress)
    for path in () if quiet else written:
        click.echo(str(path))
