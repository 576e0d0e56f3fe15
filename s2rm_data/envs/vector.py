"""Many battles in one call: arrays in, arrays out, a new battle wherever one ends.

envs = vector_env("3s5z", 256)
observation, info = envs.reset(seed=0)
while learning:
    actions = policy(observation, info["available"])                              # (256, 8)
    observation, reward, terminated, truncated, info = envs.step(actions)
"""

# n battles, N agents, A actions, O and S sizes of observation and state, I x J polar cells

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from s2rm_data.config import between, checked, one_of
from s2rm_data.envs.battles import BattleBatch
from s2rm_data.envs.options import env_options
from s2rm_data.envs.polar import PolarView
from s2rm_data.errors import UsageError
from s2rm_data.generators.sc2.codes import Outcome
from s2rm_data.philox import write_seeds
from s2rm_data.seeding import MAX_SEED, stream_key

MOST_BATTLES = 65_536
_RUNNING, _WIN, _LIMIT = int(Outcome.RUNNING), int(Outcome.WIN), int(Outcome.LIMIT)  # looking one up takes 0.5 us
_MOST_AHEAD = 32  # battles of one environment that are set up together: one by one costs ten times as much
_AHEAD_TOGETHER = 2048  # of all environments; they take up to 40 MB
Observation = NDArray[np.float32] | dict[str, NDArray[Any]]
Info = dict[str, NDArray[Any]]


def vector_env(map_name: str = "8m", count: int = 1, **options: Any) -> VectorEnv:
    """`count` battles of a scenario; options are those of SMAC's class, and those of `VectorEnv`."""
    return VectorEnv(map_name, count, **options)


