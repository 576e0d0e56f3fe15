"""Looking at battles: the map from above beside one agent's polar images, and statistics of the episodes."""

# N episodes, T steps, U units of both sides, A agents

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from s2rm_data.core.check import integer
from s2rm_data.core.paint import new_figure, stacked
from s2rm_data.core.progress import Progress
from s2rm_data.generators.sc2.inspection.battle_scene import agent_images, battle_scene
from s2rm_data.inspection.scene import Addition, Scene
from s2rm_data.inspection.stats import GroupStats, Moments, blocks, wilson
from s2rm_data.inspection.world_inspection import Inspection, Preview, file_name, spread
from s2rm_data.making.world import Option
from s2rm_data.starcraft import drawing as draw
from s2rm_data.starcraft import terrain_maps as maps
from s2rm_data.starcraft.codes import OUTCOMES
from s2rm_data.starcraft.polar import PolarGrid, render, terrain_height
from s2rm_data.store import Group

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_OUTCOME_COLOURS = {
    "win": "#009e73",
    "loss": "#d55e00",
    "draw": "#999999",
    "limit": "#e69f00",
    "running": "#56b4e9",
}
_LENGTH_BIN = 4  # steps
_SIDES = {"agents": ("Blues", "#0072b2"), "enemies": ("Reds", "#d55e00")}
_EPISODE = ("length", "outcome", "policy", "reward", "units_in_view", "units_lost", "agent_alive")


def _density(position: NDArray[Any]) -> NDArray[np.float64]:
    """(K, 2) -> (side, side) counts, [y, x]."""
    line = np.arange(maps.SIZE + 1)
    return np.histogram2d(position[:, 1], position[:, 0], bins=(line, line))[0]


