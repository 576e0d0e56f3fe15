"""Recorded battles of the real game, decoded; `replay` plays them in the engine.

    battles = load(Path("real_battles.json.gz"))["2s3z"]

A recording tells, for units numbered in order of creation (agents first), every order of the agents and every death
with its loop and killer. A move order goes to a point 2 from the agent on one axis: where the direction is known, it
tells the agent's exact position at that loop. An attack order carries the exact position of its target. Loops count
from SMAC's first step of the episode; SMAC orders every living agent at every step.
"""

# U units of both sides (agents first)

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from s2rm_data.core.errors import UsageError
from s2rm_data.starcraft import scenarios
from s2rm_data.starcraft.units import NUMBER_OF

MOVE_AMOUNT = 2.0  # SMAC's
DIRECTIONS = {"N": (0.0, MOVE_AMOUNT), "S": (0.0, -MOVE_AMOUNT), "E": (MOVE_AMOUNT, 0.0), "W": (-MOVE_AMOUNT, 0.0)}
NEVER = 10**6  # loop of a death that did not come


@dataclass(frozen=True, kw_only=True)
class Move:
    loop: int
    agent: int
    goal: tuple[float, float]
    position: tuple[float, float] | None  # of the agent at that loop, where it is known


@dataclass(frozen=True, kw_only=True)
class Attack:
    loop: int
    agent: int
    target: int
    position: tuple[float, float]  # of the target at that loop


@dataclass(frozen=True, kw_only=True)
class Stop:
    loop: int
    agent: int


@dataclass(frozen=True, kw_only=True)
class Heal:
    loop: int
    agent: int
    target: int


@dataclass(frozen=True, kw_only=True)
class RecordedBattle:
    """One episode; units are numbered in order of creation, agents first."""

    scenario: str
    steps: int
    unit_type: tuple[int, ...]
    agents: int
    birth_cell: tuple[tuple[int, int], ...]
    moves: tuple[Move, ...]
    attacks: tuple[Attack, ...]
    stops: tuple[Stop, ...]
    heals: tuple[Heal, ...]
    deaths: tuple[tuple[int, int, int | None], ...]  # loop, unit, killer (None if it was not recorded)

    @property
    def death_loop(self) -> NDArray[np.int64]:
        """(U,) the loop each unit died in, NEVER for survivors."""
        loops = np.full(len(self.unit_type), NEVER)
        for loop, unit, _ in self.deaths:
            loops[unit] = loop
        return loops

    @property
    def first_positions(self) -> dict[int, tuple[float, float]]:
        """Where agents stood at loop 0, for those whose first order tells."""
        return {move.agent: move.position for move in self.moves if move.loop == 0 and move.position is not None}


def load(path: Path) -> dict[str, list[RecordedBattle]]:
    """Recordings by name: a scenario, or a scenario with an ending such as MMM2_second."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            content = json.load(file)
        return {
            name: [_decode(_scenario_of(name), episode) for episode in episodes] for name, episodes in content.items()
        }
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise UsageError(
            f"{path} cannot be read as recorded battles ({type(error).__name__}: {error}); it has to be gzipped JSON, "
            "a list of episodes with steps, types, owner, birth_cell, deaths, moves and attacks (and moves_to, stops, "
            "heals) under each map's name"
        ) from error


def _scenario_of(name: str) -> str:
    fitting = [known for known in scenarios.SMAC if name == known or name.startswith(f"{known}_")]
    if not fitting:
        raise ValueError(f"no SMAC map is called {name!r}")
    return max(fitting, key=len)


def _decode(scenario: str, episode: dict[str, Any]) -> RecordedBattle:
    agents = episode["owner"].count(1)
    if episode["owner"] != [1] * agents + [2] * (len(episode["owner"]) - agents):
        raise ValueError("the agents do not come first")
    return RecordedBattle(
        scenario=scenario,
        steps=int(episode["steps"]),
        unit_type=tuple(NUMBER_OF[name.removesuffix("_RL").lower()] for name in episode["types"]),
        agents=agents,
        birth_cell=tuple((int(x), int(y)) for x, y in episode["birth_cell"]),
        moves=(*map(_move, episode["moves"]), *map(_move_to, episode.get("moves_to", ()))),
        attacks=tuple(Attack(loop=a[0], agent=a[1], target=a[2], position=(a[3], a[4])) for a in episode["attacks"]),
        stops=tuple(Stop(loop=loop, agent=agent) for loop, agent in episode.get("stops", ())),
        heals=tuple(Heal(loop=loop, agent=agent, target=target) for loop, agent, target in episode.get("heals", ())),
        deaths=tuple(
            (d[0], d[1], d[2] if d[2] is not None and d[2] >= 0 else None) for d in episode["deaths"]
        ),
    )  # fmt: skip


def _move(entry: list[Any]) -> Move:
    """A move whose direction, and so the agent's position, is known."""
    loop, agent, direction, x, y = entry
    dx, dy = DIRECTIONS[direction]
    return Move(loop=loop, agent=agent, goal=(x + dx, y + dy), position=(x, y))


def _move_to(entry: list[Any]) -> Move:
    loop, agent, x, y = entry
    return Move(loop=loop, agent=agent, goal=(x, y), position=None)
