"""Networks trained in the real game: read from files of pymarl's kind, played in the engine, their battles recorded.

`record` writes down what a network does in the engine as a recording of the game would show it, so that its orders can
be given again with other chance (`real_battles.py chance`).
"""

# B battles, U units of both sides (agents first), N agents, E enemies, A actions

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from s2rm_data.errors import UsageError
from s2rm_data.generators.sc2 import scenarios
from s2rm_data.generators.sc2.codes import Action, Outcome
from s2rm_data.generators.sc2.engine import Engine
from s2rm_data.generators.sc2.features import Features
from s2rm_data.generators.sc2.recordings import DIRECTIONS, MOVE_AMOUNT, Attack, Heal, Move, RecordedBattle, Stop
from s2rm_data.generators.sc2.replay import Given
from s2rm_data.generators.sc2.units import LOOPS_PER_STEP, UNIT_TYPES
from s2rm_data.seeding import sequence_seeds


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


def record(agent: RecurrentAgent, name: str, episodes: int) -> list[RecordedBattle]:
    """Battles of a network in the engine, as recordings of the game tell battles; all but killers."""
    engine = Engine(scenarios.parse(name), sequence_seeds(0, f"benchmark/{name}", 0, episodes))
    features = Features(engine.unit_type, engine.agents)
    agent.begin(episodes, features, engine.actions)
    fighters = np.array([not UNIT_TYPES[int(kind)].is_healer for kind in engine.unit_type])
    start = engine.snapshot().position
    orders: list[list[Given]] = [[] for _ in range(episodes)]
    deaths: list[list[tuple[int, int, None]]] = [[] for _ in range(episodes)]
    steps, running = np.zeros(episodes, np.int64), np.ones(episodes, np.bool_)
    while running.any() and steps.max() < engine.scenario.limit_steps:
        now, available = engine.snapshot(), engine.available()
        chosen = agent.act(features.observe(now, available), available)
        loop = int(steps.max()) * LOOPS_PER_STEP
        for battle in np.flatnonzero(running):
            orders[battle] += _orders(chosen[battle], fighters, now.position[battle].tolist(), loop)
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
            unit_type=tuple(engine.unit_type.tolist()),
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