def _battle_row(group: Group, ended: NDArray[np.int64], lengths: NDArray[np.int64]) -> dict[str, Any]:
    outcomes, total = group.attributes["outcomes"], int(ended.sum())
    agents = group["action"].shape[2]
    units = group["unit_type"][0]
    low, high = wilson(int(ended[outcomes.index("win")]), total)
    steps, reached = np.flatnonzero(lengths), lengths.cumsum()
    return {
        "episodes": total,
        "agents": _army(group, units[:agents]),
        "enemies": _army(group, units[agents:]),
        **{
            f"{name}_share": round(float(count) / max(total, 1), 4) for name, count in zip(outcomes, ended, strict=True)
        },
        "win_share_interval": [round(low, 4), round(high, 4)],
        "length_mean_steps": round(float(lengths @ np.arange(len(lengths))) / max(total, 1), 2),
        "length_median_steps": int(np.searchsorted(reached, (total + 1) // 2)),
        "length_90_percent_steps": int(np.searchsorted(reached, 0.9 * total)),
        "length_min_steps": int(steps[0]),
        "length_max_steps": int(steps[-1]),
    }


def _army(group: Group, unit_types: NDArray[Any]) -> str:
    """`3 stalker, 5 zealot`."""
    names = group.attributes["unit_types"]
    kinds, counts = np.unique(unit_types, return_counts=True)
    return ", ".join(f"{count} {names[kind]}" for kind, count in zip(kinds, counts, strict=True))


def _by_policy(ended: NDArray[np.int64], policies: list[str], outcomes: list[str]) -> dict[str, dict[str, float]]:
    """policy -> outcome -> share of its episodes, and how many they are."""
    found = {}
    for policy, counts in zip(policies, ended, strict=True):
        if total := int(counts.sum()):
            shares = {name: round(float(count) / total, 4) for name, count in zip(outcomes, counts, strict=True)}
            found[policy] = {"episodes": total, **shares}
    return found


def _draw_density(figure: Any, axes: Any, entry: GroupStats, side: str) -> None:
    """The colour scale is a square root, so that where few units come is seen, too."""
    from matplotlib.colors import PowerNorm

    density = 100 * entry.maps[side]
    picture = axes.imshow(
        np.ma.masked_equal(density, 0),
        origin="lower",
        extent=(0, len(density), 0, len(density)),
        cmap=_SIDES[side][0],
        norm=PowerNorm(0.5, vmin=0),
    )
    axes.set_title(f"{entry.short_name}\n{side}: {entry.row[side]}", fontsize=8)
    axes.set_xlabel("x, map units", fontsize=7)
    axes.set_ylabel("y, map units", fontsize=7)
    bar = figure.colorbar(picture, ax=axes, shrink=0.8)
    bar.set_label("% of unit-steps", fontsize=7)
    bar.ax.tick_params(labelsize=6)


def _draw_lengths(axes: Any, entry: GroupStats) -> None:
    """Stacked by outcome."""
    base = None
    for name, (_, single) in entry.histograms.items():
        outcome = name.removeprefix("length, ")
        edges = np.arange(0, len(single) + _LENGTH_BIN, _LENGTH_BIN)
        counts = np.histogram(np.arange(len(single)), edges, weights=single)[0]
        top = counts if base is None else base + counts
        colour = _OUTCOME_COLOURS.get(outcome, "#444444")
        axes.stairs(top, edges, baseline=0 if base is None else base, fill=True, color=colour, label=outcome)
        base = top
    axes.set_title("length of episodes", fontsize=8)
    axes.set_xlabel("steps", fontsize=8)
    axes.set_ylabel("episodes", fontsize=8)
    axes.yaxis.get_major_locator().set_params(integer=True)
    axes.legend(fontsize=7, frameon=False)


def _draw_alive(axes: Any, entry: GroupStats) -> None:
    for side, (_, colour) in _SIDES.items():
        alive = entry.curves[f"{side} alive"][: entry.row["length_90_percent_steps"]]
        axes.plot(np.arange(len(alive)), alive, color=colour, label=side)
    axes.set_title("units alive in episodes still running\n(until a tenth of them is left)", fontsize=8)
    axes.set_xlabel("step", fontsize=8)
    axes.set_ylim(0)
    axes.legend(fontsize=7, frameon=False)


def _draw_outcomes(axes: Any, entry: GroupStats) -> None:
    table = entry.shares["outcome by policy"]
    low, high = entry.row["win_share_interval"]
    labels = [f"{policy} (n = {int(shares['episodes'])})" for policy, shares in table.items()]
    left = np.zeros(len(labels))
    for outcome, colour in _OUTCOME_COLOURS.items():
        values = np.array([shares.get(outcome, 0.0) for shares in table.values()])
        if values.any():
            axes.barh(labels, values, left=left, color=colour, label=outcome)
            left += values
    axes.set_title(f"outcome by policy; wins in all {entry.row['win_share']:.0%} ({low:.0%} to {high:.0%})", fontsize=8)
    axes.set_xlabel("share of episodes", fontsize=8)
    axes.set_xlim(0, 1)
    axes.invert_yaxis()
    axes.legend(fontsize=7, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))


class BattleInspection(Inspection):
    milliseconds = 200
    about = (
        "StarCraft II micro battles of SMAC scenarios, played by scripted policies. Each agent sees the battle through "
        "polar images of its surroundings; actions, rewards and the compact state of every unit are stored with them."
    )
    tags = ("StarCraft II", "SMAC", "multi-agent")
    preview_options = (
        Option(name="agent", parse=integer, help="Whose polar images to draw.", shown="who lives longest"),
    )

    def pictures(self, group: Group, number: int) -> Iterator[Image.Image]:
        """Agent 0's, at half the size of a preview."""
        scenario, radius = group.settings["config"]["scenario"], group.attributes["radius"]
        view = {"radius": radius, "terrain": terrain_height(scenario), "title": f"{scenario}, episode {number}"}
        for image in draw.frames(group[number], agent=0, **view):
            yield image.resize((image.width // 2, image.height // 2), Image.Resampling.LANCZOS)

    def preview(self, group: Group, number: int, rows: int, progress: Progress, *, agent: int | None = None) -> Preview:  # type: ignore[override]
        """The contact sheet shows steps of the episode."""
        attributes, episode, scenario = group.attributes, group[number], group.settings["config"]["scenario"]
        policy = attributes["policies"][int(episode["policy"])]
        outcome = attributes["outcomes"][int(episode["outcome"])]
        title = f"{scenario}, episode {number}, policy {policy}, outcome: {outcome}"
        view = {"radius": attributes["radius"], "terrain": terrain_height(scenario), "title": title}
        return _preview(file_name(group, number), episode, agent, view, rows, progress)

    def file_preview(self, path: Path, rows: int, progress: Progress, *, agent: int | None = None) -> Preview | None:  # type: ignore[override]
        """A battle that the server saved as a replay."""
        from s2rm_data.starcraft.api.server.game import scenario_of_map
        from s2rm_data.starcraft.api.server.saved import is_replay, play_again, read_replay

        if not is_replay(path):
            return None
        saved = read_replay(path)
        scenario, record = scenario_of_map(saved.map_name), play_again(saved)
        terrain, grid = maps.height_bytes(scenario.terrain), PolarGrid(radial=16, angular=48, radius=9.0)
        episode = {name: values[0] for name, values in (record | render(record, grid=grid, terrain=terrain)).items()}
        title = f"{saved.map_name}, seed {saved.seed}, outcome: {OUTCOMES[int(episode['outcome'])]}"
        view = {"radius": grid.radius, "terrain": terrain, "title": title}
        return _preview(path.stem, episode, agent, view, rows, progress)

    def scene(self, group: Group, number: int) -> Scene:
        return battle_scene(group, number, self.milliseconds)

    def details(self, group: Group, number: int, index: int) -> Addition:
        return agent_images(group, number, index)

    def statistics(self, group: Group, progress: Progress) -> GroupStats:
        outcomes, policies = group.attributes["outcomes"], group.attributes["policies"]
        steps, agents = group["action"].shape[1:]
        ended = np.zeros((len(policies), len(outcomes)), np.int64)
        lengths = np.zeros((len(outcomes), steps + 1), np.int64)
        density, alive = np.zeros((2, maps.SIZE, maps.SIZE)), np.zeros((2, steps))
        earned, in_view, lost, images = Moments(), 0, 0, 0
        for block in blocks(group, (*_EPISODE, "unit_position", "unit_alive"), progress):
            np.add.at(ended, (block["policy"], block["outcome"]), 1)
            np.add.at(lengths, (block["outcome"], block["length"]), 1)
            earned.add(block["reward"].sum(1))
            in_view += int(block["units_in_view"].sum())
            lost += int(block["units_lost"].sum())
            images += int(block["agent_alive"].sum())
            for side, units in enumerate((slice(0, agents), slice(agents, None))):
                living = block["unit_alive"][..., units]
                alive[side] += living.sum((0, 2))
                density[side] += _density(block["unit_position"][..., units, :][living])
        played = np.maximum(lengths.sum(0)[::-1].cumsum()[::-1][1:], 1)  # episodes that reach each step
        row = _battle_row(group, ended.sum(0), lengths.sum(0)) | {
            "return_mean": round(earned.mean, 3),
            "units_per_image": round(in_view / max(images, 1), 3),
            "overdrawn_units_share": round(lost / max(in_view, 1), 5),
        }
        by_policy = _by_policy(ended, policies, outcomes)
        return GroupStats(
            group=group.path,
            generator=str(group.settings["generator"]),
            row=row,
            details={f"win share of {policy}": found["win"] for policy, found in by_policy.items()},
            maps={side: density[i] / max(density[i].sum(), 1) for i, side in enumerate(("agents", "enemies"))},
            histograms={
                f"length, {name}": (np.arange(steps + 2) - 0.5, lengths[i])
                for i, name in enumerate(outcomes)
                if lengths[i].any()
            },
            curves={side: alive[i] / played for i, side in enumerate(("agents alive", "enemies alive"))},
            shares={"outcome by policy": by_policy},
        )

    def draw_statistics(self, entries: Sequence[GroupStats]) -> Figure:
        """One row per group: where each side stands, how long episodes last, who is left, and how each policy fares."""
        figure = new_figure(15.5, 2.7 * len(entries) + 0.4)
        axes = figure.subplots(len(entries), 5, squeeze=False, width_ratios=(1, 1, 1.5, 1.3, 1.5))
        for row, entry in zip(axes, entries, strict=True):
            for panel, side in zip(row[:2], _SIDES, strict=True):
                _draw_density(figure, panel, entry, side)
            _draw_lengths(row[2], entry)
            _draw_alive(row[3], entry)
            _draw_outcomes(row[4], entry)
            for panel in row:
                panel.tick_params(labelsize=7)
        return figure


def _preview(
    name: str, episode: draw.Episode, agent: int | None, view: dict[str, Any], rows: int, progress: Progress
) -> Preview:
    """`view`: what `draw.frames` is told beside the agent, by default who lives longest."""
    chosen = int(episode["agent_alive"].sum(axis=0).argmax()) if agent is None else agent
    length, images = int(episode["length"]), []
    progress.start(length, 0)
    for image in draw.frames(episode, agent=chosen, **view):
        images.append(image)
        progress.advance(1)
    return Preview(f"{name}-agent{chosen}", images, stacked([images[step] for step in spread(length, rows)]))
