"""`s2rm-data view` and `preview`: look at what is in a store, in the browser or as pictures."""

from __future__ import annotations

import os
import sys
import urllib.parse
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from s2rm_data.cli import options as shared
from s2rm_data.core.addresses import StorePath
from s2rm_data.core.amounts import human
from s2rm_data.core.errors import ConflictError, UsageError
from s2rm_data.core.optional import needed
from s2rm_data.core.registry import WORLDS
from s2rm_data.display.progress import progress_for
from s2rm_data.making.world import Option, World, whole_numbers, world_of

if TYPE_CHECKING:
    from s2rm_data.inspection.viewer.answers import Answers, Predictor
    from s2rm_data.inspection.world_inspection import Inspection, Preview
    from s2rm_data.store import Store

_RUNS = "Run folder of s2rm-train whose predictions are shown beside the truth, or a folder of them; may be repeated."
_GROUP = "Group shown first, or in --export; there it may be repeated.  [default: one per world]"
_NUMBERS = "Sequence shown first, or those of each group in --export: 0-2 or 4,7.  [default: 0; in --export 0-2]"


@click.command
@click.argument("store", type=shared.STORE_PATH)
@shared.runs_option(_RUNS)
@click.option("--device", default=None, help="cpu, cuda or cuda:1 for --run.  [default: a GPU if there is one]")
@click.option("--port", type=click.IntRange(0, 65535), default=0, show_default=True, help="Port; 0 takes any free one.")
@click.option("--no-browser", is_flag=True, help="Say the address; open no browser.")
@shared.path_option("--export", metavar="FILE", words="Write one HTML file instead of serving.")
@click.option("--group", "groups", multiple=True, shell_complete=shared.complete_groups, help=_GROUP)
@click.option("--numbers", default=None, help=_NUMBERS)
@click.option("--overwrite", is_flag=True, help="Replace the file of --export.")
def view(store: StorePath, runs: tuple[Path, ...], export: Path | None, **options: Any) -> None:
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
    from s2rm_data.inspection.viewer.page import write_page
    from s2rm_data.store import Store

    opened, groups = Store(store), options["groups"]
    chosen = _groups(opened, groups)
    answers = Answers(opened, _predictor(runs, options["device"]) if runs else None)
    if export is None:
        first = _first_shown(opened, groups, options["numbers"])
        _serve(answers, options["port"], first, browser=not options["no_browser"])
        return
    if not export.parent.is_dir():
        raise UsageError(f"the folder {export.parent} does not exist; create it first, or choose another --export")
    if export.is_dir() or (export.exists() and not options["overwrite"]):
        raise ConflictError(f"{export} is there already; choose another --export, or replace it with --overwrite")
    shown = _numbers(options["numbers"] or "0-2")
    with progress_for("exporting", "answers", quiet=False) as progress:
        nbytes = write_page(answers, export, chosen, shown, progress)
    click.echo(str(export))
    click.echo(f"s2rm-data: {len(chosen)} group{'s' * (len(chosen) != 1)} in {human(nbytes)}", err=True)


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
        # A browser in the terminal, which Python would start without a screen, could not show the page.
        screen = sys.platform in ("darwin", "win32") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
        if browser and screen:
            webbrowser.open(server.url + shown)
        server.serve_forever()


def _options_of(world: World) -> tuple[Option, ...]:
    inspection = world.inspection()
    return inspection.preview_options if inspection else ()


@click.command(cls=shared.with_world_options(_options_of))
@click.argument("store", type=shared.STORE_PATH)
@shared.group_argument(required=False)
@click.option("-n", "--number", type=int, default=0, show_default=True, help="Sequence or episode to animate.")
@click.option("--rows", type=click.IntRange(1, 50), default=6, show_default=True, help="Rows of the contact sheet.")
@shared.out_folder("previews", "Folder for the pictures.")
def preview(store: StorePath, group: str | None, number: int, rows: int, out: Path, given: dict[str, Any]) -> None:
    """Draw sequences of a GROUP of STORE, or a saved REPLAY: an animated GIF of one, and a PNG contact sheet.

    Bouncing balls: the frame, with the crops that an observer sees outlined on it and drawn beside it. StarCraft II:
    the battle from above, beside one agent's polar images; the contact sheet shows steps of the episode. Worlds of
    plug-ins are drawn as they say, or else the largest images among their arrays. Without GROUP, the first training
    group is drawn. A replay is a file that SMAC, pysc2 or python-sc2 saved while playing against s2rm-data sc2-server.

    \b
    Examples:
      s2rm-data preview data.zarr
      s2rm-data preview data.zarr bballs/test_6 -n 12
      s2rm-data preview data.zarr sc2/3s5z/train --agent 3
      s2rm-data preview sc2/Replays/3m_2026-01-01-12-00-00.SC2Replay
    """
    from s2rm_data.inspection.world_inspection import inspection_of
    from s2rm_data.store import Store

    if isinstance(store, Path) and store.is_file():
        _save(*_drawn_file(store, group, rows, given), out)
        return
    opened = Store(store)
    if not group and not opened.groups:
        raise UsageError(f"{opened.path} has no finished group to draw")
    chosen = opened[group or min(opened.groups, key=lambda path: not path.endswith("/train"))]
    if not 0 <= number < len(chosen):
        raise UsageError(f"--number {number} is out of range; {chosen.path} has 0 to {len(chosen) - 1}")
    options = shared.world_values([world_of(chosen)], _options_of, given)
    _check_folder(out)
    inspection = inspection_of(chosen)
    with progress_for("drawing", "steps", quiet=False) as progress:
        drawn = inspection.preview(chosen, number, rows, progress, **options)
    _save(inspection, drawn, out)


def _save(inspection: Inspection, drawn: Preview, out: Path) -> None:
    from s2rm_data.core.paint import save_gif, save_image
    from s2rm_data.core.write import make_folder

    _check_folder(out)
    make_folder(out)
    click.echo(str(save_gif(drawn.images, out / f"{drawn.name}.gif", inspection.milliseconds)))
    click.echo(str(save_image(drawn.sheet, out / f"{drawn.name}.png")))


def _drawn_file(path: Path, group: str | None, rows: int, given: dict[str, Any]) -> tuple[Inspection, Preview]:
    """By the first world that knows the file."""
    if group is not None:
        raise UsageError(f"{path} is a file and has no groups; leave out {group!r}")
    for world in (WORLDS.load(name) for name in WORLDS.names()):
        inspection = world.inspection()
        options = {name: value for name, value in given.items() if name in {o.name for o in _options_of(world)}}
        with progress_for("drawing", "steps", quiet=False) as progress:
            drawn = inspection.file_preview(path, rows, progress, **options) if inspection else None
        if drawn is not None:
            shared.world_values([world], _options_of, given)
            return inspection, drawn
    raise UsageError(f"{path} is neither a store nor a replay saved by s2rm-data sc2-server; give one of them")


def _check_folder(out: Path) -> None:
    if not out.parent.is_dir():
        raise UsageError(f"the folder {out.parent} does not exist; create it first, or choose another --out")
    if out.exists() and not out.is_dir():
        raise ConflictError(f"{out} is a file, not a folder; choose another --out")
