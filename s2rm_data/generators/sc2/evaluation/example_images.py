"""One agent's polar images one step ahead: the truth, a copy of the last observation, and what each run predicts."""

# I x J polar cells

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from s2rm_data.core.paint import new_figure
from s2rm_data.evaluation.blocks import Piece, pieces
from s2rm_data.evaluation.world_evaluation import Context
from s2rm_data.generators.sc2.learning.battle_batches import BattleSource
from s2rm_data.generators.sc2.learning.battle_scores import PolarPrediction, PolarTargets, reference_images
from s2rm_data.starcraft.battle_paint import PANEL, RIM, TYPE_COLOURS, wedge_corners
from s2rm_data.starcraft.codes import HECS_CHANNELS, HECS_DIVISORS
from s2rm_data.store import Group

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class PolarImage(NamedTuple):
    friendly: NDArray[np.float32]  # (I, J) probability
    unit_type: NDArray[np.uint8]  # (I, J) the likeliest
    hecs: NDArray[np.float32]  # (4, I, J), as predicted, whether or not anything is thought to be there


@dataclass(frozen=True, kw_only=True)
class PolarExample:
    """`images` by name of the run."""

    title: str
    radius: float
    unit_types: list[str]
    truth: PolarImage
    copy: PolarImage
    images: dict[str, PolarImage]


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A `step` of None is the middle of the agent's life."""

    episode: int = 0
    agent: int = 0
    step: int | None = None


def why_not(group: Group, choice: Choice, context: Context) -> str:
    """Why a group has no such image; empty if it has one."""
    agents = group["action"].shape[2]
    if not 0 <= choice.agent < agents:
        return f"there is no agent {choice.agent} in {group.path}; it has agents 0 to {agents - 1}"
    if not 0 <= choice.episode < len(group):
        return f"there is no episode {choice.episode} in {group.path}; it has 0 to {len(group) - 1}"
    alive = _alive(_piece_with(group, choice.episode, context), choice)
    where = f"episode {choice.episode} of {group.path}"
    if not alive:
        return f"agent {choice.agent} is never alive after the first step of {where}"
    if choice.step is not None and choice.step - 1 not in alive:
        return f"agent {choice.agent} has no image at step {choice.step} of {where}; it has 1 to {alive[-1] + 1}"
    return ""


def polar_example(group: Group, choice: Choice, context: Context) -> PolarExample:
    """Of a group for which `why_not` is empty."""
    episode, agent = choice.episode, choice.agent
    piece = _piece_with(group, episode, context)
    row = episode - piece.first
    alive = _alive(piece, choice)
    index = alive[len(alive) // 2] if choice.step is None else choice.step - 1
    at = (row, index, agent)
    targets = piece.batch.targets
    assert isinstance(targets, PolarTargets) and isinstance(piece.source, BattleSource)
    copied = reference_images(piece.batch)["copy_previous"]
    images = {}
    with torch.inference_mode():
        for run in context.runs:
            prediction = run.predict(piece.batch)
            assert isinstance(prediction, PolarPrediction)
            friendly, unit_type, hecs = (part[at] for part in prediction)
            images[run.name] = _image(friendly.sigmoid(), unit_type.argmax(-3), hecs)
    where, radius = f"{group.path}, episode {episode}, agent {agent}, step {index + 1}", piece.source.grid.radius
    return PolarExample(
        title=f"{where}: what the agent will see one step ahead, within {radius:g} map units",
        radius=radius,
        unit_types=list(group.attributes["unit_types"]),
        truth=_image(*(part[at] for part in targets)),
        copy=_image(*(part[at] for part in copied)),
        images=images,
    )


def _piece_with(group: Group, episode: int, context: Context) -> Piece:
    found = pieces(group, limit=episode + 1, device=context.device, view=context.view)
    return next(piece for piece in found if piece.first + len(piece.requests) > episode)


def _alive(piece: Piece, choice: Choice) -> list[int]:
    """The predictions in the batch that the agent has a true image for: that of frame t + 1 is prediction t."""
    mask = piece.batch.query_mask[choice.episode - piece.first, :, choice.agent]
    return [int(index) for index in mask.nonzero().flatten().tolist()]


def _image(friendly: torch.Tensor, unit_type: torch.Tensor, hecs: torch.Tensor) -> PolarImage:
    return PolarImage(
        friendly.float().cpu().numpy(), unit_type.to(torch.uint8).cpu().numpy(), hecs.float().cpu().numpy()
    )


def draw_polar_example(example: PolarExample, titles: Mapping[str, str]) -> Figure:
    """One row per image, one column per channel; cells are drawn as the wedges of the map that they stand for."""
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
    handles = [Patch(fc=TYPE_COLOURS[k], ec="grey", label=example.unit_types[k]) for k in kinds]
    figure.legend(handles=handles, loc="outside lower center", ncols=max(1, len(handles)), fontsize=8, frameon=False)
    figure.suptitle(example.title, fontsize=9)
    return figure


def _draw_row(line: Any, image: PolarImage, channels: list[int], radius: float) -> list[Any]:
    """The meshes, from left to right. Cells without a unit, as the image itself says, are left blank."""
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Circle

    radial, angular = image.friendly.shape
    corners = wedge_corners(radial, angular, radius)
    pictures = [(np.ma.masked_less(image.friendly, 0.02), {"cmap": "Blues", "vmin": 0, "vmax": 1})]
    kinds = {"cmap": ListedColormap(TYPE_COLOURS), "vmin": -0.5, "vmax": len(TYPE_COLOURS) - 0.5}
    pictures.append((np.ma.masked_equal(image.unit_type, 0), kinds))
    stats = {"cmap": "YlOrRd", "vmin": 0, "vmax": 1}
    pictures += [(np.ma.masked_array(image.hecs[n], image.unit_type == 0), stats) for n in channels]
    meshes = []
    for panel, (values, options) in zip(line, pictures, strict=True):
        panel.set(xticks=[], yticks=[], aspect="equal", xlim=(-radius, radius), ylim=(-radius, radius))
        panel.set_frame_on(False)
        panel.add_patch(Circle((0, 0), radius, fc=PANEL, ec=RIM, lw=0.8, zorder=0))
        shown = np.ma.array(values, copy=True)
        shown[0] = shown[0, 0]  # ring 0 is one point
        meshes.append(panel.pcolormesh(corners[..., 0], corners[..., 1], shown, **options))
    return meshes
