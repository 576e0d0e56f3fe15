"""A battle as a scene: units on the terrain with their bars and orders, and the polar images of one agent."""

# T steps that were played, U units of both sides, N agents = the first units, I radial cells, J angular cells

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from s2rm_data.core.errors import DamagedStoreError, UsageError
from s2rm_data.generators.sc2.making.battle_config import episode_config
from s2rm_data.inspection import scene
from s2rm_data.starcraft import battle_paint as paint
from s2rm_data.starcraft import scenarios
from s2rm_data.starcraft import terrain_maps as maps
from s2rm_data.starcraft.codes import Action, Order
from s2rm_data.starcraft.polar import DRAWN_FROM, render, terrain_height
from s2rm_data.starcraft.rules import MOVES
from s2rm_data.starcraft.units import UNIT_TYPES

if TYPE_CHECKING:
    from s2rm_data.store import Group

_STATES = (
    "unit_type", "unit_position", "unit_health", "unit_shield", "unit_energy", "unit_cooldown", "unit_order",
    "unit_target", "unit_goal", "action", "reward", "length", "outcome", "policy", "seed",
)  # fmt: skip
_GROUND = ("#3d3d3d", "#a8a8a8")
HEAT = ("#fffde4", "#fed976", "#fd8d3c", "#e31a1c", "#67000d")
GREYS = ("#101010", "#f0f0f0")
NOTHING = "#f4f4f6"  # where there is nobody, or nothing is done


def battle_scene(group: Group, number: int, milliseconds: int) -> scene.Scene:
    episode = {name: np.asarray(group[name][number]) for name in _STATES}
    steps = max(int(episode["length"]), 1)
    played = {
        name: values[:steps] if values.ndim > 1 or name == "reward" else values for name, values in episode.items()
    }
    terrain = _terrain(group)
    window = paint.battle_window(played["unit_health"], played["unit_position"], float(group.attributes["radius"]))
    return scene.Scene(
        steps=steps,
        arena=scene.Arena(extent=window, unit="map units"),
        layers=(terrain, _orders(played), _goals(played), _units(group, played)),
        panels=(_rewards(played), _strengths(played)),
        facts=_facts(group, episode),
        milliseconds=milliseconds,
    )


def named(names: Any, index: int, what: str) -> str:
    """A name from a table of the store's attributes, which anybody may have written."""
    if not isinstance(names, list) or not 0 <= index < len(names):
        raise DamagedStoreError(f"{what} {index} has no name in the group's attributes")
    return str(names[index])


def _facts(group: Group, episode: Mapping[str, NDArray[Any]]) -> list[tuple[str, str]]:
    attributes = group.attributes
    return [
        ("scenario", str(group.settings["config"]["scenario"])),
        ("policy", named(attributes["policies"], int(episode["policy"]), "policy")),
        ("outcome", named(attributes["outcomes"], int(episode["outcome"]), "outcome")),
        ("steps played", str(int(episode["length"]))),
        ("return", f"{float(episode['reward'].sum()):.2f}"),
        ("seed", str(int(episode["seed"]))),
    ]


def _terrain(group: Group) -> scene.Raster:
    height = maps.height_of(scenarios.parse(group.settings["config"]["scenario"]).terrain)  # (W, H), first x
    low, high = float(height.min()), float(height.max())
    palette = scene.Palette(colours=_GROUND, low=low - 0.05, high=max(high, low + 0.1))
    extent = (0.0, 0.0, float(height.shape[0]), float(height.shape[1]))
    return scene.Raster(title="terrain height", values=height.T[None], extent=extent, palette=palette)


def _units(group: Group, episode: Mapping[str, NDArray[Any]]) -> scene.Discs:
    kinds = [UNIT_TYPES[int(kind)] for kind in episode["unit_type"]]
    agents = episode["action"].shape[1]
    sides = ["agent"] * agents + ["enemy"] * (len(kinds) - agents)
    slots = [*range(agents), *range(len(kinds) - agents)]
    names = [f"{side} {slot} ({kind.name})" for side, slot, kind in zip(sides, slots, kinds, strict=True)]
    full = [kind.most_health(enemy=slot >= agents) for slot, kind in enumerate(kinds)]
    bars = [("health", paint.HEALTH, full), ("shield", paint.SHIELD, [k.shield for k in kinds])]
    return scene.Discs(
        title="units",
        position=episode["unit_position"],
        radius=np.array([kind.radius for kind in kinds]),
        colours=_colours(agents, len(kinds)),
        names=names,
        letters=[kind.letters for kind in kinds],
        legend=((paint.FRIEND, "agents"), (paint.ENEMY, "enemies")),
        there=episode["unit_health"] > 0,
        bars=[scene.Bar(title=n, values=episode[f"unit_{n}"], full=np.array(full), colour=c) for n, c, full in bars],
        readings=(
            *(scene.Reading(title=name, values=episode[f"unit_{name}"]) for name in ("health", "shield", "energy")),
            scene.Reading(title="cooldown", values=episode["unit_cooldown"], unit="loops"),
            scene.Reading(
                title="order", values=episode["unit_order"], names=[str(n) for n in group.attributes["orders"]]
            ),
            scene.Reading(title="target", values=episode["unit_target"], names=names),
        ),
        detailed=agents,
        sight=float(group.attributes["radius"]),
        reach=np.array([max(kind.range, kind.heal_range) + kind.radius for kind in kinds]),
    )


