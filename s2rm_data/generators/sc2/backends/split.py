"""Episodes of the real game (or of whatever answers at its place) as the splits of a store."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from s2rm_data.errors import S2RMError
from s2rm_data.generators.sc2 import scenarios
from s2rm_data.generators.sc2.backends.battle import GameBattle
from s2rm_data.generators.sc2.backends.process import GameFault, Games
from s2rm_data.generators.sc2.config import Sc2Config
from s2rm_data.generators.sc2.polar import render
from s2rm_data.generators.sc2.rollout import Record, rollout
from s2rm_data.generators.sc2.source import Sc2Split, terrain_height
from s2rm_data.seeding import sequence_seeds

ATTEMPTS = 3


@dataclass(frozen=True, kw_only=True)
class GameSplit(Sc2Split):
    """A split played by `games`; every episode begins a game of its own, with its own seed."""

    games: Games
    game_version: str

    @staticmethod
    def of(split: Sc2Split, games: Games) -> GameSplit:
        kept = {f.name: getattr(split, f.name) for f in dataclasses.fields(Sc2Split) if f.init and f.name[0] != "_"}
        return GameSplit(**kept, games=games, game_version=games.version)

    @property
    def settings(self) -> dict[str, Any]:
        return super().settings | {"backend": "starcraft2", "game_version": self.game_version}

    @property
    def command(self) -> str:
        return f"{super().command} --backend starcraft2"

    def produce(self, start: int, stop: int) -> dict[str, NDArray[Any]]:
        seeds = sequence_seeds(self.seed, self.group, start, stop)
        episodes = [play_episode(self.games, self.config, int(seed)) for seed in seeds]
        record = {name: np.concatenate([episode[name] for episode in episodes]) for name in episodes[0]}
        values = record | render(record, grid=self.config.grid, terrain=terrain_height(self.config.scenario))
        return {spec.name: values[spec.name] for spec in self.arrays}


def play_episode(games: Games, config: Sc2Config, seed: int) -> Record:
    """The episode of a seed, each array (1, ...). A game that fails is replaced and the episode played from its
    start.
    """
    scenario = scenarios.parse(config.scenario)
    for _ in range(ATTEMPTS):
        try:
            with games.game() as game:
                battle = GameBattle(game, scenario, seed)
                record = rollout(
                    battle,
                    scenario,
                    policy=config.policy,
                    epsilon=float(config.epsilon or 0.0),
                    seeds=np.array([seed], dtype=np.uint64),
                    steps=config.steps,
                )
                game.episodes += 1
                return record
        except GameFault as fault:
            last = fault
    raise S2RMError(
        f"the game failed {ATTEMPTS} times in the episode of seed {seed} ({config.scenario}): {last}. "
        "What was committed is safe; run the same command again to go on, or use --backend engine"
    )
