"""Many battles in one call: arrays in, arrays out, a new battle wherever one ends.

envs = vector_env("3s5z", 256)
observation, info = envs.reset(seed=0)
while learning:
    actions = policy(observation, info["available"])                              # (256, 8)
    observation, reward, terminated, truncated, info = envs.step(actions)

The polar images of this project as observations: what an agent sees now, and what it saw its team do last."""

# n battles, N agents, A actions, O and S sizes of observation and state, I x J polar cells

from __future__ import annotations

from functools import cached_property
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray

from s2rm_data.core.check import between, checked, one_of
from s2rm_data.core.errors import UsageError
from s2rm_data.core.optional import needed
from s2rm_data.core.philox import write_seeds
from s2rm_data.core.seeding import MAX_SEED, stream_key
from s2rm_data.starcraft.codes import STATS, Action
from s2rm_data.starcraft.envs.battles import LIMIT, RUNNING, WIN, BattleBatch, as_array, env_options, taken
from s2rm_data.starcraft.polar import PolarGrid, render, terrain_height

if TYPE_CHECKING:
    from gymnasium import spaces

MOST_BATTLES = 65_536
_MOST_AHEAD = 32  # battles of one environment that are set up together: one by one costs ten times as much
_AHEAD_TOGETHER = 2048  # of all environments; they take up to 40 MB
Observation = NDArray[np.float32] | dict[str, NDArray[Any]]
Info = dict[str, NDArray[Any]]
Step = tuple[Observation, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], Info]
_NONE = np.zeros(0, dtype=np.int64)  # no environments


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
    Spaces are Gymnasium's, where it is installed."""

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
        self.grid = PolarGrid(radial=radial, angular=angular, radius=radius) if observation == "polar" else None
        self._terrain = terrain_height(self.options.map_name)
        self.agents, self.actions, self.limit = self.battles.agents, self.battles.actions, self.battles.limit
        features = self.battles.features
        self.observation_size, observed = features.observation_size, self.agents * features.observation_size
        self.state_size = observed if self.options.obs_instead_of_state else features.state_size
        self._ahead = max(1, min(_MOST_AHEAD, _AHEAD_TOGETHER // self.count))
        self._begun = False
        self._seed(seed)

    def _seed(self, seed: int) -> None:
        self.seed: int = checked("seed", seed, Annotated[int, between(0, MAX_SEED)])
        streams = (f"sc2/{self.battles.scenario.name}/env/{row}" for row in range(self.count))
        self._keys = np.array([stream_key(self.seed, stream) for stream in streams])  # (n, 2)
        self.episode = np.full(self.count, -1, dtype=np.int64)  # (n,) number of each environment's battle
        self._fresh = self.battles.fresh(np.zeros(self.count * self._ahead, dtype=np.uint64), head_start=False)

    def reset(self, *, seed: int | None = None, rows: Any = None) -> tuple[Observation, Info]:
        """Start the next battle of every environment, or of some (`rows` as in `observe`); with a seed, the first."""
        if seed is not None and rows is not None:
            raise UsageError("reset() got a seed and rows; a seed is that of all environments: leave out one of them")
        if seed is not None:
            self._seed(seed)
        if rows is not None and not self._begun:
            raise UsageError("some environments cannot be reset before all; call reset() without rows first")
        self._begin(np.arange(self.count) if rows is None else self._numbers(rows))
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

    def step(self, actions: Any, *, replace: bool = True) -> Step:
        """Play one step of every battle with actions (n, N).

        Returns the observation, reward (n,) of each team, terminated (n,) by one army's end, truncated (n,) by the
        limit of steps, and info. With `replace` off, a battle that ends stays to be seen in this step; in the next one
        its actions are ignored and the new battle begins, which brings no reward."""
        if not self._begun:
            raise UsageError("step() came before reset(); reset the environment first")
        battles, ended = self.battles, np.flatnonzero(self.battles.outcome != RUNNING)
        battles.step(self.checked(self._without(actions, ended) if len(ended) else actions))
        if len(ended):
            self._begin(ended)
        reward, outcome, dead = battles.reward.copy(), battles.outcome.copy(), battles.dead.copy()
        truncated, over = outcome == LIMIT, outcome != RUNNING
        terminated = over & ~truncated
        rows = np.flatnonzero(over) if replace else _NONE
        final: Info = {}
        if len(rows):
            final = self._final(rows)
            self._begin(rows)
        ends = {"battle_won": outcome == WIN, "dead_allies": dead[:, 0], "dead_enemies": dead[:, 1]}
        return self.observe(), reward, terminated, truncated, self._info() | ends | final

    def _without(self, actions: Any, rows: NDArray[np.int64]) -> Any:
        """Actions with those of some environments replaced by ones that any battle takes."""
        given = np.array(as_array(actions))
        if given.shape == (self.count, self.agents):  # anything else is for `checked` to refuse
            given[rows] = self.battles.idle[rows]
        return given

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
        return self.battles.observe(rows) if self.grid is None else self._images(rows, self.grid)

    def _images(self, rows: NDArray[np.int64] | None, grid: PolarGrid) -> dict[str, NDArray[Any]]:
        """`categories` (n, N, I, J, 3) uint8, `hecs` (n, N, I, J, 4) float32, `height` (n, N, I, J) uint8, with the
        channels of a stored split (docs/data_format.md). A stored image shows the actions that were chosen on it; here
        these are not chosen yet, and the last ones show."""
        battles = self.battles
        seen = battles.snapshot if rows is None else taken(battles.snapshot, rows)
        orders = battles.orders(battles.last_actions)
        last = np.maximum(orders if rows is None else orders[rows], Action.NO_OP)
        n = len(seen.health)
        states: dict[str, NDArray[Any]] = {
            "unit_type": np.broadcast_to(seen.unit_type, (n, battles.units)),
            "unit_position": seen.position[:, None],
            **{name: getattr(seen, field)[:, None] for name, field in STATS.items()},
            "action": last[:, None],
            "length": np.ones(n, dtype=np.int64),
        }
        images = render(states, grid=grid, terrain=self._terrain)
        return {name: images[name][:, 0] for name in ("categories", "hecs", "height")}

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

    def close(self) -> None:
        """There is nothing to close; loops that close what they played in may."""

    @property
    def num_envs(self) -> int:
        return self.count

    @cached_property
    def single_observation_space(self) -> spaces.Space:
        return observation_space(self, (self.agents,))

    @cached_property
    def single_action_space(self) -> spaces.MultiDiscrete:
        return gymnasium_spaces().MultiDiscrete([self.actions] * self.agents)

    @cached_property
    def observation_space(self) -> spaces.Space:
        return observation_space(self, (self.count, self.agents))

    @cached_property
    def action_space(self) -> spaces.MultiDiscrete:
        return gymnasium_spaces().MultiDiscrete(np.full((self.count, self.agents), self.actions))

    def __repr__(self) -> str:
        return f"<VectorEnv of {self.count} battles of {self.options.map_name}, seed {self.seed}>"


def gymnasium_spaces() -> ModuleType:
    spaces: ModuleType = needed("gymnasium.spaces", "envs", "a space")
    return spaces


def observation_space(env: VectorEnv, leading: tuple[int, ...] = ()) -> spaces.Space:
    """What one agent observes as Gymnasium's space, or with `leading` dimensions several do."""
    spaces = gymnasium_spaces()
    if env.grid is None:
        most = np.inf if env.options.fully_observable else 1.0  # distances are shares of the sight
        return spaces.Box(-most, most, (*leading, env.observation_size), np.float32)
    cells = (*leading, env.grid.radial, env.grid.angular)
    images = {"categories": (255, 3), "hecs": (2, 4), "height": (255,)}  # the highest value, and channels
    kinds = {name: np.float32 if name == "hecs" else np.uint8 for name in images}
    return spaces.Dict({n: spaces.Box(0, most, (*cells, *k), kinds[n]) for n, (most, *k) in images.items()})


MASKS = ("obs", "info", "rllib")


def masked(mask: str, observation: Any, action_mask: Any) -> Any:
    """An observation with its mask in it: beside `observation`, or beside `observations`, as RLlib calls it."""
    if mask == "info":
        return observation
    return {"observations" if mask == "rllib" else "observation": observation, "action_mask": action_mask}


def masked_space(mask: str, space: spaces.Space, shape: tuple[int, ...]) -> spaces.Space:
    """The space of what `masked` returns, for masks of that shape."""
    checked("mask", mask, Annotated[str, one_of(*MASKS)])
    if mask == "info":
        return space
    found = gymnasium_spaces()
    return found.Dict(masked(mask, space, found.Box(0, 1, shape, np.int8)))