class VectorEnv:
    """`count` battles of one scenario that are stepped together.

    `observation`: "features" are SMAC's vectors (n, N, O) float32, "polar" this project's images, a dictionary of
    arrays (n, N, I, J, ...) with `radial`, `angular` and `radius` as in `s2rm-data sc2`. `state` off leaves out the
    global state. `illegal_actions`: what masks do not allow is an "error", or a "stop" is taken in its place. Battle k
    of environment i depends on (map_name, seed, i, k) and its actions alone.

    `info` holds arrays over all environments: `available` (n, N, A) masks of what the next actions may be, `state`
    (n, S), `battle_won`, `dead_allies`, `dead_enemies` of the step, and `episode` (n,), the number k of each battle.
    A battle that ends is replaced at once: `observation`, `available` and `state` are those of the new battle, and
    those at the end of the old ones are in `final_observation` and `final_state`, for the environments `final_rows`.
    """

    def __init__(
        self,
        map_name: str = "8m",
        count: int = 1,
        *,
        seed: int = 0,
        observation: str = "features",
        state: bool = True,
        radial: int = 16,
        angular: int = 48,
        radius: float = 9.0,
        illegal_actions: str = "error",
        **options: Any,
    ) -> None:
        self.count: int = checked("count", count, Annotated[int, between(1, MOST_BATTLES)])
        own = ("seed", "observation", "state", "radial", "angular", "radius", "illegal_actions")
        self.options = env_options({"map_name": map_name, **options}, own)
        checked("observation", observation, Annotated[str, one_of("features", "polar")])
        checked("illegal_actions", illegal_actions, Annotated[str, one_of("error", "stop")])
        self._stops = illegal_actions == "stop"
        self._with_state = checked("state", state, bool)
        self.battles = BattleBatch(self.options, self.count)
        self.polar = PolarView(self.battles, radial, angular, radius) if observation == "polar" else None
        self.agents, self.actions, self.limit = self.battles.agents, self.battles.actions, self.battles.limit
        self.observation_size, self.state_size = self.battles.features.observation_size, self._state_size()
        self._ahead = max(1, min(_MOST_AHEAD, _AHEAD_TOGETHER // self.count))
        self._begun = False
        self._seed(seed)

    def _state_size(self) -> int:
        features = self.battles.features
        as_observations = self.agents * features.observation_size
        return as_observations if self.options.obs_instead_of_state else features.state_size

    def _seed(self, seed: int) -> None:
        self.seed: int = checked("seed", seed, Annotated[int, between(0, MAX_SEED)])
        streams = (f"sc2/{self.battles.scenario.name}/env/{row}" for row in range(self.count))
        self._keys = np.array([stream_key(self.seed, stream) for stream in streams])  # (n, 2)
        self.episode = np.full(self.count, -1, dtype=np.int64)  # (n,) number of each environment's battle
        self._fresh = self.battles.fresh(np.zeros(self.count * self._ahead, dtype=np.uint64), head_start=False)

    def reset(self, *, seed: int | None = None) -> tuple[Observation, Info]:
        """Start the next battle of every environment; with a seed, the first of that seed."""
        if seed is not None:
            self._seed(seed)
        self._begin(np.arange(self.count))
        self._begun = True
        return self.observe(), self._info()

    def _begin(self, rows: NDArray[np.int64]) -> None:
        """Start the next battle of some environments, setting up several of each in advance."""
        self.episode[rows] += 1
        empty = rows[self.episode[rows] % self._ahead == 0]
        if len(empty):
            seeds = np.empty(len(empty) * self._ahead, dtype=np.uint64)
            write_seeds(self._keys[empty], self.episode[empty], self._ahead, seeds)
            slots = (empty[:, None] * self._ahead + np.arange(self._ahead)).ravel()
            self._fresh.adopt(slots, self.battles.fresh(seeds), np.arange(len(seeds)))
        self.battles.begin(rows, self._fresh, rows * self._ahead + self.episode[rows] % self._ahead)

    def step(self, actions: Any) -> tuple[Observation, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], Info]:
        """Play one step of every battle with actions (n, N).

        Returns the observation, reward (n,) of each team, terminated (n,) by one army's end, truncated (n,) by the
        limit of steps, and info.
        """
        if not self._begun:
            raise UsageError("step() came before reset(); reset the environment first")
        battles = self.battles
        battles.step(self.checked(actions))
        reward, outcome, dead = battles.reward.copy(), battles.outcome.copy(), battles.dead.copy()
        truncated, over = outcome == _LIMIT, outcome != _RUNNING
        terminated = over & ~truncated
        rows = np.flatnonzero(over)
        final: Info = {}
        if len(rows):
            final = self._final(rows)
            self._begin(rows)
        ends = {
            "battle_won": outcome == _WIN,
            "dead_allies": dead[:, 0],
            "dead_enemies": dead[:, 1],
        }
        return self.observe(), reward, terminated, truncated, self._info() | ends | final

    def checked(self, actions: Any) -> NDArray[np.int64]:
        """Actions (n, N) that can be played."""
        return self.battles.checked(self.battles.allowed(actions) if self._stops else actions)

    def _final(self, rows: NDArray[np.int64]) -> Info:
        final: Info = {"final_rows": rows, "final_observation": self.observe(rows)}  # type: ignore[dict-item]
        return final | {"final_state": self.battles.state(rows)} if self._with_state else final

    def observe(self, rows: Any = None) -> Observation:
        """What the agents of all environments see now, or of some: whatever picks rows out of an array."""
        if rows is not None:
            rows = self._numbers(rows)
        return self.polar.observe(rows) if self.polar else self.battles.observe(rows)

    def _numbers(self, rows: Any) -> NDArray[np.int64]:
        """(k,) numbers of the environments that an index, a slice, a list or a mask picks out."""
        try:
            numbers = np.atleast_1d(np.arange(self.battles.count)[rows])
        except (IndexError, TypeError, ValueError):
            numbers = np.array([], dtype=np.int64)
        if numbers.ndim != 1 or not len(numbers):
            raise UsageError(
                f"rows {rows!r} pick out no environments; there are {self.battles.count}, numbered from 0: give their "
                "numbers, a slice or a mask"
            )
        return numbers

    def _info(self) -> Info:
        info: Info = {"available": self.battles.available.copy(), "episode": self.episode.copy()}
        return info | {"state": self.battles.state()} if self._with_state else info

    def __repr__(self) -> str:
        return f"<VectorEnv of {self.count} battles of {self.options.map_name}, seed {self.seed}>"
