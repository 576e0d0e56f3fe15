"""Looking at bouncing balls: frames with the crops that an observer sees, speeds, collisions, where pixels are on.

In pictures with crops, what no crop shows is dimmed, so that one sees how little of the world an observer has. Pillow
is imported when used."""

# T frames, V views, S side of the arena in pixels

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from s2rm_data.core import paint
from s2rm_data.core.check import whole
from s2rm_data.core.progress import Progress
from s2rm_data.core.seeding import generator
from s2rm_data.generators.bballs.inspection import ball_scene
from s2rm_data.inspection.scene import Scene
from s2rm_data.inspection.stats import GroupStats, Moments, blocks
from s2rm_data.inspection.world_inspection import Inspection, Preview, file_name
from s2rm_data.making.world import Option
from s2rm_data.store import Group

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from PIL.Image import Image

SPEED_BINS = 40
_ENLARGEMENT = 4  # of a pixel


class BallInspection(Inspection):
    milliseconds = 80
    about = (
        "Videos of bouncing balls in a closed box, with a fixed ball in its centre unless the settings list others, "
        "from exact, event-driven physics. "
        "An observer sees each frame through small crops at known places and is asked what it would see at others."
    )
    tags = ("bouncing balls", "video prediction")
    preview_options = (Option(name="seed", parse=whole(0), default=0, help="Seed of the crops' positions."),)

    def pictures(self, group: Group, number: int) -> Iterator[Image]:
        """The frames, without crops."""
        for frame in group["frames"][number]:
            yield paint.grey_image(ball_scene.levels(frame), _ENLARGEMENT)

    def preview(self, group: Group, number: int, rows: int, progress: Progress, *, seed: int = 0) -> Preview:  # type: ignore[override]
        frames, numbers, rng = group["frames"], range(min(rows, len(group))), generator(seed, "preview")
        length, size = frames.shape[1:3]
        positions = sample_positions(rng, length, size)
        images = list(frames_with_crops(frames[number], positions, title=f"{group.path} #{number}"))
        others = [sample_positions(rng, length, size) for _ in numbers]
        sheet = contact_sheet([frames[i] for i in numbers], others, [f"#{i}" for i in numbers])
        return Preview(file_name(group, number), images, sheet)

    def scene(self, group: Group, number: int) -> Scene:
        return ball_scene.ball_scene(group, number, self.milliseconds)

    def statistics(self, group: Group, progress: Progress) -> GroupStats:
        config, frames, physics = group.settings["config"], group["frames"].shape[1], ball_scene.Physics.of(group)
        speed, turns, on = Moments(), Moments(), np.zeros((config["size"], config["size"]))
        top = physics.speed_limit
        edges, counts = np.linspace(0.0, top, SPEED_BINS + 1), np.zeros(SPEED_BINS, np.int64)
        for block in blocks(group, ("frames", "velocity"), progress):
            found = np.linalg.norm(block["velocity"], axis=-1)
            speed.add(found)
            counts += np.histogram(np.minimum(found, np.nextafter(top, 0)), edges)[0]
            turns.add(physics.collisions(block["velocity"]))
            on += physics.pixels_on(block["frames"]).sum((0, 1), dtype=np.int64)
        density = on / (len(group) * frames)
        speeds = {"mean": speed.mean, "sd": speed.deviation, "min": speed.low, "max": speed.high}
        row = {"sequences": len(group), "frames": frames, "balls": config["balls"]}
        row["radius_px"] = round(float(np.mean(config["radius_px"])), 3)
        row |= {f"speed_{name}_px_per_frame": round(value, 4) for name, value in speeds.items()}
        row["collisions_per_ball_and_frame"] = round(turns.mean, 4)
        row["pixels_on_share"] = round(float(density.mean()), 4)
        found = {"maps": {"density": density}, "histograms": {"speed": (edges, counts)}}
        return GroupStats(group=group.path, generator=str(group.settings["generator"]), row=row, **found)

    def draw_statistics(self, entries: Sequence[GroupStats]) -> Figure:
        """One column per group: where pixels are on, and how fast the balls are."""
        columns = len(entries)
        figure = paint.new_figure(1.9 * columns + 1.2, 4.4)
        axes = figure.subplots(2, columns, squeeze=False, sharex="row")
        moving = max(float(e.maps["density"][e.maps["density"] < 1].max(initial=0.01)) for e in entries)
        for (above, below), entry in zip(axes.T, entries, strict=True):
            density, side = entry.maps["density"], len(entry.maps["density"])
            shown = {"vmin": 0, "vmax": moving, "cmap": "magma", "interpolation": "nearest"}
            picture = above.imshow(density, extent=(0, side, side, 0), **shown)
            balls, (edges, counts) = entry.row["balls"], entry.histograms["speed"]
            above.set_title(f"{entry.short_name}: {balls} ball{'s' * (balls > 1)}", fontsize=9)
            below.stairs(counts / max(counts.sum(), 1), edges, fill=True, color="#0072b2")
            below.axvline(entry.row["speed_mean_px_per_frame"], color="black", lw=0.8, ls="--")
            below.set_xlabel("speed, px/frame", fontsize=8)
            for panel in (above, below):
                panel.tick_params(labelsize=7)
        axes[0, 0].set_ylabel("row, px", fontsize=8)
        axes[1, 0].set_ylabel("share of balls and frames\n(dashed: mean)", fontsize=8)
        bar = figure.colorbar(picture, ax=axes[0].tolist(), shrink=0.9, extend="max")
        bar.set_label("share of frames in which\nthe pixel is on (fixed ball: 1)", fontsize=8)
        bar.ax.tick_params(labelsize=7)
        return figure


