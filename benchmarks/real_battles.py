"""How far the engine is from the real game: recorded battles, untrained agents, and networks trained in the game.

    python benchmarks/real_battles.py open [--map 2s3z] [--copies 4] [--recordings FILE] [--half even]
    python benchmarks/real_battles.py openings [--map MMM2_second] [--copies 4] [--recordings FILE] [--half even]
    python benchmarks/real_battles.py closed [--map 8m] [--episodes 200]
    python benchmarks/real_battles.py --network agent.th --map 2s3z [--episodes 96] [--enemy-order created]
    python benchmarks/real_battles.py curves --network agent.th --map MMM2_second [--episodes 96]
    python benchmarks/real_battles.py chance --network agent.th --map 2s3z [--episodes 96] [--copies 4]
    python benchmarks/real_battles.py                                     # open, openings and closed

`open` gives agents their recorded orders at the recorded loops and compares what happens, once as it comes and once
with the enemies dying as recorded. `openings` also puts all units on their recorded places before every step, as long
as these are known, so that only shooting is the engine's. `closed` plays agents that choose at random and compares
lengths and returns with public training logs. `--network` plays recurrent agents of pymarl's kind (fc1, GRU cell, fc2;
torch files with weights only) greedily on SMAC's observations; `curves` does so with the network of a recording and
compares how many are dead by when. `chance` records such a network in the engine and gives its orders again with other
draws: how far `open` would be off if every rule were right.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))  # recordings, and how they are played

import numpy as np
from game_networks import RecurrentAgent, play_network, record
from numpy.typing import NDArray
from recordings import RecordedBattle, load
from replay import CURVE_LOOPS, Row, compare, compare_guided, dead_by, play_recorded, recorded_places

from s2rm_data.core.errors import UsageError
from s2rm_data.core.seeding import sequence_seeds
from s2rm_data.starcraft import scenarios
from s2rm_data.starcraft.codes import Outcome
from s2rm_data.starcraft.engine import ENEMY_ORDERS, Engine
from s2rm_data.starcraft.rollout import Team, starts
from s2rm_data.starcraft.units import LOOPS_PER_STEP

FACTS = Path(__file__).parents[1] / "tests" / "starcraft" / "recordings"
RECORDINGS = FACTS / "real_battles.json.gz"


def game_facts() -> dict[str, Any]:
    return json.loads((FACTS / "game.json").read_text(encoding="utf-8"))


# --- open loop

OPENING_LOOPS = CURVE_LOOPS[:5]


def chosen(path: Path, maps: list[str], half: str | None) -> Iterator[tuple[str, list[RecordedBattle]]]:
    """`half` even or odd: only every other battle, so that rules can be chosen on one half and checked on the other."""
    for name, every in load(path).items():
        if not maps or name in maps or every[0].scenario in maps:
            yield name, every[("even", "odd").index(half) :: 2] if half else every


def print_openings(path: Path, maps: list[str], copies: int, half: str | None) -> None:
    for name, battles in chosen(path, maps, half):
        replay = play_recorded(battles, copies=copies, forced=True, until=OPENING_LOOPS[-1])
        told, between = known_places(battles, OPENING_LOOPS[-1] // LOOPS_PER_STEP)
        print(f"\n{name}, units put on their places, of which {told:.0%} are recorded and {between:.0%} interpolated")
        print_dead(battles, replay.death_loop, OPENING_LOOPS)


def known_places(battles: list[RecordedBattle], steps: int) -> tuple[float, float]:
    """Of the places of the living: the shares that are recorded, and that lie between two that are."""
    told = between = total = 0
    for battle in battles:
        places, known = recorded_places(battle, np.zeros((len(battle.unit_type), 2)), steps)
        living = battle.death_loop > LOOPS_PER_STEP * np.arange(steps)[:, None]
        told, total = told + int((known & living).sum()), total + int(living.sum())
        between += int((~known & living & ~np.isnan(places[..., 0])).sum())
    return told / total, between / total


def print_dead(battles: list[RecordedBattle], death_loop: NDArray[np.int64], loops: tuple[int, ...]) -> None:
    """Mean numbers of the dead by loop, and the largest difference up to loop 200 as a share of the side's units."""
    print(f"| dead by loop | {' | '.join(map(str, loops))} | off by at most |\n|{'---|' * (len(loops) + 2)}")
    recorded, agents = np.array([battle.death_loop for battle in battles]), battles[0].agents
    early = [loop for loop in loops if loop <= 200]
    for side, part in (("enemies", slice(agents, None)), ("agents", slice(0, agents))):
        game, engine = recorded[:, part], death_loop[:, part]
        off = np.abs(np.subtract(dead_by(game, early), dead_by(engine, early))).max() / game.shape[1]
        for judge, deaths, last in (("game", game, ""), ("engine", engine, f"{off:.2f} of {game.shape[1]}")):
            print(f"| {side}, {judge} | {' | '.join(f'{dead:.1f}' for dead in dead_by(deaths, loops))} | {last} |")


