"""Looking at bouncing balls: frames with the crops that an observer sees, speeds, collisions, where pixels are on."""

# T frames, S side of the arena in pixels

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from s2rm_data.generators.bballs import draw
from s2rm_data.generators.bballs.general.physics import Physics
from s2rm_data.generators.bballs.scene import ball_scene
from s2rm_data.inspection.stats import GroupStats, Moments, blocks
from s2rm_data.inspection.world import Inspection, Preview, file_name
from s2rm_data.options import Option, whole
from s2rm_data.painting import grey_image, new_figure
from s2rm_data.progress import Progress
from s2rm_data.scene import Scene
from s2rm_data.seeding import generator
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
            yield grey_image(draw.levels(frame), _ENLARGEMENT)

    def preview(self, group: Group, number: int, rows: int, progress: Progress, *, seed: int = 0) -> Preview:  # type: ignore[override]
        frames = group["frames"]
        numbers = list(range(min(rows, len(group))))
        rng = generator(seed, "preview")
        length, size = frames.shape[1:3]
        positions = draw.sample_positions(rng, length, size)
        images = list(draw.frames(frames[number], positions, title=f"{group.path} #{number}"))
        others = [draw.sample_positions(rng, length, size) for _ in numbers]
        sheet = draw.contact_sheet([frames[i] for i in numbers], others, [f"#{i}" for i in numbers])
        return Preview(file_name(group, number), images, sheet)

    def scene(self, group: Group, number: int) -> Scene:
        return ball_scene(group, number, self.milliseconds)

    def statistics(self, group: Group, progress: Progress) -> GroupStats:
        config = group.settings["config"]
        frames = group["frames"].shape[1]
        speed, turns, on = Moments(), Moments(), np.zeros((config["size"], config["size"]))
        physics = Physics.of(group)
        top = physics.speed_limit
        edges, counts = np.linspace(0.0, top, SPEED_BINS + 1), np.zeros(SPEED_BINS, np.int64)
        for block in blocks(group, ("frames", "velocity"), progress):
            velocity = block["velocity"]
            found = np.linalg.norm(velocity, axis=-1)
            speed.add(found)
            counts += np.histogram(np.minimum(found, np.nextafter(top, 0)), edges)[0]
            turns.add(physics.collisions(velocity))
            on += physics.pixels_on(block["frames"]).sum((0, 1), dtype=np.int64)
        density = on / (len(group) * frames)
        row = {
            "sequences": len(group),
            "frames": frames,
            "balls": config["balls"],
            "radius_px": round(float(np.mean(config["radius_px"])), 3),
            "speed_mean_px_per_frame": round(speed.mean, 4),
            "speed_sd_px_per_frame": round(speed.deviation, 4),
            "speed_min_px_per_frame": round(speed.low, 4),
            "speed_max_px_per_frame": round(speed.high, 4),
            "collisions_per_ball_and_frame": round(turns.mean, 4),
            "pixels_on_share": round(float(density.mean()), 4),
        }
        return GroupStats(
            group=group.path,
            generator=str(group.settings["generator"]),
            row=row,
            maps={"density": density},
            histograms={"speed": (edges, counts)},
        )

    def draw_statistics(self, entries: Sequence[GroupStats]) -> Figure:
        """One column per group: where pixels are on, and how fast the balls are."""
        columns = len(entries)
        figure = new_figure(1.9 * columns + 1.2, 4.4)
        axes = figure.subplots(2, columns, squeeze=False, sharex="row")
        moving = max(float(e.maps["density"][e.maps["density"] < 1].max(initial=0.01)) for e in entries)
        for (above, below), entry in zip(axes.T, entries, strict=True):
            picture = _draw_density(above, entry, moving)
            _draw_speeds(below, entry)
        axes[0, 0].set_ylabel("row, px", fontsize=8)
        axes[1, 0].set_ylabel("share of balls and frames\n(dashed: mean)", fontsize=8)
        bar = figure.colorbar(picture, ax=axes[0].tolist(), shrink=0.9, extend="max")
        bar.set_label("share of frames in which\nthe pixel is on (fixed ball: 1)", fontsize=8)
        bar.ax.tick_params(labelsize=7)
        return figure


def _draw_density(axes: Any, entry: GroupStats, brightest: float) -> Any:
    side = len(entry.maps["density"])
    extent = (0, side, side, 0)
    picture = axes.imshow(
        entry.maps["density"], vmin=0, vmax=brightest, cmap="magma", extent=extent, interpolation="nearest"
    )
    axes.set_title(f"{entry.short_name}: {entry.row['balls']} ball{'s' * (entry.row['balls'] > 1)}", fontsize=9)
    axes.tick_params(labelsize=7)
    return picture


def _draw_speeds(axes: Any, entry: GroupStats) -> None:
    edges, counts = entry.histograms["speed"]
    axes.stairs(counts / max(counts.sum(), 1), edges, fill=True, color="#0072b2")
    axes.axvline(entry.row["speed_mean_px_per_frame"], color="black", lw=0.8, ls="--")
    axes.set_xlabel("speed, px/frame", fontsize=8)
    axes.tick_params(labelsize=7)
