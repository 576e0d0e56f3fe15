"""`s2rm-data view`: look at a store in the browser."""

from __future__ import annotations

import os
import sys
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from s2rm_data.addresses import StorePath
from s2rm_data.cli.options import STORE_PATH, runs_option
from s2rm_data.cli.progress import progress_for
from s2rm_data.cli.run import EXIT_STATUSES
from s2rm_data.cli.sizes import human
from s2rm_data.errors import ConflictError, UsageError, missing_component
from s2rm_data.options import whole_numbers

if TYPE_CHECKING:
    from s2rm_data.inspection.viewer.answers import Answers, Foresight
    from s2rm_data.store import Store


@click.command(epilog=EXIT_STATUSES)
@click.argument("store", type=STORE_PATH)
@runs_option(
    "Run folder of s2rm-train whose predictions are shown beside the truth, or a folder of them; may be repeated."
)
@click.option("--device", default=None, help="cpu, cuda or cuda:1 for --run.  [default: a GPU if there is one]")
@click.option("--port", type=click.IntRange(0, 65535), default=0, show_default=True, help="Port; 0 takes any free one.")
@click.option("--no-browser", is_flag=True, help="Say the address; open no browser.")
@click.option(
    "--export", type=click.Path(path_type=Path), metavar="FILE", help="Write one HTML file instead of serving."
)
@click.option("--group", "groups", multiple=True, help="Group in --export; may be repeated.  [default: one per world]")
@click.option("--numbers", default="0-2", show_default=True, help="Sequences of each group in --export: 0-2 or 4,7.")
@click.option("--overwrite", is_flag=True, help="Replace the file of --export.")
def view(
    store: StorePath,
    runs: tuple[Path, ...],
    device: str | None,
    port: int,
    no_browser: bool,
    export: Path | None,
    groups: tuple[str, ...],
    numbers: str,
    overwrite: bool,
) -> None:
    """Look at STORE in the browser: play any sequence, see what observers see and, with --run, what models predict.

    Serves a page on the loopback address of this machine until interrupted; nothing is loaded from a network. With
    --export, the same page with a few sequences inside it becomes one file, which needs neither store nor server.

    \b
    Examples:
      s2rm-data view data.zarr
      s2rm-data view data.zarr --run runs/s2gru --run runs/lstm
      s2rm-data view data.zarr --export page.html
      s2rm-data view data.zarr --group sc2/3s5z/val --numbers 4,7 --export battles.html
    """
    from s2rm_data.inspection.viewer.answers import Answers
    from s2rm_data.store import Store

    opened = Store(store)
    chosen = _groups(opened, groups)
    answers = Answers(opened, _foresight(runs, device) if runs else None)
    if export is None:
        _serve(answers, port, browser=not no_browser)
        return
    _check_target(export, overwrite)
    _write(answers, export, chosen, _numbers(numbers))


def _numbers(given: str) -> Sequence[int]:
    try:
        return whole_numbers(given, least=0)
    except UsageError as error:
        raise UsageError(f"--numbers is {given!r}: {error}") from None


def _groups(store: Store, given: Sequence[str]) -> list[str]:
    """Those given, if they are there; without any, the first training group of every world, or its first."""
    if not store.groups:
        raise UsageError(f"{store.path} has no finished group to show")
    if given:
        return [store[path].path for path in dict.fromkeys(given)]
    worlds: dict[str, str] = {}
    for path in sorted(store.groups, key=lambda path: not path.endswith("/train")):
        worlds.setdefault(path.partition("/")[0], path)
    return list(worlds.values())


def _foresight(runs: Sequence[Path], device: str | None) -> Foresight:
    try:
        from s2rm_data.evaluation.foresight import RunForesight
        from s2rm_data.evaluation.runs import load_runs
        from s2rm_data.models.device import choose_device
    except ModuleNotFoundError:
        raise missing_component("torch", "train", "predictions of a model") from None
    on = choose_device(device)
    return RunForesight(load_runs(runs, on), on)


def _serve(answers: Answers, port: int, *, browser: bool) -> None:
    from s2rm_data.inspection.viewer.server import HOST, ViewerServer

    try:
        server = ViewerServer(answers, port)
    except OSError as error:
        raise UsageError(f"port {port} of {HOST} cannot be used ({error.strerror}); choose another --port") from None
    with server:
        click.echo(f"s2rm-data: showing {server.url} (Ctrl-C ends it)", err=True)
        if browser and _has_screen():
            webbrowser.open(server.url)
        server.serve_forever()


def _has_screen() -> bool:
    """A browser in the terminal, which Python would start without a screen, could not show the page."""
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _check_target(export: Path, overwrite: bool) -> None:
    if not export.parent.is_dir():
        raise UsageError(f"the folder {export.parent} does not exist; create it first, or choose another --export")
    if export.is_dir() or (export.exists() and not overwrite):
        raise ConflictError(f"{export} is there already; choose another --export, or replace it with --overwrite")


def _write(answers: Answers, export: Path, groups: Sequence[str], numbers: Sequence[int]) -> None:
    from s2rm_data.inspection.viewer.single_file import write_page

    with progress_for("exporting", "answers", quiet=False) as progress:
        nbytes = write_page(answers, export, groups, numbers, progress)
    click.echo(str(export))
    click.echo(f"s2rm-data: {len(groups)} group{'s' * (len(groups) != 1)} in {human(nbytes)}", err=True)
