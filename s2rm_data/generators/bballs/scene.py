"""A sequence of balls as a scene: the frames, the balls and the crops that evaluation shows to models, the energies."""

# T frames, K balls, V views, S side of the arena in pixels

from __future__ import annotations

import colorsys
import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from s2rm_data.generators.bballs.draw import CROP, VIEWS, levels
from s2rm_data.generators.bballs.general.physics import Physics
from s2rm_data.scene import (
    Arena,
    Boxes,
    Curve,
    Curves,
    Discs,
    Marks,
    Palette,
    Picture,
    Pictures,
    Raster,
    Reading,
    Scene,
)
from s2rm_data.seeding import generator

if TYPE_CHECKING:
    from s2rm_data.store import Group

MOST_FRAMES = 2000  # shown of one sequence
_MOST_BYTES = 100_000_000  # of its frames
PIXELS = Palette(colours=("#282828", "#ffffff"), names=("off", "on"))
_GREYS = Palette(colours=("#282828", "#ffffff"), high=255.0)
_STANDING = "#939393"  # fixed balls and walls in colour
BALL_COLOURS = ("#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
_TOTAL, _WHOLE = "#888888", "#444444"


def view_positions(number: int, frames: int, size: int, views: int = VIEWS) -> NDArray[np.int16]:
    """(T, V, 2) central pixels of the crops that evaluation shows to models of this sequence."""
    return generator(0, "evaluation/views", number).integers(0, size, (frames, views, 2), dtype=np.int16)


def view_colours(count: int = VIEWS) -> list[str]:
    hues = (colorsys.hsv_to_rgb(index / count, 0.75, 1.0) for index in range(count))
    return ["#" + "".join(f"{int(255 * part):02x}" for part in hue) for hue in hues]


def ball_scene(group: Group, number: int, milliseconds: int) -> Scene:
    stored = group["frames"]
    total, size = stored.shape[1], stored.shape[2]
    steps = max(1, min(total, MOST_FRAMES, _MOST_BYTES // math.prod(stored.shape[2:])))
    position, velocity = group["position"][number][:steps], group["velocity"][number][:steps]
    centre = view_positions(number, total, size)[:steps]
    everywhere = (0.0, 0.0, float(size), float(size))
    physics = Physics.of(group, number)
    frames, palette = stored[number][:steps], _palette(physics.config)
    bits = palette is PIXELS
    shown = np.packbits(frames, axis=-1) if bits else levels(frames) if palette is not _GREYS else frames
    return Scene(
        steps=steps,
        arena=Arena(extent=everywhere, y_down=True, unit="px"),
        layers=(
            Raster(title="frame", values=shown, extent=everywhere, palette=palette, width=size, bits=bits),
            Boxes(
                title="crops", centre=centre + 0.5, side=CROP, colours=view_colours(), dim="#000000a6"
            ),
            _discs(position, velocity, np.atleast_1d(group["radius"][number]), physics),
            _collisions(position, velocity, physics),
        ),
        panels=(_crops(frames, centre, palette), _energies(position, velocity, physics)),
        facts=_facts(group, number, total, steps),
        step_word="frame",
        milliseconds=milliseconds,
    )  # fmt: skip


def _palette(config: dict[str, Any]) -> Palette:
    """Of frames as they were rendered; of colour frames it is the legend."""
    render = config.get("render", "binary")
    if render != "colour":
        return PIXELS if render == "binary" else _GREYS
    names = [f"ball {ball + 1}" for ball in range(config["balls"])]
    colours = ["#282828", _STANDING, *ball_colours(config["balls"])]
    return Palette(colours=colours, names=["nothing", "fixed balls and walls", *names])


def _facts(group: Group, number: int, total: int, steps: int) -> list[tuple[str, str]]:
    config: dict[str, Any] = group.settings["config"]
    shown = f"{total:,}" if steps == total else f"the first {steps:,} of {total:,}"
    radius = "-".join(f"{part:g}" for part in np.unique(config["radius_px"]))
    facts = [("balls", str(config["balls"])), ("frames", shown), ("radius", f"{radius} px")]
    if any(config.get("gravity", ())):
        facts.append(("gravity", "{:g}, {:g} px/frame²".format(*config["gravity"])))
    return [*facts, ("preset", str(config["preset"])), ("seed", str(int(group["seed"][number])))]


def _discs(position: NDArray[Any], velocity: NDArray[Any], radius: NDArray[Any], physics: Physics) -> Discs:
    balls = position.shape[1]
    speed = np.linalg.norm(velocity, axis=-1)
    return Discs(
        title="outlines of the balls",
        position=position,
        radius=np.broadcast_to(radius, (balls,)),
        colours=ball_colours(balls),
        names=[f"ball {ball + 1}" for ball in range(balls)],
        letters=[str(ball + 1) for ball in range(balls)],
        readings=(
            Reading(title="speed", values=speed, unit="px/frame"),
            Reading(title="kinetic energy", values=physics.mass * speed**2 / 2, unit=physics.energy_unit),
        ),
        outline=True,
    )


def ball_colours(balls: int) -> list[str]:
    return [BALL_COLOURS[ball % len(BALL_COLOURS)] for ball in range(balls)]


def _collisions(position: NDArray[Any], velocity: NDArray[Any], physics: Physics) -> Marks:
    step, ball = np.nonzero(physics.collisions(velocity))
    step = step + 1
    return Marks(title="collisions since the frame before", step=step, position=position[step, ball], colour="#ffd400")


def _crops(frames: NDArray[np.uint8], centre: NDArray[np.int16], palette: Palette) -> Pictures:
    """As the loader cuts them: zero outside the arena."""
    steps, views = centre.shape[:2]
    edge = (CROP // 2, CROP // 2)
    padded = np.pad(frames, ((0, 0), edge, edge, *[(0, 0)] * (frames.ndim - 3)))
    reach = np.arange(CROP)
    rows = centre[:, :, 1, None, None].astype(np.int64) + reach[:, None]
    columns = centre[:, :, 0, None, None].astype(np.int64) + reach
    crops = padded[np.arange(steps)[:, None, None, None], rows, columns]
    crops = levels(crops) if frames.ndim == 4 else crops
    pictures = [
        Picture(title=f"{view + 1}", values=crops[:, view], palette=palette, border=colour)
        for view, colour in enumerate(view_colours(views))
    ]
    note = "What an observer sees: crops at random places, the same that evaluation shows to models."
    return Pictures(title=f"{views} crops of {CROP} x {CROP} pixels", pictures=pictures, note=note, small=True)


def _energies(position: NDArray[Any], velocity: NDArray[Any], physics: Physics) -> Curves:
    energy = physics.mass * (velocity.astype(np.float64) ** 2).sum(-1) / 2
    curves = [
        Curve(title=f"ball {ball + 1}", values=energy[:, ball], colour=colour)
        for ball, colour in enumerate(ball_colours(energy.shape[1]))
    ]
    total = Curve(title="all", values=energy.sum(1), colour=_TOTAL)
    if any(physics.gravity):
        whole = energy.sum(1) + physics.potential(position).sum(1)
        curves.append(Curve(title="all, with potential energy", values=whole, colour=_WHOLE))
    return Curves(title="kinetic energy", curves=[*curves, total], unit=physics.energy_unit, low=0.0)
