"""Draw recorded and simulated paths of one battle per map side by side.

    python benchmarks/battle_paths.py [docs/images/real_paths.png] [--recordings FILE] [--map 3m --map 8m --map 2s3z]

Dots are places a recording tells: of an agent at its move orders, of an enemy at the attack orders on it. The engine
plays the same orders, and its path is drawn at the same loops only, so that both sides show the same moments.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))  # recordings, and how they are played

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray
from real_battles import RECORDINGS
from recordings import NEVER, RecordedBattle, load
from replay import play_recorded

from s2rm_data.starcraft.units import LOOPS_PER_STEP

IMAGE = Path(__file__).parents[1] / "docs" / "images" / "real_paths.png"
AGENT_COLOUR, ENEMY_COLOUR = "tab:blue", "tab:red"
Paths = dict[int, NDArray[np.float64]]  # by unit: (n, 3) loop, x, y


def recorded_paths(battle: RecordedBattle, until: int) -> Paths:
    seen: dict[int, set[tuple[float, float, float]]] = {}
    for move in battle.moves:
        if move.position is not None and move.loop <= until:
            seen.setdefault(move.agent, set()).add((move.loop, *move.position))
    for attack in battle.attacks:
        if attack.loop <= until:
            seen.setdefault(attack.target, set()).add((attack.loop, *attack.position))
    return {unit: np.array(sorted(places)) for unit, places in seen.items()}


def simulated_paths(recorded: Paths, position: NDArray[np.float32]) -> Paths:
    """The same units at the same loops, from (S, U, 2) positions before each step."""
    paths = {}
    for unit, places in recorded.items():
        steps = (places[:, 0] // LOOPS_PER_STEP).astype(int)
        paths[unit] = np.column_stack([places[:, 0], position[steps, unit]])
    return paths


def draw(axes: Axes, paths: Paths, agents: int) -> None:
    for unit, places in paths.items():
        colour = AGENT_COLOUR if unit < agents else ENEMY_COLOUR
        axes.plot(places[:, 1], places[:, 2], "-", color=colour, linewidth=0.8, alpha=0.6)
        axes.scatter(places[:, 1], places[:, 2], s=9, color=colour, alpha=0.8, linewidths=0)
        axes.annotate(str(unit), places[-1, 1:], fontsize=6, xytext=(2, 2), textcoords="offset points")
    axes.set_aspect("equal")
    axes.tick_params(labelsize=6)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("out", type=Path, nargs="?", default=IMAGE, help="the image to write (that of the docs)")
    parser.add_argument("--recordings", type=Path, default=RECORDINGS, help="decoded recordings, gzipped JSON")
    parser.add_argument("--map", action="append", default=[], help="recording to draw; may be repeated (3m, 8m, 2s3z)")
    parser.add_argument("--battle", type=int, default=1, help="which battle of each recording")
    options = parser.parse_args()
    names = options.map or ["3m", "8m", "2s3z"]
    recordings = load(options.recordings)
    figure, grid = plt.subplots(len(names), 2, figsize=(9, 1.9 * len(names)), squeeze=False, layout="constrained")
    for row, name in zip(grid, names, strict=True):
        battle = recordings[name][options.battle]
        replay = play_recorded([battle], copies=1)
        deaths = min(battle.death_loop[: battle.agents].min(), replay.death_loop[0, : battle.agents].min())
        until = int(deaths) if deaths < NEVER else battle.steps * LOOPS_PER_STEP
        recorded = recorded_paths(battle, until)
        for axes, title, paths in (
            (row[0], "game", recorded),
            (row[1], "engine", simulated_paths(recorded, replay.position[:, 0])),
        ):
            draw(axes, paths, battle.agents)
            axes.set_title(f"{name}, {title}, until the first agent dies (loop {until})", fontsize=8)
        for axes in row[1:]:
            axes.sharex(row[0])
            axes.sharey(row[0])
    handles = [
        plt.Line2D([], [], color=colour, marker="o", markersize=3, label=label)
        for colour, label in ((AGENT_COLOUR, "agents"), (ENEMY_COLOUR, "enemies"))
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=2, fontsize=8)
    figure.savefig(options.out, dpi=110)
    print(f"wrote {options.out}")


if __name__ == "__main__":
    main()
