"""`s2rm-data preview`: look at what is in a store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from s2rm_data.cli.options import STORE_PATH, group_argument, out_folder, with_world_options, world_values
from s2rm_data.core.addresses import StorePath
from s2rm_data.core.errors import ConflictError, UsageError
from s2rm_data.core.registry import WORLDS
from s2rm_data.display.progress import progress_for
from s2rm_data.making.world import Option, World, world_of

if TYPE_CHECKING:
    from s2rm_data.inspection.world_inspection import Inspection, Preview
    from s2rm_data.store import Store


def _options_of(world: World) -> tuple[Option, ...]:
    inspection = world.inspection()
    return inspection.preview_options if inspection else ()


@click.command(cls=with_world_options(_options_of))
@click.argument("store", type=STORE_PATH)
@group_argument(required=False)
@click.option("-n", "--number", type=int, default=0, show_default=True, help="Sequence or episode to animate.")
@click.option("--rows", type=click.IntRange(1, 50), default=6, show_default=True, help="Rows of the contact sheet.")
@out_folder("previews", "Folder for the pictures.")
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
    chosen = opened[group or _first_group(opened)]
    if not 0 <= number < len(chosen):
        raise UsageError(f"--number {number} is out of range; {chosen.path} has 0 to {len(chosen) - 1}")
    options = world_values([world_of(chosen)], _options_of, given)
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
            world_values([world], _options_of, given)
            return inspection, drawn
    raise UsageError(f"{path} is neither a store nor a replay saved by s2rm-data sc2-server; give one of them")


def _first_group(store: Store) -> str:
    groups = store.groups
    if not groups:
        raise UsageError(f"{store.path} has no finished group to draw")
    return next((group for group in groups if group.endswith("/train")), groups[0])


def _check_folder(out: Path) -> None:
    if not out.parent.is_dir():
        raise UsageError(f"the folder {out.parent} does not exist; create it first, or choose another --out")
    if out.exists() and not out.is_dir():
        raise ConflictError(f"{out} is a file, not a folder; choose another --out")
