"""How far the engine is from the real game: recorded battles, untrained agents, and networks trained in the game.

    python benchmarks/real_battles.py open [--map 2s3z] [--copies 4] [--recordings FILE] [--half even]
    python benchmarks/real_battles.py closed [--map 8m] [--episodes 200]
    python benchmarks/real_battles.py --network agent.th --map 2s3z [--episodes 32] [--random-numbers]
    python benchmarks/real_battles.py                                     # open and closed

`open` gives agents their recorded orders at the recorded loops and compares what happens, once as it comes and once
with the enemies dying as recorded. `closed` plays agents that choose at random and compares lengths and returns with
public training logs. `--network` plays recurrent agents of pymarl's kind (fc1, GRU cell, fc2; torch files with weights
only) greedily on SMAC's observations.
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
from numpy.typing import NDArray

from s2rm_data.errors import UsageError
from s2rm_data.generators.sc2 import scenarios
from s2rm_data.generators.sc2.codes import Action, Outcome
from s2rm_data.generators.sc2.engine import Engine
from s2rm_data.generators.sc2.features import Features
from s2rm_data.generators.sc2.recordings import load
from s2rm_data.generators.sc2.replay import compare, compare_guided, play_recorded
from s2rm_data.generators.sc2.rollout import starts
from s2rm_data.generators.sc2.team import Team
from s2rm_data.generators.sc2.units import UNIT_TYPES
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
        print("| | game | engine |\n|---|---|---|")
        guided = compare_guided(battles, play_recorded(battles, copies=copies, guided=True))
        rows += [replace(row, name=f"enemies die as recorded: {row.name}") for row in guided]
        for row in rows:
            print(f"| {row.name} | {_number(row.game)} | {_number(row.engine)} |")


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


class RecurrentAgent:
    """pymarl's recurrent agent, the same weights for all agents: input = observation, last action and agent number
    (one-hot each, as far as the file's input has room for them), then fc1, ReLU, a GRU cell, fc2.
    """

    def __init__(self, path: Path) -> None:
        import torch

        try:
            weights = torch.load(path, map_location="cpu", weights_only=True)
            self.family = "sac-qmix" if "agent.fc1.weight" in weights else "pymarl"
            weights = {key.removeprefix("agent."): value for key, value in weights.items()}
            hidden, self.inputs = weights["fc1.weight"].shape
            self.actions = weights["fc2.weight"].shape[0]
            self._fc1, self._fc2 = torch.nn.Linear(self.inputs, hidden), torch.nn.Linear(hidden, self.actions)
            self._rnn = torch.nn.GRUCell(hidden, hidden)
            for part, module in (("fc1", self._fc1), ("rnn", self._rnn), ("fc2", self._fc2)):
                own = {
                    key.removeprefix(f"{part}."): value for key, value in weights.items() if key.startswith(f"{part}.")
                }
                module.load_state_dict(own)
            if unknown := {key.split(".")[0] for key in weights} - {"fc1", "rnn", "fc2"}:
                raise UsageError(f"{path} has layers besides fc1, rnn and fc2: {', '.join(sorted(unknown))}")
        except (OSError, KeyError, AttributeError, RuntimeError) as error:
            raise UsageError(
                f"{path} is not a recurrent agent of pymarl's kind ({type(error).__name__}: {error}); it has to be a "
                "torch file of the weights of fc1 (Linear), rnn (GRUCell) and fc2 (Linear)"
            ) from error
        self._torch, self._hidden_size = torch, hidden

    def begin(self, battles: int, features: Features, actions: int) -> None:
        """Forget everything; `features` and the number of actions of the map have to fit the file."""
        agents, rest = features.agents, self.inputs - features.observation_size
        fitting = {agents + actions: (True, True), agents: (False, True), actions: (True, False), 0: (False, False)}
        if self.actions != actions or rest not in fitting:
            raise UsageError(
                f"the network takes {self.inputs} inputs and chooses among {self.actions} actions; this map has "
                f"observations of {features.observation_size}, {agents} agents and {actions} actions; check --map"
            )
        self._sees_action, self._sees_number = fitting[rest]
        self._hidden = self._torch.zeros(battles * agents, self._hidden_size)
        self._last = np.zeros((battles, agents, actions), np.float32)

    def act(self, observation: NDArray[np.float32], available: NDArray[np.bool_]) -> NDArray[np.int64]:
        """(B, N) the best available actions."""
        B, N, A = available.shape
        parts = [observation]
        if self._sees_action:
            parts.append(self._last)
        if self._sees_number:
            parts.append(np.broadcast_to(np.eye(N, dtype=np.float32), (B, N, N)))
        inputs = self._torch.from_numpy(np.concatenate(parts, axis=-1).reshape(B * N, -1))
        with self._torch.no_grad():
            self._hidden = self._rnn(self._torch.relu(self._fc1(inputs)), self._hidden)
            values = self._fc2(self._hidden).numpy().reshape(B, N, A)
        chosen = np.where(available, values, -np.inf).argmax(axis=-1)
        self._last = np.eye(A, dtype=np.float32)[chosen]
        return chosen


class Numbering:
    """How the enemies of every battle are numbered for the agents: in order of creation, or at random.

    Measured: the real game numbers them at random. From equal states, recorded networks aim at enemy 4 of 8m in half
    of the battles and at 7 in the others, and at loop 0 of 2c_vs_64zg at 24 different pairs in 31 battles.
    """

    def __init__(self, battles: int, features: Features, unit_type: NDArray[np.uint8], *, at_random: bool) -> None:
        rng, created = np.random.default_rng(0), np.arange(features.enemies)
        enemies = len(created)
        self.slot = np.array([rng.permutation(enemies) if at_random else created for _ in range(battles)])  # (B, E)
        stop = features.move_width + enemies * features.enemy_width
        self._block = slice(features.move_width, stop)
        self._fighters = np.array([not UNIT_TYPES[int(kind)].is_healer for kind in unit_type[: features.agents]])

    def renumber(
        self, observation: NDArray[np.float32], available: NDArray[np.bool_]
    ) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        (B, N, _), (_, E) = observation.shape, self.slot.shape
        seen, mask = observation.copy(), available.copy()
        enemies = seen[..., self._block].reshape(B, N, E, -1)
        seen[..., self._block] = np.take_along_axis(enemies, self.slot[:, None, :, None], axis=2).reshape(B, N, -1)
        attacks = mask[:, self._fighters, Action.ATTACK : Action.ATTACK + E]
        mask[:, self._fighters, Action.ATTACK : Action.ATTACK + E] = np.take_along_axis(
            attacks, self.slot[:, None, :], axis=2
        )
        return seen, mask

    def slots(self, actions: NDArray[np.int64]) -> NDArray[np.int64]:
        """The same actions with enemies by their slots in the engine."""
        aimed = (actions >= Action.ATTACK) & self._fighters
        number = np.where(aimed, actions - Action.ATTACK, 0)
        return np.where(aimed, Action.ATTACK + np.take_along_axis(self.slot, number, axis=1), actions)


def play_network(agent: RecurrentAgent, name: str, episodes: int, *, at_random: bool = False) -> dict[str, float]:
    """Win rate, mean length in steps, and how many agents and enemies are dead at the end."""
    engine = Engine(scenarios.parse(name), sequence_seeds(0, f"benchmark/{name}", 0, episodes))
    features = Features(engine.unit_type, engine.agents)
    numbering = Numbering(episodes, features, engine.unit_type, at_random=at_random)
    agent.begin(episodes, features, engine.actions)
    while not engine.done.all():
        available = engine.available()
        chosen = agent.act(*numbering.renumber(features.observe(engine.snapshot(), available), available))
        engine.step(numbering.slots(chosen))
    dead = engine.snapshot().health <= 0
    return {
        "won": float((engine.outcome == Outcome.WIN).mean()),
        "length": float(engine.step_count.mean()),
        "agents dead": float(dead[:, : engine.agents].sum(axis=1).mean()),
        "enemies dead": float(dead[:, engine.agents :].sum(axis=1).mean()),
    }


def print_networks(paths: list[Path], name: str, episodes: int, *, at_random: bool) -> None:
    try:
        import torch
    except ImportError:
        raise UsageError("playing networks needs torch; install it with: pip install 's2rm-data[train]'") from None
    torch.set_num_threads(1)
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
    parser.add_argument("judge", nargs="?", choices=("open", "closed"), help="which comparison to make (both)")
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
            print_networks(options.network, options.map[0], options.episodes or 32, at_random=options.random_numbers)
            return
        if options.judge != "closed":
            print_open(options.recordings, options.map, options.copies, options.half)
        if options.judge != "open":
            print_closed(options.map, options.episodes or 200)
    except UsageError as error:
        sys.exit(f"real_battles.py: {error}")


if __name__ == "__main__":
    main()
