"""Battles for Gymnasium: one player who commands the whole team, alone or many at once.

    env = gymnasium.make("s2rm_data.envs.gym:SMAC-v0", map_name="3m")
    envs = gymnasium.make_vec("s2rm_data.envs.gym:SMAC-v0", num_envs=64, map_name="3m")

Gymnasium has no agents: an action is that of all agents (N,), an observation theirs (N, O), the reward the team's.
"""

# n battles, N agents, A actions, O and S sizes of observation and state

from __future__ import annotations

import secrets
from typing import Any

import numpy as np

from s2rm_data.envs.render import FRAMES_PER_SECOND, MODES, Rendered, Renderer
from s2rm_data.envs.spaces import observation_space
from s2rm_data.envs.vector import VectorEnv
from s2rm_data.errors import UsageError, missing_component
from s2rm_data.generators.sc2.codes import Outcome
from s2rm_data.seeding import MAX_SEED

try:
    import gymnasium
    from gymnasium import spaces
    from gymnasium.vector import AutoresetMode
    from gymnasium.vector.utils import batch_space
except ImportError:
    raise missing_component("gymnasium", "envs", "a Gymnasium environment") from None

ID = "SMAC-v0"


def _spaces(env: VectorEnv) -> tuple[spaces.Space, spaces.MultiDiscrete]:
    return observation_space(env, (env.agents,)), spaces.MultiDiscrete([env.actions] * env.agents)


class TeamEnv(Rendered, gymnasium.Env):
    """One battle. `info` holds `action_mask` (N, A) and `state` (S,).

    Options are those of `VectorEnv`. A sample of the action space knows no masks: try it with illegal_actions="stop".
    """

    metadata = {"render_modes": list(MODES), "render_fps": FRAMES_PER_SECOND}

    def __init__(self, map_name: str = "8m", *, render_mode: str | None = None, **options: Any) -> None:
        self._env = VectorEnv(map_name, 1, **{"seed": secrets.randbelow(MAX_SEED), **options})
        self._battles = self._env.battles
        self.observation_space, self.action_space = _spaces(self._env)
        self.render_mode = render_mode
        self._renderer = Renderer(self._battles, render_mode) if render_mode else None
        self._over = True

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._env.reset(seed=seed)
        self._over = False
        return self._observe(), self._info()

    def _observe(self) -> Any:
        seen = self._env.observe()
        return {name: images[0] for name, images in seen.items()} if isinstance(seen, dict) else seen[0]

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if self._over:
            raise UsageError("the episode is over, or has not begun; call reset()")
        self._battles.step(self._env.checked(np.asarray(action)[None]))
        outcome = int(self._battles.outcome[0])
        self._over, limit = outcome != Outcome.RUNNING, outcome == Outcome.LIMIT
        ends = {
            "battle_won": outcome == Outcome.WIN,
            "dead_allies": int(self._battles.dead[0, 0]),
            "dead_enemies": int(self._battles.dead[0, 1]),
        }
        if self.render_mode == "human":
            self.render()
        reward = float(self._battles.reward[0])
        return self._observe(), reward, self._over and not limit, limit, self._info() | ends

    def _info(self) -> dict[str, Any]:
        return {"action_mask": self._battles.available[0].astype(np.int8), "state": self._battles.state()[0]}


class TeamVectorEnv(gymnasium.vector.VectorEnv):
    """`VectorEnv` under Gymnasium's interface; a battle that ends is replaced in the same step."""

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}

    def __init__(self, num_envs: int = 1, map_name: str = "8m", **options: Any) -> None:
        self._env = VectorEnv(map_name, num_envs, **{"seed": secrets.randbelow(MAX_SEED), **options})
        self.num_envs = num_envs
        self.single_observation_space, self.single_action_space = _spaces(self._env)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        observation, info = self._env.reset(seed=seed)
        return observation, self._named(info)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self._env.step(actions)
        return observation, reward, terminated, truncated, self._named(info)

    @staticmethod
    def _named(info: dict[str, Any]) -> dict[str, Any]:
        return {("action_mask" if name == "available" else name): values for name, values in info.items()}


if ID not in gymnasium.registry:
    gymnasium.register(ID, entry_point=TeamEnv, vector_entry_point=TeamVectorEnv)
