"""Battles for Gymnasium: one player who commands the whole team, alone or many at once.

    env = gymnasium.make("s2rm_data.starcraft.envs.gym:SMAC-v0", map_name="3m")
    envs = gymnasium.make_vec("s2rm_data.starcraft.envs.gym:SMAC-v0", num_envs=64, map_name="3m")

Gymnasium has no agents: an action is that of all agents (N,), an observation theirs (N, O), the reward the team's.
`SMAC-agents-v0` keeps them apart, as EPyMARL takes environments: a tuple of N actions, a tuple of N observations.
`SMAC/3m-v0`, `SMAC-agents/3m-v0` and so on are for programs that take nothing but an id."""

# n battles, N agents, A actions, O and S sizes of observation and state

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from s2rm_data.core.check import checked, one_of
from s2rm_data.core.errors import UsageError, missing_component
from s2rm_data.starcraft import scenarios
from s2rm_data.starcraft.envs.battles import LIMIT, RUNNING
from s2rm_data.starcraft.envs.render import FRAMES_PER_SECOND, MODES, Rendered
from s2rm_data.starcraft.envs.vector import masked, masked_space, observation_space

try:
    import gymnasium
    from gymnasium import spaces
    from gymnasium.vector import AutoresetMode
    from gymnasium.vector.utils import batch_space
except ImportError:
    raise missing_component("gymnasium", "envs", "a Gymnasium environment") from None


class TeamEnv(Rendered, gymnasium.Env):
    """One battle. `info` holds `action_mask` (N, A), unless `mask` puts it into the observation, and `state` (S,).

    Other options are those of `VectorEnv`. A sample of the action space knows no masks: try it with
    illegal_actions="stop"."""

    metadata = {"render_modes": list(MODES), "render_fps": FRAMES_PER_SECOND}

    def __init__(
        self, map_name: str = "8m", *, render_mode: str | None = None, mask: str = "info", **options: Any
    ) -> None:
        self._open(map_name, 1, render_mode, mask, options)
        self.n_agents = self._env.agents
        self.observation_space = masked_space(
            mask, self._env.single_observation_space, (self.n_agents, self._env.actions)
        )
        self.action_space: Any = self._env.single_action_space
        self._over = True

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._env.reset(seed=seed)
        self._over = False
        return self._observe(), self._info()

    def _observe(self) -> Any:
        seen = self._env.observe()
        seen = {name: images[0] for name, images in seen.items()} if isinstance(seen, dict) else seen[0]
        return masked(self._mask, seen, self._masks())

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if self._over:
            raise UsageError("the episode is over, or has not begun; call reset()")
        self._battles.step(self._env.checked(np.asarray(action)[None]))
        outcome = int(self._battles.outcome[0])
        self._over, limit = outcome != RUNNING, outcome == LIMIT
        if self.render_mode == "human":
            self.render()
        reward = float(self._battles.reward[0])
        return self._observe(), reward, self._over and not limit, limit, self._info() | self._battles.ends

    def _info(self) -> dict[str, Any]:
        told = {} if self._mask != "info" else {"action_mask": self._masks()}
        return told | {"state": self._battles.state()[0]}

    def action_masks(self) -> NDArray[np.bool_]:
        """(N * A,) what sb3-contrib's MaskablePPO asks for."""
        return self._battles.available[0].ravel().copy()


class AgentsEnv(TeamEnv):
    """One battle whose agents are told apart, by default with a stop in place of what masks forbid, which EPyMARL does
    not know."""

    def __init__(self, map_name: str = "8m", **options: Any) -> None:
        super().__init__(map_name, **{"illegal_actions": "stop", **options, "mask": "info"})
        self.observation_space = spaces.Tuple([observation_space(self._env)] * self.n_agents)
        self.action_space = spaces.Tuple([spaces.Discrete(self._env.actions)] * self.n_agents)

    def _observe(self) -> Any:
        seen = super()._observe()
        if isinstance(seen, Mapping):
            return tuple({name: images[agent] for name, images in seen.items()} for agent in range(self.n_agents))
        return tuple(seen)


