"""A sequence of balls as a scene: the frames, the balls and the crops that evaluation shows to models, the energies."""

# T frames, K balls, V views, S side of the arena in pixels

from __future__ import annotations

import colorsys
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from s2rm_data.core.seeding import generator
from s2rm_data.inspection import scene

if TYPE_CHECKING:
    from s2rm_data.store import Group

CROP = 11  # side of a crop in pixels (paper, section Video Prediction from Crops)
VIEWS = 10  # crops per frame (same place)
_BALL, _GROUND = 255, 40  # grey levels
TURN_PX_PER_FRAME = 1e-3  # a smaller change of velocity is the rounding of float32
_HALF_ON = {"grey": 128, "colour": 64}  # about the level of a pixel that is half covered


@dataclass(frozen=True, kw_only=True)
class Physics:
    config: dict[str, Any]
    mass: NDArray[np.float64] | float = 1.0  # (K,)

    @classmethod
    def of(cls, group: Group, number: int | None = None) -> Physics:
        """Of a group or, with the masses, of one of its sequences."""
        config = group.settings["config"]
        masses = None if number is None or "mass" not in config else np.asarray(group["mass"][number])
        return cls(config=config, mass=1.0 if masses is None else masses)

    @property
    def gravity(self) -> NDArray[np.float64]:
        return np.array(self.config.get("gravity", (0.0, 0.0)))

    @property
    def energy_unit(self) -> str:
        return "px²/frame²" if "mass" not in self.config else "mass px²/frame²"

    @property
    def speed_limit(self) -> float:
        """Px/frame, somewhat above what a ball can reach: collisions hand all energy to one of them, the lightest."""
        c = self.config
        speeds = c["speed_px_per_frame"]
        fastest = c["system_speed_px_per_frame"] if speeds is None else speeds[1] * math.sqrt(c["balls"])
        if "mass" not in c:
            return 1.02 * float(fastest)
        light, heavy = {"equal": (1.0, 1.0), "area": [r * r for r in c["radius_px"]]}.get(c["mass"], c["mass_range"])
        fall = 2 * np.abs(self.gravity).sum() * c["size"] * c["balls"]
        return 1.02 * math.sqrt((float(fastest) ** 2 + fall) * heavy / light)

    def pixels_on(self, frames: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """(..., S, S) of 0 and 1: binary frames as they are, in others what is at least about half covered."""
        render = self.config.get("render", "binary")
        if render == "binary":
            return frames
        return ((frames.max(-1) if render == "colour" else frames) >= _HALF_ON[render]).astype(np.uint8)

    def collisions(self, velocity: NDArray[Any]) -> NDArray[np.bool_]:
        """(..., T - 1, K): the velocity has changed since the frame before by other than gravity."""
        turn = np.diff(velocity, axis=-3) - self.gravity.astype(velocity.dtype)
        return np.asarray((np.abs(turn) > TURN_PX_PER_FRAME).any(-1))

    def potential(self, position: NDArray[Any]) -> NDArray[np.float64]:
        """(..., K) energy of the balls' heights over the sides that gravity points to."""
        height = np.where(self.gravity > 0, self.config["size"] - position.astype(np.float64), position)
        return np.asarray(self.mass * (height @ np.abs(self.gravity)))


MOST_FRAMES = 2000  # shown of one sequence
_MOST_BYTES = 100_000_000  # of its frames
PIXELS = scene.Palette(colours=("#282828", "#ffffff"), names=("off", "on"))
_GREYS = scene.Palette(colours=("#282828", "#ffffff"), high=255.0)
_STANDING = "#939393"  # fixed balls and walls in colour
BALL_COLOURS = ("#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
_TOTAL, _WHOLE = "#888888", "#444444"


def view_positions(number: int, frames: int, size: int, views: int = VIEWS) -> NDArray[np.int16]:
    """(T, V, 2) central pixels of the crops that evaluation shows to models of this sequence."""
    return generator(0, "evaluation/views", number).integers(0, size, (frames, views, 2), dtype=np.int16)


def view_colours(count: int = VIEWS) -> list[str]:
    hues = (colorsys.hsv_to_rgb(index / count, 0.75, 1.0) for index in range(count))
    return ["#" + "".join(f"{int(255 * part):02x}" for part in hue) for hue in hues]


def ball_scene(group: Group, number: int, milliseconds: int) -> scene.Scene:
    stored = group["frames"]
    total, size = stored.shape[1], stored.shape[2]
    steps = max(1, min(total, MOST_FRAMES, _MOST_BYTES // math.prod(stored.shape[2:])))
    position, velocity = group["position"][number][:steps], group["velocity"][number][:steps]
    centre = view_positions(number, total, size)[:steps]
    everywhere = (0.0, 0.0, float(size), float(size))
    physics = Physics.of(group, number)
    step, ball = np.nonzero(physics.collisions(velocity))
    hits: dict[str, Any] = {"step": step + 1, "position": position[step + 1, ball], "colour": "#ffd400"}
    frames, palette = stored[number][:steps], _palette(physics.config)
    bits = palette is PIXELS
    shown = np.packbits(frames, axis=-1) if bits else levels(frames) if palette is not _GREYS else frames
    return scene.Scene(
        steps=steps,
        arena=scene.Arena(extent=everywhere, y_down=True, unit="px"),
        layers=(
            scene.Raster(title="frame", values=shown, extent=everywhere, palette=palette, width=size, bits=bits),
            scene.Boxes(title="crops", centre=centre + 0.5, side=CROP, colours=view_colours(), dim="#000000a6"),
            _discs(position, velocity, np.atleast_1d(group["radius"][number]), physics),
            scene.Marks(title="collisions since the frame before", **hits),
        ),
        panels=(_crops(frames, centre, palette), _energies(position, velocity, physics)),
        facts=_facts(group, number, total, steps),
        step_word="frame",
        milliseconds=milliseconds,
    )


def levels(frame: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """A frame (S, S) or (S, S, 3) as levels to show, the ground not quite black. A grey level is 0 or at least 4."""
    if frame.ndim == 2 and frame.max(initial=0) <= 1:
        return np.where(frame > 0, _BALL, _GROUND).astype(np.uint8)
    return np.asarray(_GROUND + frame.astype(np.uint16) * (_BALL - _GROUND) // 255, np.uint8)


def _palette(config: dict[str, Any]) -> scene.Palette:
    """Of frames as they were rendered; of colour frames it is the legend."""
    render = config.get("render", "binary")
    if render != "colour":
        return PIXELS if render == "binary" else _GREYS
    names = [f"ball {ball + 1}" for ball in range(config["balls"])]
    colours = ["#282828", _STANDING, *ball_colours(config["balls"])]
    return scene.Palette(colours=colours, names=["nothing", "fixed balls and walls", *names])


def _facts(group: Group, number: int, total: int, steps: int) -> list[tuple[str, str]]:
    config: dict[str, Any] = group.settings["config"]
    shown = f"{total:,}" if steps == total else f"the first {steps:,} of {total:,}"
    radius = "-".join(f"{part:g}" for part in np.unique(config["radius_px"]))
    facts = [("balls", str(config["balls"])), ("frames", shown), ("radius", f"{radius} px")]
    if any(config.get("gravity", ())):
        facts.append(("gravity", "{:g}, {:g} px/frame²".format(*config["gravity"])))
    return [*facts, ("preset", str(config["preset"])), ("seed", str(int(group["seed"][number])))]


def _discs(position: NDArray[Any], velocity: NDArray[Any], radius: NDArray[Any], physics: Physics) -> scene.Discs:
    balls, speed = position.shape[1], np.linalg.norm(velocity, axis=-1)
    return scene.Discs(
        title="outlines of the balls",
        position=position,
        radius=np.broadcast_to(radius, (balls,)),
        colours=ball_colours(balls),
        names=[f"ball {ball + 1}" for ball in range(balls)],
        letters=[str(ball + 1) for ball in range(balls)],
        readings=(
            scene.Reading(title="speed", values=speed, unit="px/frame"),
            scene.Reading(title="kinetic energy", values=physics.mass * speed**2 / 2, unit=physics.energy_unit),
        ),
        outline=True,
    )


def ball_colours(balls: int) -> list[str]:
    return [BALL_COLOURS[ball % len(BALL_COLOURS)] for ball in range(balls)]


def crops_of(frames: NDArray[np.uint8], centre: NDArray[Any]) -> NDArray[np.uint8]:
    """(T, V, 11, 11, ...) around central pixels (x, y), as the loader cuts them: zero outside the arena."""
    edge, reach = (CROP // 2, CROP // 2), np.arange(CROP)
    padded = np.pad(frames, ((0, 0), edge, edge, *[(0, 0)] * (frames.ndim - 3)))
    rows = centre[:, :, 1, None, None].astype(np.int64) + reach[:, None]
    columns = centre[:, :, 0, None, None].astype(np.int64) + reach
    return padded[np.arange(len(frames))[:, None, None, None], rows, columns]


def _crops(frames: NDArray[np.uint8], centre: NDArray[np.int16], palette: scene.Palette) -> scene.Pictures:
    views, crops = centre.shape[1], crops_of(frames, centre)
    crops = levels(crops) if frames.ndim == 4 else crops
    each = [(f"{view + 1}", crops[:, view], colour) for view, colour in enumerate(view_colours(views))]
    pictures = [scene.Picture(title=t, values=found, palette=palette, border=colour) for t, found, colour in each]
    note = "What an observer sees: crops at random places, the same that evaluation shows to models."
    return scene.Pictures(title=f"{views} crops of {CROP} x {CROP} pixels", pictures=pictures, note=note, small=True)


def _energies(position: NDArray[Any], velocity: NDArray[Any], physics: Physics) -> scene.Curves:
    energy = physics.mass * (velocity.astype(np.float64) ** 2).sum(-1) / 2
    each = enumerate(zip(energy.T, ball_colours(energy.shape[1]), strict=True), 1)
    curves = [scene.Curve(title=f"ball {ball}", values=own, colour=colour) for ball, (own, colour) in each]
    total = scene.Curve(title="all", values=energy.sum(1), colour=_TOTAL)
    if any(physics.gravity):
        whole = energy.sum(1) + physics.potential(position).sum(1)
        curves.append(scene.Curve(title="all, with potential energy", values=whole, colour=_WHOLE))
    return scene.Curves(title="kinetic energy", curves=[*curves, total], unit=physics.energy_unit, low=0.0)
