"""Sequences as animations, and animations as files."""

# T frames, S side of the arena in pixels

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from s2rm_data.errors import UsageError
from s2rm_data.store import Group

MILLISECONDS = {"bballs": 80, "sc2": 200}  # a frame
_ENLARGEMENT = 4  # of a pixel of the ball frames
_BALL, _GROUND = 255, 40  # grey levels


def sequence_pictures(group: Group, number: int) -> tuple[Iterator[Any], int]:
    """Pillow images of a sequence, made as they are asked for, and the milliseconds each is shown."""
    generator = group.settings["generator"]
    if generator == "bballs":
        return grey_pictures(group["frames"][number]), MILLISECONDS[generator]
    if generator == "sc2":
        return _battle_pictures(group, number), MILLISECONDS[generator]
    raise UsageError(f"{group.path} was made by {generator!r}; only bballs and sc2 can be drawn")


def grey_pictures(frames: NDArray[Any], enlargement: int = _ENLARGEMENT) -> Iterator[Any]:
    """(T, S, S) of 0 and 1 as grey images."""
    from PIL import Image

    for frame in frames:
        grey = np.where(frame > 0, _BALL, _GROUND).astype(np.uint8)
        yield Image.fromarray(grey.repeat(enlargement, 0).repeat(enlargement, 1))


def _battle_pictures(group: Group, number: int) -> Iterator[Any]:
    from PIL import Image

    from s2rm_data.generators.sc2 import draw
    from s2rm_data.generators.sc2.source import terrain_height

    scenario = group.settings["config"]["scenario"]
    pictures = draw.frames(
        group[number],
        agent=0,
        radius=group.attributes["radius"],
        terrain=terrain_height(scenario),
        title=f"{scenario}, episode {number}",
    )
    for picture in pictures:
        image = Image.fromarray(picture)
        yield image.resize((image.width // 2, image.height // 2), Image.Resampling.LANCZOS)


def save_gif(pictures: Iterable[Any], path: Path, milliseconds: int) -> None:
    """An endless animation; pictures are taken one by one."""
    rest = _one_palette(iter(pictures))
    next(rest).save(path, save_all=True, append_images=rest, duration=milliseconds, loop=0, optimize=True)


def _one_palette(pictures: Iterator[Any]) -> Iterator[Any]:
    """Colour pictures with a palette made of the first: its most frequent colours, and those farthest apart.

    Frequent ones alone, Pillow's choice, would give small patches such as those of a legend one colour for several.
    """
    from PIL import Image

    first = next(pictures)
    if first.mode != "RGB":
        yield first
        yield from pictures
        return
    methods = (Image.Quantize.MEDIANCUT, Image.Quantize.MAXCOVERAGE)
    colours = [value for method in methods for value in first.quantize(128, method=method).getpalette()[: 3 * 128]]
    palette = Image.new("P", (1, 1))
    palette.putpalette(colours)
    for picture in itertools.chain([first], pictures):
        yield picture.quantize(palette=palette, dither=Image.Dither.NONE)