def _colours(agents: int, units: int) -> list[str]:
    return [paint.side_colour(unit, agents) for unit in range(units)]


def _orders(episode: Mapping[str, NDArray[Any]]) -> scene.Arrows:
    """Along an agent's move, and from every unit to the one it attacks or heals."""
    position, target = episode["unit_position"], episode["unit_target"].astype(np.int64)
    alive, action = episode["unit_health"] > 0, episode["action"]
    units, agents = position.shape[1], action.shape[1]
    end = np.take_along_axis(position, np.clip(target, 0, units - 1)[..., None], axis=1).copy()
    aimed = target >= 0
    for number, step in MOVES.items():
        walks = action == number
        end[:, :agents][walks] = position[:, :agents][walks] + np.array(step, np.float32)
        aimed[:, :agents] |= walks
    aimed[:, :agents] &= action >= Action.NORTH
    colours = _colours(agents, units)
    return scene.Arrows(title="orders and targets", start=position, end=end, there=aimed & alive, colours=colours)


def _goals(episode: Mapping[str, NDArray[Any]]) -> scene.Arrows:
    there = (episode["unit_order"] == Order.ATTACK_MOVE) & (episode["unit_health"] > 0)
    return scene.Arrows(
        title="where attack-moves lead",
        start=episode["unit_position"],
        end=episode["unit_goal"],
        there=there,
        colours=["#f6ad55"] * there.shape[1],
        width=1.0,
        shown=False,
    )


def _rewards(episode: Mapping[str, NDArray[Any]]) -> scene.Curves:
    reward = episode["reward"]
    return scene.Curves(
        title="reward",
        curves=(
            scene.Curve(title="of each step", values=reward, colour="#e69f00"),
            scene.Curve(title="so far", values=np.cumsum(reward), colour="#009e73"),
        ),
    )


def _strengths(episode: Mapping[str, NDArray[Any]]) -> scene.Curves:
    points, agents = episode["unit_health"] + episode["unit_shield"], episode["action"].shape[1]
    return scene.Curves(
        title="health and shield of each side",
        curves=(
            scene.Curve(title="agents", values=points[:, :agents].sum(1), colour=paint.FRIEND),
            scene.Curve(title="enemies", values=points[:, agents:].sum(1), colour=paint.ENEMY),
        ),
        unit="hit points",
        low=0.0,
    )


def agent_images(group: Group, number: int, agent: int) -> scene.Addition:
    """What one agent sees, channel by channel."""
    agents = group["action"].shape[2]
    if not 0 <= agent < agents:
        raise UsageError(f"there is no agent {agent}; this scenario has agents 0 to {agents - 1}")
    steps = max(int(group["length"][number]), 1)
    states = {name: group[name][number : number + 1] for name in DRAWN_FROM}
    config = episode_config(group.settings["config"])
    images = render(states, grid=config.grid, terrain=terrain_height(config.scenario))
    categories, hecs, height = (images[name][0, :steps, agent] for name in ("categories", "hecs", "height"))
    types, friends = type_palette(group, number), scene.Palette(colours=(NOTHING, paint.FRIEND), names=("no", "friend"))
    names = [str(name) for name in group.attributes["action_categories"]]
    colours = [NOTHING, *(paint.ACTION_COLOURS[n % len(paint.ACTION_COLOURS)] for n in range(1, len(names)))]
    actions = scene.Palette(colours=colours, names=names)
    pictures = [
        scene.Picture(title="friendly marker", values=categories[..., 0], palette=friends, polar=True),
        scene.Picture(title="unit type", values=categories[..., 1], palette=types, polar=True),
        scene.Picture(title="action", values=categories[..., 2], palette=actions, polar=True),
        scene.Picture(
            title="terrain height", values=height / np.float32(255), palette=scene.Palette(colours=GREYS), polar=True
        ),
        *(
            scene.Picture(title=title, values=hecs[..., channel], palette=scene.Palette(colours=HEAT), polar=True)
            for channel, title in enumerate(hecs_titles(group))
        ),
    ]
    alive = group["agent_alive"][number][:steps, agent]
    gone = "" if alive.all() else f" It is dead from step {int(np.argmin(alive))} on and has no images then."
    note = f"What the selected agent sees of the disc around it, east to the right, north up.{gone}"
    return scene.Addition(
        panels=(scene.Pictures(title=f"polar images of agent {agent}", pictures=pictures, note=note),)
    )


def hecs_titles(group: Group) -> list[str]:
    attributes = group.attributes
    divisors = attributes["hecs_divisors"]
    return [f"{name} / {float(divisors[n]):g}" for n, name in enumerate(attributes["hecs_channels"])]


def type_palette(group: Group, number: int) -> scene.Palette:
    """Of the unit types of this episode and of the group's first; the others keep their numbers but have no name."""
    names = [str(name) for name in group.attributes["unit_types"]]
    present = {0, *group["unit_type"][number].tolist(), *group["unit_type"][slice(0, 16)].ravel().tolist()}
    colours = [NOTHING, *(paint.TYPE_COLOURS[n % len(paint.TYPE_COLOURS)] for n in range(1, len(names)))]
    return scene.Palette(colours=colours, names=[name if n in present else "" for n, name in enumerate(names)])
