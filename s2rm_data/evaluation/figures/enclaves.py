"""Enclaves: one map a module, and all of them over one another."""

# M modules, S x S positions of the arena

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from s2rm_data.evaluation.figures.canvas import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ACROSS = 5


def draw_enclaves(maps: NDArray[np.float32], title: str, *, fixed_ball_px: float | None, unit: str) -> Figure:
    """maps (M, S, S), [module, y, x]. `fixed_ball_px`: radius of the ball in the centre, drawn as a circle."""
    modules, height, width = maps.shape
    down = -(-modules // _ACROSS)
    figure = new_figure(1.55 * _ACROSS + 4.2, max(1.62 * down, 3.2) + 0.5)
    left, right = figure.subfigures(1, 2, width_ratios=(1.55 * _ACROSS + 0.9, 3.3), squeeze=False)[0]
    axes = left.subplots(down, _ACROSS, squeeze=False)
    for panel in axes.flat[modules:]:
        panel.remove()
    down_is_up = "upper" if unit == "px" else "lower"  # rows of a frame run down, the map's y runs up
    extent = (0, width, height, 0) if unit == "px" else (0, width, 0, height)
    for number, panel in enumerate(axes.flat[:modules]):
        picture = panel.imshow(maps[number], vmin=0, vmax=1, cmap="magma", origin=down_is_up, extent=extent)
        share = float((maps[number] > 0).mean())
        panel.set_title(f"module {number}: {share:.0%}", fontsize=8)
        panel.set(xticks=[], yticks=[])
        _circle(panel, width, height, fixed_ball_px)
    bar = left.colorbar(picture, ax=axes.flat[:modules].tolist(), shrink=0.7)
    bar.set_label("Z(P(x), p)", fontsize=8)
    panel = right.subplots()
    panel.imshow(_overlay(maps), origin=down_is_up, extent=extent)
    for number in range(modules):
        colour = _colours(modules)[number]
        covered = (maps[number] > 0).astype(float)
        if 0 < covered.mean() < 1:
            panel.contour(
                np.arange(width) + 0.5, np.arange(height) + 0.5, covered, levels=[0.5], colors=[colour], linewidths=0.8
            )
    _circle(panel, width, height, fixed_ball_px)
    panel.set_title("overlay: the module with the largest Z,\nand the outline of each enclave", fontsize=8)
    panel.set_xlabel(f"x, {unit}", fontsize=8)
    panel.set_ylabel(f"y, {unit}", fontsize=8)
    panel.tick_params(labelsize=7)
    figure.suptitle(f"{title} (percent: part of the arena that the module answers for)", fontsize=10)
    return figure


def _circle(axes: object, width: int, height: int, radius: float | None) -> None:
    if radius is not None:
        from matplotlib.patches import Circle

        ring = Circle((width / 2, height / 2), radius, fill=False, ec="white", lw=0.8, ls="--")
        axes.add_patch(ring)  # type: ignore[attr-defined]


def _colours(modules: int) -> NDArray[np.float64]:
    """(M, 3)."""
    from matplotlib import colormaps

    name = "tab10" if modules <= 10 else "tab20"
    return np.array([colormaps[name](number % 20)[:3] for number in range(modules)])


def _overlay(maps: NDArray[np.float32]) -> NDArray[np.float64]:
    """(S, S, 3): the strongest module's colour, paler where it is weak, white where there is none."""
    strength = maps.max(0)[..., None]
    return 1 - strength * (1 - _colours(len(maps))[maps.argmax(0)])
