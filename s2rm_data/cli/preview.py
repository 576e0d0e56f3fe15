"""`s2rm-data preview`: look at what is in a store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from s2rm_data.cli.progress import progress_for
from s2rm_data.cli.run import EXIT_STATUSES
from s2rm_data.errors import ConflictError, DiskError, UsageError

if TYPE_CHECKING:
    from s2rm_data.store import Group, Store

GIF_MILLISECONDS = {"bballs": 80, "sc2": 200}  # a frame


@click.command(epilog=EXIT_STATUSES)
@click.argument("store", type=click.Path(path_type=Path))
@click.argument("group", required=False)
@click.option("-n", "--number", type=int, default=0, show_default=True, help="Sequence or episode to animate.")
@click.option("--rows", type=click.IntRange(1, 50), default=6, show_default=True, help="Rows of the contact sheet.")
@click.option("--agent", type=int, default=None, help="sc2: whose polar images to draw.  [default: who lives longest]")
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="bballs: seed of the crops' positions."
)
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    default=Path("previews"),
    show_default=True,
    help="Folder for the pictures.",
)
def preview(store: Path, group: str | None, out: Path, **options: Any) -> None:
    """Draw sequences of a GROUP of STORE: an animated GIF of one, and a PNG contact sheet (sc2: steps of the episode).

    Bouncing balls: the frame, with the crops that an observer sees outlined on it and drawn beside it. StarCraft II:
    the battle from above, beside one agent's polar images. Without GROUP, the first training group is drawn.

    \b
    Examples:
      s2rm-data preview data.zarr
      s2rm-data preview data.zarr bballs/test_6 -n 12
      s2rm-data preview data.zarr sc2/3s5z/train --agent 3
    """
    from s2rm_data.store import Store

    opened = Store(store)
    chosen = opened[group or _first_group(opened)]
    number = options["number"]
    if not 0 <= number < len(chosen):
        raise UsageError(f"--number {number} is out of range; {chosen.path} has 0 to {len(chosen) - 1}")
    generator = chosen.settings["generator"]
    if generator == "bballs" and options["agent"] is not None:
        raise UsageError(f"--agent is for StarCraft II; {chosen.path} has no agents: leave it out")
    _make_folder(out)
    name, animation, sheet = {"bballs": _bballs, "sc2": _sc2}[generator](chosen, **options)
    gif, png = _save(animation, sheet, out / name, GIF_MILLISECONDS[generator])
    click.echo(f"{gif}\n{png}")


def _first_group(store: Store) -> str:
    groups = store.groups
    if not groups:
        raise UsageError(f"{store.path} has no finished group to draw")
    return next((group for group in groups if group.endswith("/train")), groups[0])


def _make_folder(out: Path) -> None:
    if not out.parent.is_dir():
        raise UsageError(f"the folder {out.parent} does not exist; create it first, or choose another --out")
    if out.exists() and not out.is_dir():
        raise ConflictError(f"{out} is a file, not a folder; choose another --out")
    try:
        out.mkdir(exist_ok=True)
    except OSError as error:
        raise DiskError(f"cannot make {out}: {error.strerror}; choose another --out") from None


def _save(animation: list[Any], sheet: Any, stem: Path, milliseconds: int) -> tuple[Path, Path]:
    from s2rm_data.evaluation.pictures import save_gif

    gif, png = stem.with_name(stem.name + ".gif"), stem.with_name(stem.name + ".png")
    try:
        save_gif(animation, gif, milliseconds)
        sheet.save(png)
    except OSError as error:
        raise DiskError(f"cannot write to {stem.parent}: {error.strerror or error}; choose another --out") from None
    return gif, png


def _bballs(group: Group, *, number: int, rows: int, seed: int, agent: int | None) -> tuple[str, list[Any], Any]:
    from s2rm_data.generators.bballs import draw
    from s2rm_data.seeding import generator

    frames = group["frames"]
    numbers = list(range(min(rows, len(group))))
    rng = generator(seed, "preview")
    length, size = frames.shape[1:3]
    title = f"{group.path} #{number}"
    animation = list(draw.frames(frames[number], draw.sample_positions(rng, length, size), title=title))
    positions = [draw.sample_positions(rng, length, size) for _ in numbers]
    sheet = draw.contact_sheet([frames[i] for i in numbers], positions, [f"#{i}" for i in numbers])
    return f"{group.path.replace('/', '-')}-{number}", animation, sheet


def _sc2(group: Group, *, number: int, rows: int, seed: int, agent: int | None) -> tuple[str, list[Any], Any]:
    import numpy as np
    from PIL import Image

    from s2rm_data.generators.sc2 import draw
    from s2rm_data.generators.sc2.source import terrain_height

    attributes, config = group.attributes, group.settings["config"]
    episode = group[number]
    if agent is None:
        agent = int(episode["agent_alive"].sum(axis=0).argmax())
    options = {"agent": agent, "radius": attributes["radius"], "terrain": terrain_height(config["scenario"])}
    policy, outcome = attributes["policies"][int(episode["policy"])], attributes["outcomes"][int(episode["outcome"])]
    title = f"{config['scenario']}, episode {number}, policy {policy}, outcome: {outcome}"
    length = int(episode["length"])
    pictures = []
    with progress_for("drawing", "steps", quiet=False) as progress:
        progress.start(length, 0)
        for picture in draw.frames(episode, title=title, **options):
            pictures.append(Image.fromarray(picture))
            progress.advance(1)
    chosen = np.unique(np.linspace(0, length - 1, min(rows, length)).astype(int))
    sheet = Image.new("RGB", (pictures[0].width, pictures[0].height * len(chosen)), "white")
    for row, step in enumerate(chosen):
        sheet.paste(pictures[step], (0, row * pictures[0].height))
    return f"{group.path.replace('/', '-')}-{number}-agent{agent}", pictures, sheet
