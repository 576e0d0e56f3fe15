"""`s2rm-data export`."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import click

from s2rm_data.addresses import StorePath
from s2rm_data.cli.options import STORE_PATH, out_folder
from s2rm_data.cli.progress import progress_for
from s2rm_data.cli.run import EXIT_STATUSES
from s2rm_data.cli.sizes import human


@click.command(epilog=EXIT_STATUSES)
@click.argument("store", type=STORE_PATH)
@click.argument("group", nargs=-1, required=True)
@click.option("-f", "--format", "form", default="npz", show_default=True, help="npz, hdf5, parquet, webdataset or gif.")
@click.option("-n", "--count", type=int, default=None, help="Only the first sequences of each group.  [default: all]")
@out_folder("exports", "Folder to write to.")
@click.option("--overwrite", is_flag=True, help="Replace what is there under the same names.")
@click.option("-q", "--quiet", is_flag=True, help="No progress, no summary.")
@click.option("--json", "as_json", is_flag=True, help="A summary as JSON on standard output.")
def export(
    store: StorePath,
    group: tuple[str, ...],
    form: str,
    count: int | None,
    out: Path,
    overwrite: bool,
    quiet: bool,
    as_json: bool,
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
    from s2rm_data.inspection.export import export as export_group
    from s2rm_data.inspection.export import work_of
    from s2rm_data.store import Store

    opened = Store(store)
    groups = [opened[path] for path in dict.fromkeys(group)]
    write = functools.partial(export_group, form=form, folder=out, count=count, overwrite=overwrite)
    with progress_for("exporting", "sequences" if form == "gif" else "bytes", quiet=quiet) as progress:
        progress.start(sum(work_of(chosen, form, count) for chosen in groups), 0)
        made = [write(chosen, progress=progress) for chosen in groups]
    sizes = {str(path): sum(p.stat().st_size for p in [path, *path.rglob("*")] if p.is_file()) for path in made}
    if as_json:
        click.echo(json.dumps({"store": str(store), "format": form, "made": sizes}))
    elif not quiet:
        for path, nbytes in sizes.items():
            click.echo(f"{path}  {human(nbytes)}")
