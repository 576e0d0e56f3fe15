"""Episodes of the real game (or of whatever answers at its place) as the splits of a store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from s2rm_data.core.errors import S2RMError
from s2rm_data.core.schema import Lent
from s2rm_data.core.seeding import sequence_seeds
from s2rm_data.generators.sc2.making.battle_config import Sc2Config
from s2rm_data.generators.sc2.making.battle_source import Sc2Split, play
from s2rm_data.starcraft import scenarios
from s2rm_data.starcraft.api.client.battle import GameBattle
from s2rm_data.starcraft.api.client.process import GameFault, GameProcess, Games
from s2rm_data.starcraft.rollout import Record

ATTEMPTS = 3
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class GameSplit(Sc2Split):
    """A split played by `games`; every episode begins a game of its own, with its own seed."""

    games: Games
    game_version: str

    @property
    def settings(self) -> dict[str, Any]:
        return super().settings | {"backend": "starcraft2", "game_version": self.game_version}

    @property
    def command(self) -> str:
        return f"{super().command} --backend starcraft2"

    def _episodes(self, start: int, stop: int) -> Record:
        seeds = sequence_seeds(self.seed, self.group, start, stop)
        episodes = [play_episode(self.games, self.config, int(seed)) for seed in seeds]
        return {name: np.concatenate([episode[name] for episode in episodes]) for name in episodes[0]}

    def lend(self, start: int, stop: int) -> Iterator[Lent]:
        for number in range(start, stop):
            yield Lent(self.produce(number, number + 1), {})


def played_by(games: Games, splits: Sequence[Sc2Split]) -> list[GameSplit]:
    """The same splits, played in the game. Starts one, to learn its version."""
    version = _with_fresh_games(games, lambda game: game.version, "while it was started")
    return [
        GameSplit(config=s.config, seed=s.seed, split=s.split, count=s.count, games=games, game_version=version)
        for s in splits
    ]


def play_episode(games: Games, config: Sc2Config, seed: int) -> Record:
    """The episode of a seed, each array (1, ...). A game that fails is replaced and the episode played from its
    start."""

    def once(game: GameProcess) -> Record:
        game.episodes += 1
        battle = GameBattle(game, scenarios.parse(config.scenario), seed)
        return play(config, np.array([seed], dtype=np.uint64), battle)

    return _with_fresh_games(games, once, f"in the episode of seed {seed} ({config.scenario})")


def _with_fresh_games(games: Games, work: Callable[[GameProcess], T], when: str) -> T:
    for _ in range(ATTEMPTS):
        try:
            with games.game() as game:
                return work(game)
        except GameFault as fault:
            last = fault
    raise S2RMError(
        f"the game failed {ATTEMPTS} times {when}: {last}. "
        "What was committed is safe; run the same command again to resume, or use --backend engine"
    )
