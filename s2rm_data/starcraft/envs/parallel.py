"""Battles for PettingZoo: a `ParallelEnv`, and an AEC environment through PettingZoo's own wrapper.

env = parallel_env("3m", render_mode="rgb_array")
observations, infos = env.reset(seed=0)
while env.agents:
    actions = {name: env.action_space(name).sample(observations[name]["action_mask"]) for name in env.agents}
    observations, rewards, terminations, truncations, infos = env.step(actions)
"""

# N agents, A actions, O size of an observation, I x J polar cells

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from s2rm_data.core.check import between, checked
from s2rm_data.core.errors import UsageError, missing_component
from s2rm_data.core.seeding import MAX_SEED
from s2rm_data.starcraft.codes import Action
from s2rm_data.starcraft.envs.battles import LIMIT, RUNNING, BattleBatch
from s2rm_data.starcraft.envs.render import FRAMES_PER_SECOND, MODES, Rendered
from s2rm_data.starcraft.envs.vector import masked, masked_space, observation_space
from s2rm_data.starcraft.units import UNIT_TYPES

try:
    from gymnasium import spaces
    from pettingzoo import ParallelEnv
    from pettingzoo.utils import parallel_to_aec
except ImportError:
    raise missing_component("pettingzoo", "envs", "a PettingZoo environment") from None


def parallel_env(map_name: str = "8m", **options: Any) -> SmacParallelEnv:
    """One battle at a time; options are those of `VectorEnv`, and `render_mode`."""
    return SmacParallelEnv(map_name, **options)


def aec_env(map_name: str = "8m", **options: Any) -> Any:
    """The same, agent by agent."""
    return parallel_to_aec(SmacParallelEnv(map_name, **options))


class SmacParallelEnv(Rendered, ParallelEnv):
    """One battle. Agents are named by type and number (`stalker_0`), in SMAC's order; all get the team's reward.

    An observation is a dictionary: `observation` (O,), or the polar images, and `action_mask` (A,) int8. With
    `mask="info"` the mask is in `info`, and with "rllib" the first key is `observations`. Actions have SMAC's numbers.
    An agent that dies is terminated and leaves `agents`; actions that still come for it are ignored. The battles of a
    seed are those of the first environment of a `VectorEnv` of that seed."""

    metadata = {
        "name": "s2rm_smac_v0",
        "render_modes": list(MODES),
        "is_parallelizable": True,
        "render_fps": FRAMES_PER_SECOND,
    }

    def __init__(
        self, map_name: str = "8m", *, render_mode: str | None = None, mask: str = "obs", **options: Any
    ) -> None:
        self._open(map_name, 1, render_mode, mask, options)
        self.possible_agents = _names(self._battles)
        self._slot = {name: slot for slot, name in enumerate(self.possible_agents)}
        self.agents: list[str] = []
        space = masked_space(mask, observation_space(self._env), (self._env.actions,))
        self.observation_spaces = dict.fromkeys(self.possible_agents, space)
        self.action_spaces = {name: spaces.Discrete(self._env.actions) for name in self.possible_agents}
        self.state_space = spaces.Box(-np.inf, np.inf, (self._env.state_size,), np.float32)

    def observation_space(self, agent: str) -> spaces.Space:
        return self.observation_spaces[self._known(agent)]

    def action_space(self, agent: str) -> spaces.Space:
        return self.action_spaces[self._known(agent)]

    def _known(self, agent: str) -> str:
        if agent not in self._slot:
            raise UsageError(f"there is no agent {agent!r}; there are {', '.join(self.possible_agents)}")
        return agent

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict, dict]:
        """Start the next battle; with a seed, the first of that seed."""
        if seed is not None:
            checked("seed", seed, Annotated[int, between(0, MAX_SEED)])
        self._env.reset(seed=None if seed is None else int(seed))
        self.np_random = np.random.default_rng(seed)  # for wrappers; no battle depends on it
        self.agents = self.possible_agents[:]
        return self._observe(), self._infos()

    def step(self, actions: dict[str, Any]) -> tuple[dict, dict, dict, dict, dict]:
        """Play one step with an action for each living agent; those of the dead are ignored."""
        if not self.agents and actions == {} and self._battles.outcome[0] != RUNNING:
            return {}, {}, {}, {}, {}  # as SuperSuit's black_death steps once more, to see that nobody is left
        if not self.agents:
            raise UsageError("the episode is over, or has not begun; call reset()")
        if not isinstance(actions, Mapping):
            raise UsageError(f"actions are {actions!r}; give a dictionary with an action for each of {self.agents}")
        if [*actions] != self.agents:
            for name in actions:
                self._known(name)
            if not actions.keys() >= set(self.agents):
                raise UsageError(f"actions came for {[*actions]}; the living agents are {self.agents}")
        chosen = np.full((1, self._battles.agents), int(Action.NO_OP), dtype=np.int64)
        for name in self.agents:
            action = actions[name]
            try:
                chosen[0, self._slot[name]] = operator.index(action)
            except (TypeError, OverflowError):
                raise UsageError(
                    f"the action of {name} is {action!r}; it must be a whole number below {self._env.actions}"
                ) from None
        self._battles.step(self._env.checked(chosen))
        outcome = int(self._battles.outcome[0])
        over, limit = outcome != RUNNING, outcome == LIMIT
        dead = (self._battles.snapshot.health[0] <= 0).tolist()
        terminations = {name: dead[self._slot[name]] or (over and not limit) for name in self.agents}
        truncations = dict.fromkeys(self.agents, limit)  # of all, as RLlib asks whether all are
        rewards = dict.fromkeys(self.agents, float(self._battles.reward[0]))
        infos, observations = self._infos(), self._observe()
        self.agents = [name for name in self.agents if not (terminations[name] or truncations[name])]
        if self.render_mode == "human":
            self.render()
        return observations, rewards, terminations, truncations, infos

    def _observe(self) -> dict[str, Any]:
        masks, seen = self._masks(), self._env.observe()
        views: Any = seen
        if isinstance(seen, dict):
            views = [[{key: images[0, slot] for key, images in seen.items()} for slot in self._slot.values()]]
        slots = [(name, self._slot[name]) for name in self.agents]
        return {name: masked(self._mask, views[0][slot], masks[slot]) for name, slot in slots}

    def _infos(self) -> dict[str, dict[str, Any]]:
        """How the battle stands, and with mask="info" what each agent may do."""
        ends = self._battles.ends
        if self._mask != "info":
            return {name: dict(ends) for name in self.agents}
        masks = self._masks()
        return {name: {**ends, "action_mask": masks[self._slot[name]]} for name in self.agents}

    def state(self) -> NDArray[np.float32]:
        return self._battles.state()[0]


def _names(battles: BattleBatch) -> list[str]:
    """stalker_0, stalker_1, zealot_0, ...; where armies change, agent_0, agent_1, ..."""
    kinds = [UNIT_TYPES[int(number)].name for number in battles.engine.kinds[0, : battles.agents]]
    kinds = ["agent"] * battles.agents if battles.generated else kinds
    return [f"{kind}_{kinds[:slot].count(kind)}" for slot, kind in enumerate(kinds)]