class TeamVectorEnv(Rendered, gymnasium.vector.VectorEnv):
    """`VectorEnv` under Gymnasium's interface, with its three ways to begin the battle after one that ended.

    `autoreset_mode`: "SameStep" begins it in the same step, with `final_obs` and `final_info` of the old one;
    "NextStep" in the next, whose actions are ignored; "Disabled" leaves it to reset(options={"reset_mask": mask})."""

    metadata = {"render_modes": list(MODES), "render_fps": FRAMES_PER_SECOND, "autoreset_mode": AutoresetMode.SAME_STEP}

    def __init__(
        self,
        num_envs: int = 1,
        map_name: str = "8m",
        *,
        render_mode: str | None = None,
        mask: str = "info",
        autoreset_mode: str | AutoresetMode = AutoresetMode.SAME_STEP,
        **options: Any,
    ) -> None:
        self._open(map_name, num_envs, render_mode, mask, options)
        self.num_envs = num_envs
        modes = Annotated[str, one_of(*(mode.value for mode in AutoresetMode))]
        self._mode = AutoresetMode(checked("autoreset_mode", getattr(autoreset_mode, "value", autoreset_mode), modes))
        self.metadata = {**self.metadata, "autoreset_mode": self._mode}
        sizes = self._env.agents, self._env.actions
        self.single_observation_space = masked_space(mask, self._env.single_observation_space, sizes)
        self.single_action_space = self._env.single_action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        return self._told(*self._env.reset(seed=seed, rows=(options or {}).get("reset_mask")))

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        over = np.flatnonzero(self._env.battles.outcome != RUNNING)
        if self._mode == AutoresetMode.DISABLED and len(over):
            raise UsageError(
                f"the battles of environments {over.tolist()} are over; begin others first: "
                'reset(options={"reset_mask": mask}), with a truth value for each environment'
            )
        same_step = self._mode == AutoresetMode.SAME_STEP
        observation, reward, terminated, truncated, info = self._env.step(actions, replace=same_step)
        if "final_rows" in info:
            info |= self._final(info)
        if self.render_mode == "human":
            self.render()
        observation, info = self._told(observation, info)
        return observation, reward, terminated, truncated, info

    def _told(self, observation: Any, info: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """What Gymnasium's wrappers can read: arrays over all environments, and none called `episode`."""
        masks = info["available"]
        names = {"available": "action_mask", "episode": "battle"}
        told = {names.get(name, name): values for name, values in info.items() if name not in _OWN}
        if self._mask != "info":
            del told["action_mask"]
        return masked(self._mask, observation, masks.astype(np.int8)), told

    def _final(self, info: dict[str, Any]) -> dict[str, Any]:
        """`final_obs` and `final_info` as Gymnasium gives them: of those whose battle ended, and who they are."""
        rows, seen = info["final_rows"], info["final_observation"]
        over = np.zeros(self.num_envs, dtype=np.bool_)
        over[rows] = True
        final: NDArray[Any] = np.full(self.num_envs, None, dtype=object)
        masks = np.zeros((self._env.agents, self._env.actions), dtype=np.int8)  # nobody acts any more
        for k, row in enumerate(rows):
            images = {name: values[k] for name, values in seen.items()} if isinstance(seen, dict) else seen[k]
            final[row] = masked(self._mask, images, masks.copy())
        names = ("battle_won", "dead_allies", "dead_enemies")
        ends = {name: np.where(over, info[name], np.zeros_like(info[name])) for name in names}
        if "final_state" in info:
            ends["state"] = np.zeros((self.num_envs, self._env.state_size), dtype=np.float32)
            ends["state"][rows] = info["final_state"]
        told = ends | {f"_{name}": over.copy() for name in ends}
        return {"final_obs": final, "_final_obs": over, "final_info": told, "_final_info": over.copy()}

    def action_masks(self) -> NDArray[np.bool_]:
        """(n, N * A)"""
        return self._env.battles.available.reshape(self.num_envs, -1).copy()

    def render(self) -> Any:
        """A frame of every battle, or the first one in the window."""
        if self._renderer is None or self.render_mode == "human":
            return super().render()
        return tuple(self._renderer.render(row) for row in range(self.num_envs))

    def close(self, **kwargs: Any) -> None:
        Rendered.close(self)
        self.closed = True


_OWN = ("final_rows", "final_observation", "final_state")  # which are not arrays over all environments
for _name, _entry, _many in (("SMAC", TeamEnv, TeamVectorEnv), ("SMAC-agents", AgentsEnv, None)):
    for _id, _map in ((f"{_name}-v0", {}), *((f"{_name}/{name}-v0", {"map_name": name}) for name in scenarios.names())):
        if _id not in gymnasium.registry:
            gymnasium.register(_id, entry_point=_entry, vector_entry_point=_many, kwargs=_map)
