"""The recorder: a user's own agents play a live SMAC environment, and a store gets what a generated split would have.

    env = Recorder(StarCraft2Env(map_name="3s5z"), Path("data.zarr"), episodes=100, policy="qmix")
    with env:
        while not env.full:
            env.reset()
            ...                                    # env.step(actions) and all else as before

Episodes are committed in shards; one that the game breaks off is not recorded. Left early, the group stays
unfinished, and the next recorder with the same settings continues it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import s2rm_data
from s2rm_data.core.check import to_json
from s2rm_data.core.errors import UsageError
from s2rm_data.core.schema import ArraySpec
from s2rm_data.generators.sc2.making.battle_config import EpisodeConfig, Sc2Config
from s2rm_data.generators.sc2.making.battle_source import GENERATOR_VERSION, Sc2Split
from s2rm_data.making.run import ShardBuilder
from s2rm_data.starcraft import scenarios
from s2rm_data.starcraft.api.client.field import LiveEpisode
from s2rm_data.starcraft.polar import render, terrain_height
from s2rm_data.starcraft.rollout import Record
from s2rm_data.store.writer import SplitSpec, StoreWriter

SHARD_EPISODES = 16


class Recorder:
    """Stands in for the environment: everything that is not recording is passed on to it.

    `policy` names who plays; `scenario` names the armies where the environment's map name does not; `config` options
    are those of `s2rm-data sc2`: radial, angular, radius, and steps, which is the map's limit unless given."""

    def __init__(
        self,
        env: Any,
        path: Path | str,
        *,
        episodes: int,
        policy: str,
        split: str = "train",
        scenario: str | None = None,
        **config: Any,
    ) -> None:
        if episodes < 1:
            raise UsageError(f"episodes is {episodes}; allowed are 1 or more")
        self._env = env
        name = scenario or env.map_name
        config.setdefault("steps", int(getattr(env, "episode_limit", 0)) or scenarios.parse(name).limit_steps)
        self._config = Sc2Config(scenario=name, **config)
        self._scenario = scenarios.parse(self._config.scenario)
        self._source = Sc2Split(config=self._config, seed=0, split=split, count=episodes)
        self._arrays = (*(_recorded(spec, policy) for spec in self._source.arrays), _NUMBER)
        self._begun = -1  # the number of the environment's episode, counted from 0
        self._seed = 0
        self._writer = StoreWriter(Path(path))
        try:
            self._split = self._writer.begin(self._spec(split, episodes, policy))
        except BaseException:
            self._writer.__exit__(None, None, None)
            raise
        self._shards = list(self._split.missing)
        self._pending: list[dict[str, Any]] = []
        self._episode: LiveEpisode | None = None
        self._closed = False

    def _spec(self, split: str, episodes: int, policy: str) -> SplitSpec:
        config = to_json(self._config)
        kept = {field.name: config[field.name] for field in dataclasses.fields(EpisodeConfig)}
        settings = {
            "generator": "sc2",
            "generator_version": GENERATOR_VERSION,
            "backend": "recorded",
            "config": kept,
            "policies": [policy],
            "seed": int(self._env.seed() or 0),
            "split": split,
        }
        attributes = self._source.attributes | {
            "command": "recorded from a live SMAC environment",
            "policies": [policy],
            "package": f"s2rm-data {s2rm_data.__version__}",
        }
        return SplitSpec(
            group=self._source.group,
            first_dim=self._source.first_dim,
            count=episodes,
            arrays=self._arrays,
            settings=settings,
            attributes=attributes,
            shard_size=SHARD_EPISODES,
        )

    @property
    def full(self) -> bool:
        """Whether all episodes are recorded; the environment plays on, unrecorded."""
        return not self._shards

    @property
    def recorded(self) -> int:
        """Episodes that are in the store or wait for their shard to be full."""
        missing = sum(stop - start for start, stop in map(self._split.spec.shard_range, self._shards))
        return self._split.spec.count - missing + len(self._pending)

    def reset(self, *arguments: Any, **options: Any) -> Any:
        result = self._env.reset(*arguments, **options)
        self._begun += 1
        self._seed = int(self._env.seed() or 0)
        self._episode = None if self.full else LiveEpisode(self._env, self._scenario, self._config.steps)
        return result

    def step(self, actions: Sequence[Any]) -> Any:
        chosen = list(actions)  # SMAC's heuristic writes what it chose instead into the list
        if self._episode is not None:
            self._episode.before_step()
        reward, terminated, info = self._env.step(chosen)
        if self._episode is not None and not info:  # SMAC's answer when the game broke down and was started again
            self._episode = None
        if self._episode is not None:
            self._episode.after_step([int(action) for action in chosen], float(reward))
            if terminated:
                self._keep(self._episode)
                self._episode = None
        return reward, terminated, info

    def _keep(self, episode: LiveEpisode) -> None:
        record: Record = episode.finish(self._seed)
        record[_NUMBER.name] = np.array([self._begun], dtype=_NUMBER.dtype)
        values = record | render(record, grid=self._config.grid, terrain=terrain_height(self._config.scenario))
        self._pending.append(values)
        start, stop = self._split.spec.shard_range(self._shards[0])
        if len(self._pending) == stop - start:
            self._commit(self._shards.pop(0))

    def _commit(self, index: int) -> None:
        pieces = {}
        for spec in self._arrays:
            builder = ShardBuilder(spec, self._split.spec.shard)
            builder.add(np.concatenate([values[spec.name] for values in self._pending]))
            pieces[spec.name] = builder.finish()
        self._split.add(index, pieces)
        self._writer.commit()
        self._pending.clear()

    def close(self) -> None:
        """Close the store and the environment; episodes of a shard that is not full are dropped."""
        if not self._closed:
            self._closed = True
            self._writer.__exit__(None, None, None)
            self._env.close()

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *reason: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_env"], name)


_NUMBER = ArraySpec(
    name="episode_number",
    dtype="int64",
    shape=(),
    dims=(),
    description="episodes that the environment had begun before this one since recording started, kept or not; with "
    "`seed` it tells battles of one environment apart",
    chunk=SHARD_EPISODES,
    level=1,
)


def _recorded(spec: ArraySpec, policy: str) -> ArraySpec:
    """What a recorded array means where it differs from a generated one."""
    words = {
        "policy": f"always 0: {policy}",
        "seed": "the environment's seed when the episode began, 0 if it has none; see episode_number",
    }
    return dataclasses.replace(spec, description=words[spec.name]) if spec.name in words else spec
