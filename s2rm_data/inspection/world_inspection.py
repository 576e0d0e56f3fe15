"""What inspection asks of a world, answered for any arrays: pictures of a sequence, statistics, and a figure of them.

A world overrides what it knows better; the commands `view`, `preview`, `stats` and `export` know none.

Any arrays as a scene: the largest image-like one as a raster, all others that go with time as curves."""

# N sequences, T steps, H x W an image

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from s2rm_data.core.errors import UsageError, did_you_mean
from s2rm_data.core.paint import captioned, contact_sheet, figure_image, grey_image, new_figure, panels, save_figure
from s2rm_data.core.progress import Progress
from s2rm_data.core.write import make_folder, write_whole
from s2rm_data.inspection.scene import Addition, Arena, Curve, Curves, Palette, Raster, Scene
from s2rm_data.inspection.stats import GroupStats, array_stats
from s2rm_data.making.world import Option, world_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from PIL.Image import Image

    from s2rm_data.store import Group

SHEET_COLUMNS = 8
_SIDE_PIXELS = 240  # of a drawn image, at least


class Preview(NamedTuple):
    """`name` of the files, images of the animation, and a contact sheet."""

    name: str
    images: Iterable[Image]
    sheet: Image


class Inspection:
    """Of any world. `milliseconds` is how long each picture of an animation is shown; `preview_options` are options of
    `s2rm-data preview` that the world adds."""

    milliseconds: ClassVar[int] = 120
    about: ClassVar[str] = ""  # a paragraph for the data card; empty: how the world's help begins
    tags: ClassVar[tuple[str, ...]] = ()  # for the data card
    preview_options: ClassVar[tuple[Option, ...]] = ()

    def pictures(self, group: Group, number: int) -> Iterator[Image]:
        """A sequence, made as it is asked for: its largest image-like array step by step, or lines over time."""
        name = image_array(group)
        if name is None:
            yield figure_image(_draw_lines({key: array[number] for key, array in group.arrays.items()}))
            return
        values = as_images(group[name][number], group[name].shape[2:])
        for step, levels in enumerate(_grey_levels(values)):
            enlarged = grey_image(levels, max(1, _SIDE_PIXELS // max(levels.shape[:2])))
            yield captioned(enlarged.convert("RGB"), f"{group.path} #{number}, {name}, step {step}")

    def preview(self, group: Group, number: int, rows: int, progress: Progress, **options: Any) -> Preview:
        """One sequence as an animation, and the first ones as a contact sheet; `options`: all of `preview_options`."""
        numbers = list(range(min(rows, len(group))))
        drawn = [list(self.pictures(group, n)) for n in numbers]
        steps = spread(len(drawn[0]), SHEET_COLUMNS)
        images = [[row[step] for step in steps] for row in drawn]
        sheet = contact_sheet(images, [f"#{n}" for n in numbers], [f"step {step}" for step in steps])
        return Preview(file_name(group, number), self.pictures(group, number), sheet)

    def scene(self, group: Group, number: int) -> Scene:
        """A sequence as the viewer draws it."""
        return array_scene(group, number, self.milliseconds)

    def details(self, group: Group, number: int, index: int) -> Addition:
        """What is shown of a thing that the user has selected, by its number among the scene's discs."""
        return Addition()

    def file_preview(self, path: Path, rows: int, progress: Progress, **options: Any) -> Preview | None:
        """A file that is not a store, drawn if it is one that the world knows, such as a replay."""
        return None

    def statistics(self, group: Group, progress: Progress) -> GroupStats:
        """`progress` is advanced by sequences."""
        return array_stats(group, progress)

    def draw_statistics(self, entries: Sequence[GroupStats]) -> Figure:
        """Of groups of this world: the mean of every array, step by step, one line per group."""
        names = list(dict.fromkeys(name for entry in entries for name in entry.curves))
        across = min(3, max(1, len(names)))
        figure = new_figure(3.6 * across + 1.6, 2.4 * -(-len(names) // across) + 0.3)
        axes = panels(figure, len(names), across) if names else []
        for panel, name in zip(axes, names, strict=True):
            for entry in (entry for entry in entries if name in entry.curves):
                marker = "o" if len(entry.curves[name]) == 1 else None
                panel.plot(entry.curves[name], label=entry.short_name, marker=marker)
            panel.set_title(f"{name}: mean", fontsize=9)
            panel.set_xlabel("step", fontsize=8)
            panel.tick_params(labelsize=7)
        if axes:
            figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right upper", fontsize=8, frameon=False)
        return figure


def inspection_of(group: Group) -> Inspection:
    return world_of(group).inspection() or Inspection()


def preview(group: Group, number: int = 0, *, rows: int = 6, **options: Any) -> Preview:
    """One sequence of a group as an animation (`images`), and the first ones as a contact sheet (`sheet`).

    `options` are the world's, as `s2rm-data preview` takes them.

    >>> s2.preview(store["sc2/3s5z/train"], 4, agent=3).sheet  # doctest: +SKIP"""
    inspection = inspection_of(group)
    known = {option.name: option for option in inspection.preview_options}
    for name in options.keys() - known.keys():
        others = did_you_mean(name, known, f"it has {', '.join(known) or 'none'}")
        raise UsageError(f"the preview of {group.path} has no option {name!r}{others}")
    if not 0 <= number < len(group):
        raise UsageError(f"number {number} is out of range; {group.path} has 0 to {len(group) - 1}")
    values = {name: option.value(options.get(name, option.default)) for name, option in known.items()}
    return inspection.preview(group, number, rows, Progress(), **values)


def stats_of(group: Group, progress: Progress | None = None) -> GroupStats:
    """What is in a group; `progress` is advanced by sequences."""
    return inspection_of(group).statistics(group, progress or Progress())


def save_stats(found: Sequence[tuple[Group, GroupStats]], folder: Path) -> list[Path]:
    """stats.json, and one figure per world as PNG and SVG."""
    make_folder(folder)
    paths = [folder / "stats.json"]
    text = json.dumps({entry.group: entry.to_json() for _, entry in found}, indent=1) + "\n"
    write_whole(paths[0], [text.encode()])
    for name, inspection in {entry.generator: inspection_of(group) for group, entry in found}.items():
        entries = [entry for _, entry in found if entry.generator == name]
        paths += save_figure(inspection.draw_statistics(entries), folder / name)
    return paths


def file_name(group: Group, number: int) -> str:
    return f"{group.path.replace('/', '-')}-{number}"


def _grey_levels(values: NDArray[np.float64]) -> NDArray[np.uint8]:
    """The sequence's smallest value is black, its largest white."""
    finite = values[np.isfinite(values)]
    low, high = (finite.min(), finite.max()) if finite.size else (0.0, 1.0)
    shown = np.nan_to_num(values, nan=low, posinf=high, neginf=low)
    return ((shown - low) * (255 / (high - low or 1))).astype(np.uint8)


def _draw_lines(sequence: dict[str, NDArray[Any]]) -> Figure:
    numeric = {name: np.asarray(values) for name, values in sequence.items() if np.asarray(values).dtype.kind in "biuf"}
    figure = new_figure(6.0, 1.6 * max(1, len(numeric)) + 0.4)
    for panel, (name, values) in zip(panels(figure, len(numeric), 1) if numeric else [], numeric.items(), strict=True):
        lines = values.reshape(len(values) if values.ndim else 1, -1)[:, :MOST_LINES]
        panel.plot(lines.astype(np.float64), marker="o" if len(lines) == 1 else None)
        panel.set_ylabel(name, fontsize=8)
        panel.tick_params(labelsize=7)
    return figure


def spread(length: int, count: int) -> list[int]:
    """At most `count` of the numbers below `length`, evenly spread from the first to the last."""
    return [int(n) for n in np.unique(np.linspace(0, length - 1, min(count, length)).astype(int))]


MOST_LINES = 8  # drawn of one array
_SMALLEST_SIDE = 4  # of an image; smaller arrays are drawn as lines
_MOST_CHANNELS = 4  # a last axis that is not longer holds channels, not columns
_MOST_VALUES = 1 << 24  # of a raster that is sent to a viewer
_MOST_STEPS = 2000
_MOST_WORDS = 8  # values of an array without steps that are spelled out
_GREYS = ("#141414", "#ffffff")
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c564b", "#7f7f7f")


def image_array(group: Group) -> str | None:
    """The array with the most values per sequence among those of (N, T, ..., H, W), or with channels after W."""
    numeric = {name: a.shape for name, a in group.arrays.items() if len(a.shape) >= 4 and a.dtype.kind in "biuf"}
    images = [name for name, shape in numeric.items() if min(_sides(shape[2:])) >= _SMALLEST_SIDE]
    return max(images, key=lambda name: math.prod(numeric[name][1:]), default=None)


def _sides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """(H, W) of what an array holds at one step."""
    has_channels = len(shape) > 2 and shape[-1] <= _MOST_CHANNELS
    return shape[-3:-1] if has_channels else shape[-2:]


def as_images(values: NDArray[Any], shape: tuple[int, ...]) -> NDArray[np.float64]:
    """(T, *shape) -> (T, H, W'): the first channel of up to `MOST_LINES` images beside one another."""
    values = np.asarray(values, np.float64)
    if _sides(shape) != shape[-2:]:
        values = values[..., 0]
    tiles = values.reshape(len(values), -1, *_sides(shape))[:, :MOST_LINES]
    return np.concatenate(np.moveaxis(tiles, 1, 0), axis=-1)


def array_scene(group: Group, number: int, milliseconds: int) -> Scene:
    """Which arrays go with time is told by their second axis: it is as long as that of the images, or the longest."""
    name = image_array(group)
    numeric = {key: array for key, array in group.arrays.items() if array.dtype.kind in "biuf"}
    lengths = [array.shape[1] for array in numeric.values() if len(array.shape) > 1]
    total = group[name].shape[1] if name else max(lengths, default=1)
    values = {key: np.asarray(array[number]) for key, array in numeric.items() if key != name}
    timed = {key: found for key, found in values.items() if found.ndim and len(found) == total}
    layers = [_raster(name, as_images(group[name][number], group[name].shape[2:]))] if name else []
    arena = Arena(extent=layers[0].extent, y_down=True) if layers else None
    steps = len(layers[0].values) if layers else min(total, _MOST_STEPS)
    shown = f"{total:,}" if steps == total else f"the first {steps:,} of {total:,}"
    facts = [("steps", shown), *((key, _words(found)) for key, found in values.items() if key not in timed)]
    curves = [_curves(key, found[:steps]) for key, found in timed.items()]
    return Scene(steps=steps, arena=arena, layers=layers, panels=curves, facts=facts, milliseconds=milliseconds)


def _raster(name: str, images: NDArray[np.float64]) -> Raster:
    _, height, width = images.shape
    images = images[: max(1, min(_MOST_STEPS, _MOST_VALUES // (height * width)))]
    finite = images[np.isfinite(images)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    palette = Palette(colours=_GREYS, low=low, high=high if high > low else low + 1)
    return Raster(title=name, values=images, extent=(0.0, 0.0, float(width), float(height)), palette=palette)


def _curves(name: str, values: NDArray[Any]) -> Curves:
    lines = values.reshape(len(values), -1)[:, :MOST_LINES]
    titles = [name] if lines.shape[1] == 1 else [str(line) for line in range(lines.shape[1])]
    drawn = zip(titles, lines.T.astype(np.float64), _COLOURS, strict=False)  # as many colours as lines at the most
    return Curves(title=name, curves=[Curve(title=title, values=line, colour=colour) for title, line, colour in drawn])


def _words(values: NDArray[Any]) -> str:
    flat = values.ravel()
    more = ", ..." if flat.size > _MOST_WORDS else ""
    return ", ".join(f"{value:g}" if values.dtype.kind == "f" else f"{value}" for value in flat[:_MOST_WORDS]) + more
