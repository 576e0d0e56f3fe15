"""Polar images of one agent: the truth, a copy of the last observation, and what each run predicts."""

# I x J polar cells

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from s2rm_data.evaluation.examples import PolarExample, PolarImage
from s2rm_data.evaluation.figures.canvas import new_figure
from s2rm_data.generators.sc2.draw import wedge_corners
from s2rm_data.generators.sc2.polar import HECS_CHANNELS, HECS_DIVISORS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TYPE_COLOURS = (
    "#ffffff", "#4e79a7", "#59a14f", "#9c755f", "#f28e2b", "#e15759", "#b07aa1", "#76b7b2", "#edc948", "#79706e",
)  # fmt: skip


def draw_polar_example(example: PolarExample, titles: Mapping[str, str]) -> Figure:
    """A row an image, a column a channel; cells are drawn as the wedges of the map that they stand for."""
    from matplotlib.patches import Patch

    rows = {"truth": example.truth, "copy of the\nlast observation": example.copy}
    rows |= {titles[name]: image for name, image in example.images.items() if name in titles}
    channels = [n for n in range(len(HECS_CHANNELS)) if example.truth.hecs[n].any()]
    figure = new_figure(1.75 * (2 + len(channels)) + 1.4, 1.85 * len(rows) + 1.0)
    axes = figure.subplots(len(rows), 2 + len(channels), squeeze=False)
    for line, (title, image) in zip(axes, rows.items(), strict=True):
        drawn = _draw_row(line, image, channels, example.radius)
        line[0].set_ylabel(title, fontsize=9)
    heads = ["friendly marker\n(probability)", "unit type\n(likeliest)"]
    heads += [f"{HECS_CHANNELS[n]} / {HECS_DIVISORS[n]:g}" for n in channels]
    for panel, head in zip(axes[0], heads, strict=True):
        panel.set_title(head, fontsize=9)
    for mesh, panels, label in ((drawn[0], axes[:, 0], "probability"), (drawn[-1], axes[:, 2:], "value")):
        if panels.size:
            bar = figure.colorbar(mesh, ax=panels.ravel().tolist(), location="bottom", shrink=0.6, aspect=30, pad=0.02)
            bar.set_label(label, fontsize=8)
            bar.ax.tick_params(labelsize=7)
    kinds = sorted({int(k) for image in rows.values() for k in np.unique(image.unit_type)} - {0})
    handles = [Patch(fc=_TYPE_COLOURS[k], ec="grey", label=example.unit_types[k]) for k in kinds]
    figure.legend(handles=handles, loc="outside lower center", ncols=max(1, len(handles)), fontsize=8, frameon=False)
    where = f"{example.group}, episode {example.episode}, agent {example.agent}, step {example.step}"
    figure.suptitle(f"{where}: what the agent will see one step ahead, within {example.radius:g} map units", fontsize=9)
    return figure


def _draw_row(line: Any, image: PolarImage, channels: list[int], radius: float) -> list[Any]:
    """The meshes, from left to right. Values within 0.02 of nothing are left blank."""
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Circle

    radial, angular = image.friendly.shape
    corners = wedge_corners(radial, angular, radius)
    pictures = [(np.ma.masked_less(image.friendly, 0.02), {"cmap": "Blues", "vmin": 0, "vmax": 1})]
    kinds = {"cmap": ListedColormap(_TYPE_COLOURS), "vmin": -0.5, "vmax": len(_TYPE_COLOURS) - 0.5}
    pictures.append((np.ma.masked_equal(image.unit_type, 0), kinds))
    stats = {"cmap": "YlOrRd", "vmin": 0, "vmax": 1}
    pictures += [(np.ma.masked_array(image.hecs[n], np.abs(image.hecs[n]) < 0.02), stats) for n in channels]
    meshes = []
    for panel, (values, options) in zip(line, pictures, strict=True):
        panel.set(xticks=[], yticks=[], aspect="equal", xlim=(-radius, radius), ylim=(-radius, radius))
        panel.set_frame_on(False)
        panel.add_patch(Circle((0, 0), radius, fc="#f4f4f4", ec="#bbbbbb", lw=0.8, zorder=0))
        shown = np.ma.array(values, copy=True)
        shown[0] = shown[0, 0]  # ring 0 is one point
        meshes.append(panel.pcolormesh(corners[..., 0], corners[..., 1], shown, **options))
    return meshes
