"""How far the engine is from the real game: recorded battles, untrained agents, and networks trained in the game.

    python benchmarks/real_battles.py open [--map 2s3z] [--copies 4] [--recordings FILE] [--half even]
    python benchmarks/real_battles.py closed [--map 8m] [--episodes 200]
    python benchmarks/real_battles.py --network agent.th --map 2s3z [--episodes 32] [--random-numbers]
    python benchmarks/real_battles.py chance --network agent.th --map 2s3z [--episodes 32] [--copies 4]
    python benchmarks/real_battles.py                                     # open and closed

`open` gives agents their recorded orders at the recorded loops and compares what happens, once as it comes and once
with the enemies dying as recorded. `closed` plays agents that choose at random and compares lengths and returns with
public training logs. `--network` plays recurrent agents of pymarl's kind (fc1, GRU cell, fc2; torch files with weights
only) greedily on SMAC's observations. `chance` records such a network in the engine and gives its orders again with
other draws: how far `open` would be off if every rule were right.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from game_networks import RecurrentAgent, play_network, record
from numpy.typing import NDArray

from s2rm_data.errors import UsageError
from s2rm_data.generators.sc2 import scenarios
from s2rm_data.generators.sc2.codes import Outcome
from s2rm_data.generators.sc2.engine import Engine
from s2rm_data.generators.sc2.recordings import load
from s2rm_data.generators.sc2.replay import Row, compare, compare_guided, play_recorded
from s2rm_data.generators.sc2.rollout import starts
from s2rm_data.generators.sc2.team import Team
from s2rm_data.seeding import sequence_seeds

FACTS = Path(__file__).parents[1] / "tests" / "generators" / "sc2" / "recordings"
RECORDINGS = FACTS / "real_battles.json.gz"


def game_facts() -> dict[str, Any]:
    return json.loads((FACTS / "game.json").read_text(encoding="utf-8"))


# --- open loop


def print_open(path: Path, maps: list[str], copies: int, half: str | None) -> None:
    """`half` even or odd: only every other battle, so that rules can be chosen on one half and checked on the other."""
    for name, every in load(path).items():
        if maps and name not in maps and every[0].scenario not in maps:
            continue
        battles = every[("even", "odd").index(half) :: 2] if half else every
        start = time.process_time()
        rows = compare(battles, play_recorded(battles, copies=copies))
        spent = time.process_time() - start
        print(f"\n{name}: {len(battles)} recorded battles, each {copies} times in the engine ({spent:.1f} CPU-s)")
        guided = compare_guided(battles, play_recorded(battles, copies=copies, guided=True))
        rows += [replace(row, name=f"enemies die as recorded: {row.name}") for row in guided]
        print_rows(rows, "game")


def print_rows(rows: list[Row], against: str) -> None:
    print(f"| | {against} | engine |\n|---|---|---|")
    for row in rows:
        print(f"| {row.name} | {_number(row.game)} | {_number(row.engine)} |")


def print_chance(paths: list[Path], name: str, episodes: int, copies: int) -> None:
    """The same comparison with the engine's own battles in the game's place: what is left is chance."""
    for path in paths:
        battles = record(RecurrentAgent(path), name, episodes)
        print(f"\n{name}, {path}: {episodes} battles of the engine, their orders again {copies} times with other draws")
        print_rows(compare(battles, play_recorded(battles, copies=copies)), "recorded here")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}"


# --- closed loop


def play_random(name: str, episodes: int) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_]]:
    """(B,) lengths in steps, returns, and who won, of agents that choose among the available actions at random."""
    scenario = scenarios.parse(name)
    seeds = sequence_seeds(0, f"benchmark/{name}", 0, episodes)
    engine = Engine(scenario, seeds)
    team = Team("random", epsilon=0.0, seeds=seeds, agents=engine.agents, starts=starts(scenario, engine.snapshot()))
    returns, step = np.zeros(episodes), 0
    while not engine.done.all():
        actions = team.act(engine.snapshot(), engine.available(), step=step, running=~engine.done)
        engine.step(actions)
        returns += engine.reward
        step += 1
    return engine.step_count.copy(), returns, engine.outcome == Outcome.WIN


def print_closed(maps: list[str], episodes: int) -> None:
    """Deviations are from the nearer of the two columns of the game."""
    print(f"\nagents that choose at random, {episodes} episodes per map; mean length in steps, mean return")
    print("| map | game, first | game, early | engine | length off by | return off by | won |\n|" + "---|" * 7)
    for name, known in game_facts()["untrained"].items():
        if maps and name not in maps:
            continue
        length, returns, won = play_random(name, episodes)
        cells = [f"{known[column][0]}, {known[column][1]}" if column in known else "-" for column in ("first", "early")]
        error = length.std() / episodes**0.5
        cells.append(f"{length.mean():.1f} ± {error:.1f}, {returns.mean():.2f}")
        for index, mean in enumerate((length.mean(), returns.mean())):
            off = min((mean / values[index] - 1 for values in known.values()), key=abs)
            cells.append(f"{100 * off:+.1f} %")
        print(f"| {name} | {' | '.join(cells)} | {100 * won.mean():.0f} % |", flush=True)


# --- networks


def use_one_thread() -> None:
    try:
        import torch
    except ImportError:
        raise UsageError("playing networks needs torch; install it with: pip install 's2rm-data[train]'") from None
    torch.set_num_threads(1)


def print_networks(paths: list[Path], name: str, episodes: int, *, at_random: bool) -> None:
    order = "at random" if at_random else "in order of creation"
    print(f"\n{name}, greedy networks, {episodes} episodes, enemies numbered {order}")
    print("| network | | won | length | agents dead | enemies dead |\n|---|---|---|---|---|---|")
    for path in paths:
        agent = RecurrentAgent(path)
        known = game_facts()["networks"].get(name, {}).get(agent.family)
        if known:
            won, *rest = known
            print(f"| {agent.family} | game | {100 * won:.0f} % | {' | '.join(_number(value) for value in rest)} |")
        result = play_network(agent, name, episodes, at_random=at_random)
        won, *rest = result.values()
        cells = " | ".join(_number(value) for value in rest)
        print(f"| {path} | engine | {won * episodes:.0f} of {episodes} | {cells} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument(
        "judge", nargs="?", choices=("open", "closed", "chance"), help="which comparison to make (open, closed)"
    )
    parser.add_argument("--map", action="append", default=[], help="only this map; may be repeated")
    parser.add_argument("--recordings", type=Path, default=RECORDINGS, help="decoded recordings, gzipped JSON")
    parser.add_argument("--copies", type=int, default=4, help="how often each recorded battle is played")
    parser.add_argument("--half", choices=("even", "odd"), help="every other recorded battle only")
    parser.add_argument("--episodes", type=int, help="episodes per map (200; 32 per network)")
    parser.add_argument("--network", type=Path, nargs="+", default=[], help="torch files of agents, with one --map")
    parser.add_argument("--random-numbers", action="store_true", help="number the enemies at random for networks")
    options = parser.parse_args()
    try:
        if options.network:
            if len(options.map) != 1:
                raise UsageError("--network needs one --map, the map the network was trained on")
            use_one_thread()
            if options.judge == "chance":
                print_chance(options.network, options.map[0], options.episodes or 32, options.copies)
                return
            print_networks(options.network, options.map[0], options.episodes or 32, at_random=options.random_numbers)
            return
        if options.judge == "chance":
            raise UsageError("chance needs --network, files of agents that play the battles, and their --map")
        if options.judge != "closed":
            print_open(options.recordings, options.map, options.copies, options.half)
        if options.judge != "open":
            print_closed(options.map, options.episodes or 200)
    except UsageError as error:
        sys.exit(f"real_battles.py: {error}")


if __name__ == "__main__":
    main()
