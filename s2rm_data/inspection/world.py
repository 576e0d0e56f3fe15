"""What inspection asks of a world, answered for any arrays: pictures of a sequence, statistics, and a figure of them.

A world overrides what it knows better; the commands `view`, `preview`, `stats` and `export` know none.
"""

# N sequences, T steps, H x W an image

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from s2rm_data.inspection.arrays import MOST_LINES, array_scene, as_images, image_array
from s2rm_data.inspection.stats import GroupStats, array_stats, save_json
from s2rm_data.options import Option
from s2rm_data.painting import captioned, contact_sheet, figure_image, grey_image, new_figure, panels, save_figure
from s2rm_data.progress import Progress
from s2rm_data.scene import Addition, Scene
from s2rm_data.world import world_of

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
    `s2rm-data preview` that the world adds.
    """

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
        """One sequence as an animation, and the first ones as rows of a contact sheet.

        `options` are those of `preview_options`, all of them. `progress` may be started and advanced.
        """
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


def stats_of(group: Group, progress: Progress | None = None) -> GroupStats:
    """What is in a group; `progress` is advanced by sequences."""
    return inspection_of(group).statistics(group, progress or Progress())


def save_stats(found: Sequence[tuple[Group, GroupStats]], folder: Path) -> list[Path]:
    """stats.json, and one figure per world as PNG and SVG."""
    paths = [save_json([entry for _, entry in found], folder)]
    worlds = {entry.generator: inspection_of(group) for group, entry in found}
    for name, inspection in worlds.items():
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