def print_open(path: Path, maps: list[str], copies: int, half: str | None) -> None:
    for name, battles in chosen(path, maps, half):
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


def print_networks(paths: list[Path], name: str, episodes: int, *, enemy_order: str) -> None:
    order = "at random" if enemy_order == "random" else "in order of creation"
    print(f"\n{name}, greedy networks, {episodes} episodes, enemies numbered {order}")
    print("| network | | won | length | agents dead | enemies dead |\n|---|---|---|---|---|---|")
    for path in paths:
        agent = RecurrentAgent(path)
        known = game_facts()["networks"].get(name, {}).get(agent.family)
        if known:
            won, *rest = known
            print(f"| {agent.family} | game | {100 * won:.0f} % | {' | '.join(_number(value) for value in rest)} |")
        result = play_network(agent, name, episodes, enemy_order=enemy_order)
        won, *rest = result.values()
        cells = " | ".join(_number(value) for value in rest)
        print(f"| {path} | engine | {won * episodes:.0f} of {episodes} | {cells} |", flush=True)


def print_curves(paths: list[Path], recordings: Path, name: str, episodes: int) -> None:
    """The network of a recording plays, with enemies numbered at random, as it did in the game."""
    battles = load(recordings).get(name)
    if battles is None:
        raise UsageError(f"no recording is called {name!r}; {recordings} has {', '.join(load(recordings))}")
    for path in paths:
        played = record(RecurrentAgent(path), battles[0].scenario, episodes, enemy_order="random")
        print(f"\n{name}, {path}: {len(battles)} recorded battles, {episodes} in the engine")
        print_dead(battles, np.array([battle.death_loop for battle in played]), CURVE_LOOPS)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument(
        "judge", nargs="?", choices=("open", "openings", "closed", "curves", "chance"),
        help="which comparison to make (open, openings, closed)",
    )  # fmt: skip
    parser.add_argument("--map", action="append", default=[], help="only this map; may be repeated")
    parser.add_argument("--recordings", type=Path, default=RECORDINGS, help="decoded recordings, gzipped JSON")
    parser.add_argument("--copies", type=int, default=4, help="how often each recorded battle is played")
    parser.add_argument("--half", choices=("even", "odd"), help="every other recorded battle only")
    parser.add_argument("--episodes", type=int, help="episodes per map (200; 96 per network)")
    parser.add_argument("--network", type=Path, nargs="+", default=[], help="torch files of agents, with one --map")
    parser.add_argument(
        "--enemy-order", default="random", choices=ENEMY_ORDERS, help="how networks' enemies are numbered"
    )
    options = parser.parse_args()
    try:
        if options.network:
            if len(options.map) != 1:
                raise UsageError("--network needs one --map, the map the network was trained on")
            use_one_thread()
            episodes = options.episodes or 96
            if options.judge == "chance":
                print_chance(options.network, options.map[0], episodes, options.copies)
            elif options.judge == "curves":
                print_curves(options.network, options.recordings, options.map[0], episodes)
            else:
                print_networks(options.network, options.map[0], episodes, enemy_order=options.enemy_order)
            return
        if options.judge in ("chance", "curves"):
            raise UsageError(f"{options.judge} needs --network, files of agents that play the battles, and their --map")
        if options.judge in (None, "open"):
            print_open(options.recordings, options.map, options.copies, options.half)
        if options.judge in (None, "openings"):
            print_openings(options.recordings, options.map, options.copies, options.half)
        if options.judge in (None, "closed"):
            print_closed(options.map, options.episodes or 200)
    except UsageError as error:
        sys.exit(f"real_battles.py: {error}")


if __name__ == "__main__":
    main()
