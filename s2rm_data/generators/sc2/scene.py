"""A battle as a scene: units on the terrain with their bars and orders, and the polar images of one agent."""

# T steps that were played, U units of both sides, N agents = the first units, I radial cells, J angular cells

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from s2rm_data.errors import DamagedStoreError, UsageError
from s2rm_data.generators.sc2 import maps, scenarios
from s2rm_data.generators.sc2.codes import Action, Order
from s2rm_data.generators.sc2.draw import (
    ACTION_COLOURS,
    ENEMY,
    FRIEND,
    HEALTH,
    MOVES,
    SHIELD,
    TYPE_COLOURS,
    battle_window,
)
from s2rm_data.generators.sc2.units import UNIT_TYPES
from s2rm_data.scene import (
    Addition,
    Arena,
    Arrows,
    Bar,
    Curve,
    Curves,
    Discs,
    Palette,
    Picture,
    Pictures,
    Raster,
    Reading,
    Scene,
)

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


def battle_scene(group: Group, number: int, milliseconds: int) -> Scene:
    episode = {name: np.asarray(group[name][number]) for name in _STATES}
    steps = max(int(episode["length"]), 1)
    played = {
        name: values[:steps] if values.ndim > 1 or name == "reward" else values for name, values in episode.items()
    }
    terrain = _terrain(group)
    window = battle_window(played["unit_health"], played["unit_position"], float(group.attributes["radius"]))
    return Scene(
        steps=steps,
        arena=Arena(extent=window, unit="map units"),
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


def _terrain(group: Group) -> Raster:
    height = maps.height_of(scenarios.parse(group.settings["config"]["scenario"]).terrain)  # (W, H), first x
    low, high = float(height.min()), float(height.max())
    palette = Palette(colours=_GROUND, low=low - 0.05, high=max(high, low + 0.1))
    extent = (0.0, 0.0, float(height.shape[0]), float(height.shape[1]))
    return Raster(title="terrain height", values=height.T[None], extent=extent, palette=palette)


def _units(group: Group, episode: Mapping[str, NDArray[Any]]) -> Discs:
    kinds = [UNIT_TYPES[int(kind)] for kind in episode["unit_type"]]
    agents = episode["action"].shape[1]
    sides = ["agent"] * agents + ["enemy"] * (len(kinds) - agents)
    slots = [*range(agents), *range(len(kinds) - agents)]
    names = [f"{side} {slot} ({kind.name})" for side, slot, kind in zip(sides, slots, kinds, strict=True)]
    bars = [("health", "unit_health", HEALTH, [k.health for k in kinds])]
    bars += [("shield", "unit_shield", SHIELD, [k.shield for k in kinds])]
    return Discs(
        title="units",
        position=episode["unit_position"],
        radius=np.array([kind.radius for kind in kinds]),
        colours=[FRIEND if side == "agent" else ENEMY for side in sides],
        names=names,
        letters=[kind.letters for kind in kinds],
        legend=((FRIEND, "agents"), (ENEMY, "enemies")),
        there=episode["unit_health"] > 0,
        bars=[Bar(title=t, values=episode[name], full=np.array(full), colour=c) for t, name, c, full in bars],
        readings=(
            Reading(title="health", values=episode["unit_health"]),
            Reading(title="shield", values=episode["unit_shield"]),
            Reading(title="energy", values=episode["unit_energy"]),
            Reading(title="cooldown", values=episode["unit_cooldown"], unit="loops"),
            Reading(title="order", values=episode["unit_order"], names=[str(n) for n in group.attributes["orders"]]),
            Reading(title="target", values=episode["unit_target"], names=names),
        ),
        detailed=agents,
        sight=float(group.attributes["radius"]),
        reach=np.array([max(kind.range, kind.heal_range) + kind.radius for kind in kinds]),
    )


def _orders(episode: Mapping[str, NDArray[Any]]) -> Arrows:
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
    colours = [FRIEND] * agents + [ENEMY] * (units - agents)
    return Arrows(title="orders and targets", start=position, end=end, there=aimed & alive, colours=colours)


def _goals(episode: Mapping[str, NDArray[Any]]) -> Arrows:
    there = (episode["unit_order"] == Order.ATTACK_MOVE) & (episode["unit_health"] > 0)
    return Arrows(
        title="where attack-moves lead",
        start=episode["unit_position"],
        end=episode["unit_goal"],
        there=there,
        colours=["#f6ad55"] * there.shape[1],
        width=1.0,
        shown=False,
    )


def _rewards(episode: Mapping[str, NDArray[Any]]) -> Curves:
    reward = episode["reward"]
    return Curves(
        title="reward",
        curves=(
            Curve(title="of each step", values=reward, colour="#e69f00"),
            Curve(title="so far", values=np.cumsum(reward), colour="#009e73"),
        ),
    )


def _strengths(episode: Mapping[str, NDArray[Any]]) -> Curves:
    points, agents = episode["unit_health"] + episode["unit_shield"], episode["action"].shape[1]
    return Curves(
        title="health and shield of each side",
        curves=(
            Curve(title="agents", values=points[:, :agents].sum(1), colour=FRIEND),
            Curve(title="enemies", values=points[:, agents:].sum(1), colour=ENEMY),
        ),
        unit="hit points",
        low=0.0,
    )


def agent_images(group: Group, number: int, agent: int) -> Addition:
    """What one agent sees, channel by channel."""
    agents = group["action"].shape[2]
    if not 0 <= agent < agents:
        raise UsageError(f"there is no agent {agent}; this scenario has agents 0 to {agents - 1}")
    steps = max(int(group["length"][number]), 1)
    categories = group["categories"][number][:steps, agent]  # (T, I, J, 3)
    hecs, height = group["hecs"][number][:steps, agent], group["height"][number][:steps, agent]
    types, actions = type_palette(group, number), action_palette(group)
    pictures = [
        Picture(title="friendly marker", values=categories[..., 0], palette=friendly_palette(), polar=True),
        Picture(title="unit type", values=categories[..., 1], palette=types, polar=True),
        Picture(title="action", values=categories[..., 2], palette=actions, polar=True),
        Picture(title="terrain height", values=height / np.float32(255), palette=Palette(colours=GREYS), polar=True),
        *(
            Picture(title=title, values=hecs[..., channel], palette=Palette(colours=HEAT), polar=True)
            for channel, title in enumerate(hecs_titles(group))
        ),
    ]
    alive = group["agent_alive"][number][:steps, agent]
    gone = "" if alive.all() else f" It is dead from step {int(np.argmin(alive))} on and has no images then."
    note = f"What the selected agent sees of the disc around it, east to the right, north up.{gone}"
    return Addition(panels=(Pictures(title=f"polar images of agent {agent}", pictures=pictures, note=note),))


def hecs_titles(group: Group) -> list[str]:
    attributes = group.attributes
    divisors = attributes["hecs_divisors"]
    return [f"{name} / {float(divisors[n]):g}" for n, name in enumerate(attributes["hecs_channels"])]


def friendly_palette() -> Palette:
    return Palette(colours=(NOTHING, FRIEND), names=("no", "friend"))


def type_palette(group: Group, number: int) -> Palette:
    """Of the unit types of this episode and of the group's first; the others keep their numbers but have no name."""
    names = [str(name) for name in group.attributes["unit_types"]]
    present = {0, *group["unit_type"][number].tolist(), *group["unit_type"][slice(0, 16)].ravel().tolist()}
    colours = [NOTHING, *(TYPE_COLOURS[n % len(TYPE_COLOURS)] for n in range(1, len(names)))]
    return Palette(colours=colours, names=[name if n in present else "" for n, name in enumerate(names)])


def action_palette(group: Group) -> Palette:
    names = [str(name) for name in group.attributes["action_categories"]]
    colours = [NOTHING, *(ACTION_COLOURS[n % len(ACTION_COLOURS)] for n in range(1, len(names)))]
    return Palette(colours=colours, names=names)
