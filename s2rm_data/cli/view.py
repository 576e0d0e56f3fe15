"""`s2rm-data view`: look at a store in the browser."""

from __future__ import annotations

import os
import sys
import urllib.parse
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from s2rm_data.cli.options import STORE_PATH, complete_groups, runs_option
from s2rm_data.core.addresses import StorePath
from s2rm_data.core.amounts import human
from s2rm_data.core.errors import ConflictError, UsageError
from s2rm_data.core.optional import needed
from s2rm_data.display.progress import progress_for
from s2rm_data.making.world import whole_numbers

if TYPE_CHECKING:
    from s2rm_data.inspection.viewer.answers import Answers, Predictor
    from s2rm_data.store import Store


@click.command
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
@click.option(
    "--group",
    "groups",
    multiple=True,
    shell_complete=complete_groups,
    help="Group shown first, or in --export; there it may be repeated.  [default: one per world]",
)
@click.option(
    "--numbers",
    default=None,
    help="Sequence shown first, or those of each group in --export: 0-2 or 4,7.  [default: 0; in --export 0-2]",
)
@click.option("--overwrite", is_flag=True, help="Replace the file of --export.")
def view(
    store: StorePath,
    runs: tuple[Path, ...],
    device: str | None,
    port: int,
    no_browser: bool,
    export: Path | None,
    groups: tuple[str, ...],
    numbers: str | None,
    overwrite: bool,
) -> None:
    """Look at STORE in the browser: play any sequence, see what observers see and, with --run, what models predict.

    Serves a page on the loopback address of this machine until interrupted; nothing is loaded from a network. With
    --export, the same page with a few sequences inside it becomes one file, which needs neither store nor server.

    \b
    Examples:
      s2rm-data view data.zarr
      s2rm-data view data.zarr --run runs/s2gru --run runs/lstm
      s2rm-data view data.zarr --group sc2/3s5z/val --numbers 4
      s2rm-data view data.zarr --export page.html
      s2rm-data view data.zarr --group sc2/3s5z/val --numbers 4,7 --export battles.html
    """
    from s2rm_data.inspection.viewer.answers import Answers
    from s2rm_data.store import Store

    opened = Store(store)
    chosen = _groups(opened, groups)
    answers = Answers(opened, _predictor(runs, device) if runs else None)
    if export is None:
        _serve(answers, port, _first_shown(opened, groups, numbers), browser=not no_browser)
        return
    _check_target(export, overwrite)
    _write(answers, export, chosen, _numbers(numbers or "0-2"))


def _first_shown(store: Store, groups: Sequence[str], numbers: str | None) -> str:
    """The part of the address that says what the page opens with."""
    if len(groups) > 1 or (numbers and len(_numbers(numbers)) > 1):
        raise UsageError("the page opens with one sequence; give one --group and one of --numbers, or --export FILE")
    if not groups and numbers is None:
        return ""
    path, number = _groups(store, groups)[0], _numbers(numbers or "0")[0]
    if number >= len(store[path]):
        raise UsageError(f"--numbers {number} is out of range; {path} has 0 to {len(store[path]) - 1}")
    return f"#{urllib.parse.urlencode({'group': path, 'number': number})}"


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


def _predictor(runs: Sequence[Path], device: str | None) -> Predictor:
    needed("torch", "train", "predictions of a model")
    from s2rm_data.evaluation.runs import load_runs
    from s2rm_data.evaluation.viewer_predictions import RunPredictor
    from s2rm_data.models.device import choose_device

    on = choose_device(device)
    return RunPredictor(load_runs(runs, on), on)


def _serve(answers: Answers, port: int, shown: str, *, browser: bool) -> None:
    from s2rm_data.inspection.viewer.server import HOST, ViewerServer

    try:
        server = ViewerServer(answers, port)
    except OSError as error:
        raise UsageError(f"port {port} of {HOST} cannot be used ({error.strerror}); choose another --port") from None
    with server:
        click.echo(f"s2rm-data: showing {server.url}{shown} (Ctrl-C ends it)", err=True)
        if browser and _has_screen():
            webbrowser.open(server.url + shown)
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
    from s2rm_data.inspection.viewer.page import write_page

    with progress_for("exporting", "answers", quiet=False) as progress:
        nbytes = write_page(answers, export, groups, numbers, progress)
    click.echo(str(export))
    click.echo(f"s2rm-data: {len(groups)} group{'s' * (len(groups) != 1)} in {human(nbytes)}", err=True)
