"""Looking at battles: the map from above beside one agent's polar images, and statistics of the episodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from s2rm_data.generators.sc2 import draw, maps, scenarios
from s2rm_data.generators.sc2.codes import OUTCOMES
from s2rm_data.generators.sc2.scene import agent_images, battle_scene
from s2rm_data.generators.sc2.stats import battle_stats, draw_battles
from s2rm_data.inspection.stats import GroupStats
from s2rm_data.inspection.world import Inspection, Preview, file_name, spread
from s2rm_data.options import Option, integer
from s2rm_data.painting import stacked
from s2rm_data.progress import Progress
from s2rm_data.scene import Addition, Scene
from s2rm_data.store import Group

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from PIL.Image import Image


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

    def pictures(self, group: Group, number: int) -> Iterator[Image]:
        """Agent 0's, at half the size of a preview."""
        from PIL import Image

        scenario = group.settings["config"]["scenario"]
        for image in _drawn(group, group[number], agent=0, title=f"{scenario}, episode {number}"):
            yield image.resize((image.width // 2, image.height // 2), Image.Resampling.LANCZOS)

    def preview(self, group: Group, number: int, rows: int, progress: Progress, *, agent: int | None = None) -> Preview:  # type: ignore[override]
        """The contact sheet shows steps of the episode."""
        attributes, episode = group.attributes, group[number]
        if agent is None:
            agent = int(episode["agent_alive"].sum(axis=0).argmax())
        policy = attributes["policies"][int(episode["policy"])]
        outcome = attributes["outcomes"][int(episode["outcome"])]
        scenario, length = group.settings["config"]["scenario"], int(episode["length"])
        title = f"{scenario}, episode {number}, policy {policy}, outcome: {outcome}"
        progress.start(length, 0)
        images = []
        for image in _drawn(group, episode, agent=agent, title=title):
            images.append(image)
            progress.advance(1)
        sheet = stacked([images[step] for step in spread(length, rows)])
        return Preview(f"{file_name(group, number)}-agent{agent}", images, sheet)

    def file_preview(self, path: Path, rows: int, progress: Progress, *, agent: int | None = None) -> Preview | None:  # type: ignore[override]
        """A battle that the server saved as a replay."""
        from s2rm_data.generators.sc2.api.server.game import scenario_of_map
        from s2rm_data.generators.sc2.api.server.saved import is_replay, play_again, read_replay
        from s2rm_data.generators.sc2.polar import PolarGrid, render

        if not is_replay(path):
            return None
        saved = read_replay(path)
        scenario, record = scenario_of_map(saved.map_name), play_again(saved)
        terrain, grid = maps.height_bytes(scenario.terrain), PolarGrid(radial=16, angular=48, radius=9.0)
        episode = {name: values[0] for name, values in (record | render(record, grid=grid, terrain=terrain)).items()}
        if agent is None:
            agent = int(episode["agent_alive"].sum(axis=0).argmax())
        length, outcome = int(episode["length"]), OUTCOMES[int(episode["outcome"])]
        title = f"{saved.map_name}, seed {saved.seed}, outcome: {outcome}"
        progress.start(length, 0)
        images = []
        for image in draw.frames(episode, agent=agent, radius=grid.radius, terrain=terrain, title=title):
            images.append(image)
            progress.advance(1)
        sheet = stacked([images[step] for step in spread(length, rows)])
        return Preview(f"{path.stem}-agent{agent}", images, sheet)

    def scene(self, group: Group, number: int) -> Scene:
        return battle_scene(group, number, self.milliseconds)

    def details(self, group: Group, number: int, index: int) -> Addition:
        return agent_images(group, number, index)

    def statistics(self, group: Group, progress: Progress) -> GroupStats:
        return battle_stats(group, progress)

    def draw_statistics(self, entries: Sequence[GroupStats]) -> Figure:
        return draw_battles(entries)


def _drawn(group: Group, episode: draw.Episode, *, agent: int, title: str) -> Iterator[Image]:
    terrain = maps.height_bytes(scenarios.parse(group.settings["config"]["scenario"]).terrain)
    return draw.frames(episode, agent=agent, radius=group.attributes["radius"], terrain=terrain, title=title)
