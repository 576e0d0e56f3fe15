"""Networks trained in the real game: read from files of pymarl's kind, played in the engine, their battles recorded.

`record` writes down what a network does in the engine as a recording of the game would show it, so that its orders can
be given again with other chance (`real_battles.py chance`), and its deaths be compared (`real_battles.py curves`).
"""

# B battles, U units of both sides (agents first), N agents, E enemies, A actions

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))  # recordings, and how they are played

import numpy as np
from numpy.typing import NDArray
from recordings import DIRECTIONS, MOVE_AMOUNT, Attack, Heal, Move, RecordedBattle, Stop
from replay import Given

from s2rm_data.core.errors import UsageError
from s2rm_data.core.seeding import sequence_seeds
from s2rm_data.starcraft import scenarios
from s2rm_data.starcraft.codes import Action, Outcome
from s2rm_data.starcraft.engine import Engine
from s2rm_data.starcraft.features import Features
from s2rm_data.starcraft.units import LOOPS_PER_STEP, UNIT_TYPES


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


def play_network(agent: RecurrentAgent, name: str, episodes: int, *, enemy_order: str = "random") -> dict[str, float]:
    """Win rate, mean length in steps, and how many agents and enemies are dead at the end."""
    engine = Engine(scenarios.parse(name), sequence_seeds(0, f"benchmark/{name}", 0, episodes), enemy_order=enemy_order)
    features = Features(engine.kinds[0].astype(np.uint8), engine.agents)
    agent.begin(episodes, features, engine.actions)
    while not engine.done.all():
        available = engine.available()
        engine.step(agent.act(features.observe(engine.snapshot(), available), available))
    dead = engine.snapshot().health <= 0
    return {
        "won": float((engine.outcome == Outcome.WIN).mean()),
        "length": float(engine.step_count.mean()),
        "agents dead": float(dead[:, : engine.agents].sum(axis=1).mean()),
        "enemies dead": float(dead[:, engine.agents :].sum(axis=1).mean()),
    }


def record(agent: RecurrentAgent, name: str, episodes: int, *, enemy_order: str = "created") -> list[RecordedBattle]:
    """Battles of a network in the engine, as recordings of the game tell battles; all but killers. Only with enemies
    in order of creation can their orders be given again.
    """
    seeds = sequence_seeds(0, f"benchmark/{name}", 0, episodes)
    engine = Engine(scenarios.parse(name), seeds, enemy_order=enemy_order)
    features = Features(engine.kinds[0].astype(np.uint8), engine.agents)
    agent.begin(episodes, features, engine.actions)
    fighters = np.vectorize(lambda kind: not UNIT_TYPES[kind].is_healer)(engine.kinds)  # (B, U)
    start = engine.snapshot().position
    orders: list[list[Given]] = [[] for _ in range(episodes)]
    deaths: list[list[tuple[int, int, None]]] = [[] for _ in range(episodes)]
    steps, running = np.zeros(episodes, np.int64), np.ones(episodes, np.bool_)
    while running.any() and steps.max() < engine.scenario.limit_steps:
        now, available = engine.snapshot(), engine.available()
        chosen = agent.act(features.observe(now, available), available)
        loop = int(steps.max()) * LOOPS_PER_STEP
        for battle in np.flatnonzero(running):
            orders[battle] += _orders(chosen[battle], fighters[battle], now.position[battle].tolist(), loop)
        engine.act(chosen, MOVE_AMOUNT)
        alive = now.health > 0
        for later in range(loop + 1, loop + LOOPS_PER_STEP + 1):
            engine.run_loops(1)
            fell = alive & (engine.snapshot().health <= 0)
            for battle, unit in np.argwhere(fell & running[:, None]):
                deaths[battle].append((later, int(unit), None))
            alive &= ~fell
        steps[running] += 1
        standing = alive & fighters
        running &= standing[:, : engine.agents].any(axis=1) & standing[:, engine.agents :].any(axis=1)
    return [
        RecordedBattle(
            scenario=name,
            steps=int(steps[battle]),
            unit_type=tuple(engine.kinds[battle].tolist()),
            agents=engine.agents,
            birth_cell=tuple((int(x), int(y)) for x, y in start[battle]),
            moves=tuple(order for order in orders[battle] if isinstance(order, Move)),
            attacks=tuple(order for order in orders[battle] if isinstance(order, Attack)),
            stops=tuple(order for order in orders[battle] if isinstance(order, Stop)),
            heals=tuple(order for order in orders[battle] if isinstance(order, Heal)),
            deaths=tuple(deaths[battle]),
        )
        for battle in range(episodes)
    ]


_DIRECTION = {Action.NORTH: "N", Action.SOUTH: "S", Action.EAST: "E", Action.WEST: "W"}


def _orders(
    actions: NDArray[np.int64], fighters: NDArray[np.bool_], position: list[list[float]], loop: int
) -> Iterator[Given]:
    """The orders of one battle that a recording would show; `position` (U, 2)."""
    for agent, action in enumerate(actions.tolist()):
        x, y = position[agent]
        if action in _DIRECTION:
            dx, dy = DIRECTIONS[_DIRECTION[Action(action)]]
            yield Move(loop=loop, agent=agent, goal=(x + dx, y + dy), position=(x, y))
        elif action == Action.STOP:
            yield Stop(loop=loop, agent=agent)
        elif action >= Action.ATTACK and not fighters[agent]:
            yield Heal(loop=loop, agent=agent, target=action - Action.ATTACK)
        elif action >= Action.ATTACK:
            target = len(actions) + action - Action.ATTACK
            yield Attack(loop=loop, agent=agent, target=target, position=(position[target][0], position[target][1]))