_LEGEND = "bright: seen by a crop; dim: seen by none"
_HIDDEN = 0.35  # brightness of what no crop shows


def sample_positions(rng: np.random.Generator, frames: int, size: int) -> NDArray[np.int64]:
    """(T, V, 2) central pixels (x, y) of the crops, uniform over the arena."""
    return rng.integers(0, size, (frames, ball_scene.VIEWS, 2))


def frames_with_crops(
    sequence: NDArray[np.uint8], positions: NDArray[np.int64], *, title: str = "", scale: int = 8
) -> Iterator[Any]:
    """One Pillow image per frame. `sequence` (T, S, S), or (T, S, S, 3) in colour; `positions` (T, V, 2)."""
    for number, (frame, centres) in enumerate(zip(sequence, positions, strict=True)):
        picture = _beside(_arena(frame, centres, scale), frame, centres, scale)
        yield paint.captioned(picture, f"{title} frame {number}   {_LEGEND}; right: the crops")


def contact_sheet(
    sequences: Sequence[NDArray[np.uint8]],
    positions: Sequence[NDArray[np.int64]],
    labels: Sequence[str],
    *,
    columns: int = 8,
    scale: int = 3,
) -> Any:
    """One row per sequence, `columns` of its frames evenly spread over time."""
    times = np.unique(np.linspace(0, len(sequences[0]) - 1, columns).astype(int))
    pairs, heads = zip(sequences, positions, strict=True), [f"frame {time}" for time in times]
    rows = [[_arena(sequence[time], centres[time], scale) for time in times] for sequence, centres in pairs]
    return paint.contact_sheet(rows, labels, heads, f"{_LEGEND}; coloured squares: the crops of that frame")


def _arena(frame: NDArray[np.uint8], centres: NDArray[np.int64], scale: int) -> Any:
    from PIL import ImageDraw

    size, reach = len(frame), ball_scene.CROP // 2
    seen = np.zeros((size, size), dtype=bool)
    for x, y in centres:
        seen[max(0, y - reach) : y + reach + 1, max(0, x - reach) : x + reach + 1] = True
    light = np.where(seen, 1.0, _HIDDEN)
    shown = ball_scene.levels(frame) * (light if frame.ndim == 2 else light[..., None])
    picture = paint.grey_image(shown.astype(np.uint8), scale).convert("RGB")
    pen = ImageDraw.Draw(picture)
    for (x, y), colour in zip(centres, ball_scene.view_colours(len(centres)), strict=True):
        box = ((x - reach) * scale, (y - reach) * scale, (x + reach + 1) * scale - 1, (y + reach + 1) * scale - 1)
        pen.rectangle([float(edge) for edge in box], outline=colour, width=max(1, scale // 4))
    return picture


def _beside(arena: Any, frame: NDArray[np.uint8], centres: NDArray[np.int64], scale: int) -> Any:
    """The arena with a block of the crops at its right, each framed in its colour."""
    from PIL import Image, ImageDraw

    rows, pitch = 5, arena.height // 5
    zoom = max(1, (pitch - 6) // ball_scene.CROP)
    canvas = Image.new("RGB", (arena.width + 8 + -(-len(centres) // rows) * pitch, arena.height), paint.PAPER)
    canvas.paste(arena, (0, 0))
    pen = ImageDraw.Draw(canvas)
    crops = ball_scene.crops_of(frame[None], centres[None])[0]
    for index, (crop, colour) in enumerate(zip(crops, ball_scene.view_colours(len(centres)), strict=True)):
        tile = paint.grey_image(ball_scene.levels(crop), zoom).convert("RGB")
        x, y = arena.width + 8 + index // rows * pitch + 3, index % rows * pitch + 3
        canvas.paste(tile, (x, y))
        pen.rectangle([x - 2, y - 2, x + tile.width + 1, y + tile.height + 1], outline=colour, width=2)
    return canvas
