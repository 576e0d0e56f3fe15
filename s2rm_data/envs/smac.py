"""A drop-in for SMAC's `StarCraft2Env`: the same arguments, methods, attributes and numbers, without the game.

    from s2rm_data.envs import StarCraft2Env                                   # instead of smac.env

For the same seed and actions it gives what SMAC's own class gives when it plays the engine through `sc2-server`.
"""

# U units of both sides (agents first), N agents, A actions, O and S sizes of observation and state

from __future__ import annotations

import logging
import secrets
from collections.abc import MutableSequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from s2rm_data.config import between, checked
from s2rm_data.envs import heuristic
from s2rm_data.envs.options import env_options
from s2rm_data.envs.render import Renderer
from s2rm_data.envs.replays import replay
from s2rm_data.envs.smac_queries import SmacQueries
from s2rm_data.errors import UsageError
from s2rm_data.files import write_whole
from s2rm_data.generators.sc2.api.server.game import battle_seed
from s2rm_data.generators.sc2.codes import Outcome
from s2rm_data.generators.sc2.features import NO_ACTION

_LOG = logging.getLogger("s2rm_data.envs")
_ONLY = np.zeros(1, dtype=np.int64)  # the only battle


def _whole(action: Any) -> int:
    """SMAC would round 1.5; only what is a whole number passes here."""
    whole = int(action)
    if whole != action:
        raise ValueError(action)
    return whole


class StarCraft2Env(SmacQueries):
    """SMAC's class with the embedded engine in it; docs/environments.md lists what differs.

    The arguments that are keywords only are SMACv2's. Its scenarios (`10gen_protoss_5_vs_5`) are maps as well.
    """

    def __init__(
        self,
        map_name: str = "8m",
        step_mul: int | None = 8,
        move_amount: float = 2,
        difficulty: str = "7",
        game_version: str | None = None,
        seed: int | None = None,
        continuing_episode: bool = False,
        obs_all_health: bool = True,
        obs_own_health: bool = True,
        obs_last_action: bool = False,
        obs_pathing_grid: bool = False,
        obs_terrain_height: bool = False,
        obs_instead_of_state: bool = False,
        obs_timestep_number: bool = False,
        state_last_action: bool = True,
        state_timestep_number: bool = False,
        reward_sparse: bool = False,
        reward_only_positive: bool = True,
        reward_death_value: float = 10,
        reward_win: float = 200,
        reward_defeat: float = 0,
        reward_negative_scale: float = 0.5,
        reward_scale: bool = True,
        reward_scale_rate: float = 20,
        replay_dir: str = "",
        replay_prefix: str = "",
        window_size_x: int = 1920,
        window_size_y: int = 1200,
        heuristic_ai: bool = False,
        heuristic_rest: bool = False,
        debug: bool = False,
        *,
        obs_own_pos: bool = False,
        conic_fov: bool = False,
        num_fov_actions: int = 12,
        use_unit_ranges: bool | None = None,
        min_attack_range: float = 2,
        **unknown: Any,
    ) -> None:
        given = dict(locals())
        given |= given.pop("unknown")  # refused by name
        own = ("seed", "replay_dir", "replay_prefix", "window_size_x", "window_size_y", "heuristic_ai",
               "heuristic_rest", "debug")  # fmt: skip
        options = {k: v for k, v in given.items() if k not in (*own, "self", "__class__")}
        super().__init__(env_options(options, own))
        self._seed = None if seed is None else checked("seed", seed, Annotated[int, between(0, 2**64 - 1)])
        self.replay_dir, self.replay_prefix = replay_dir, replay_prefix
        self.window_size = (window_size_x, window_size_y)
        self.heuristic_ai, self.heuristic_rest = heuristic_ai, heuristic_rest
        self.debug, self.difficulty, self.game_version = debug, difficulty, game_version
        self._episode_count = self._episode_steps = self._total_steps = 0
        self.reward = 0.0
        self._over = True
        self._targets = np.full(self.n_agents, heuristic.NOBODY, dtype=np.int64)
        self._given_actions: list[list[int]] = []
        self._renderer: Renderer | None = None

    # playing

    def reset(self) -> tuple[list[NDArray[np.float32]], NDArray[np.float32]]:
        """Start the next battle. Until the first one is over, every reset starts the game, and so that one, again."""
        if self._episode_count == 0:
            self._launch()
        else:
            self._battle += 1
            self._begin(battle_seed(self._game_seed, self._battle), head_start=True)
        return self.get_obs(), self.get_state()

    def _launch(self) -> None:
        self._game_seed = secrets.randbits(64) if self._seed is None else self._seed
        self._battle = 0
        self._begin(self._game_seed, head_start=self._battles.generated)  # SMACv2 first looks after a loop

    def _begin(self, seed: int, *, head_start: bool) -> None:
        fresh = self._battles.fresh(np.array([seed], dtype=np.uint64), head_start=head_start)
        self._battles.begin(_ONLY, fresh, _ONLY)
        self._battle_seed, self._head_start = seed, head_start
        self._targets[:] = heuristic.NOBODY
        self._episode_steps, self._over, self._units = 0, False, None
        if self._battles.generated:
            self._describe_units()
        self._given_actions.clear()

    def full_restart(self) -> None:
        """Start a new game of the same seed."""
        self._launch()
        self.force_restarts += 1

    def step(self, actions: Any) -> tuple[float, bool, dict[str, Any]]:
        """Play one step; returns reward, terminated and info."""
        self._require_battle()
        if self._over:
            raise UsageError("the episode is over; call reset() to start the next one")
        battles, given = self._battles, self._whole(actions)
        chosen = self._heuristic_actions() if self.heuristic_ai else battles.checked(given)
        battles.step(chosen)
        battles.last_actions = given
        if self.heuristic_ai and isinstance(actions, MutableSequence | np.ndarray):
            actions[:] = chosen[0].tolist()  # as SMAC does
        self._given_actions.append(chosen[0].tolist())
        self._units = None
        self._episode_steps += 1
        self._total_steps += 1
        reward, terminated, info = float(battles.reward[0]), *self._end()
        self.reward = reward
        if self.debug:
            _LOG.debug("%s step %d: actions %s, reward %g", self.map_name, self._episode_steps, chosen[0], reward)
        return reward, terminated, info

    def _whole(self, actions: Any) -> NDArray[np.int64]:
        """(1, N) whatever counts as a whole number: NumPy's, PyTorch's."""
        try:
            whole = np.array([[_whole(action) for action in actions]], dtype=np.int64)
        except (TypeError, ValueError, OverflowError):
            raise UsageError(f"actions are {actions!r}; give a list of {self.n_agents} whole numbers") from None
        if whole.shape != (1, self.n_agents):
            raise UsageError(f"{whole.size} actions came for {self.n_agents} agents; give one to each, 0 to the dead")
        if self.heuristic_ai and not ((whole >= 0) & (whole < self.n_actions)).all():  # they count as the last actions
            raise UsageError(f"actions are {whole[0].tolist()}; there are 0 to {self.n_actions - 1}")
        return whole

    def _heuristic_actions(self) -> NDArray[np.int64]:
        """What the heuristic does in place of the actions that are given to it, as in SMAC."""
        chosen, seen = np.zeros((1, self.n_agents), dtype=np.int64), self._battles.snapshot
        heuristic.choose(
            seen.position[0], seen.health[0], self._full, self._healer, self.n_agents, self._battles.available[0],
            self._battles.features.attack_at, self.heuristic_rest, self._targets, chosen[0],
        )  # fmt: skip
        return chosen

    def _end(self) -> tuple[bool, dict[str, Any]]:
        outcome, dead = int(self._battles.outcome[0]), self._battles.dead[0]
        won, limit = outcome == Outcome.WIN, outcome == Outcome.LIMIT
        info: dict[str, Any] = {"battle_won": won, "dead_allies": int(dead[0]), "dead_enemies": int(dead[1])}
        self._over = outcome != Outcome.RUNNING
        if self._over:
            self._episode_count += 1
            self.battles_game += 1
            self.battles_won += won
            self.timeouts += limit
            if limit and self.continuing_episode:
                info["episode_limit"] = True
        return self._over, info

    # observing

    def get_obs(self) -> list[NDArray[np.float32]]:
        """What each agent observes, (O,) each."""
        self._require_battle()
        return list(self._battles.observe()[0])

    def get_obs_agent(self, agent_id: int) -> NDArray[np.float32]:
        return self.get_obs()[self._agent(agent_id)]

    def get_state(self) -> NDArray[np.float32]:
        """(S,)"""
        self._require_battle()
        return self._battles.state()[0]

    def get_state_dict(self) -> dict[str, Any]:
        """The state in parts: allies (N, ...), enemies (E, ...), last_action (N, A), timestep."""
        self._require_battle()
        battles = self._battles
        state = battles.features.state(battles.snapshot, battles.last_actions, battles.time, battles.looking)[0]
        ours = self.n_agents * self.get_ally_num_attributes()
        theirs = ours + self.n_enemies * self.get_enemy_num_attributes()
        parts: dict[str, Any] = {
            "allies": state[:ours].reshape(self.n_agents, -1),
            "enemies": state[ours:theirs].reshape(self.n_enemies, -1),
        }
        if self.state_last_action:
            parts["last_action"] = self.last_action
        if self.state_timestep_number:
            parts["timestep"] = self._episode_steps / self.episode_limit
        return parts

    def get_avail_actions(self) -> list[list[int]]:
        self._require_battle()
        return self._battles.available[0].astype(np.int64).tolist()

    def get_avail_agent_actions(self, agent_id: int) -> list[int]:
        self._require_battle()
        return self._battles.available[0, self._agent(agent_id)].astype(np.int64).tolist()

    @property
    def last_action(self) -> NDArray[np.float64]:
        """(N, A) one-hot, zeros before the first step."""
        last = self._battles.last_actions[0]
        return np.where((last != NO_ACTION)[:, None], np.eye(self.n_actions)[last], 0.0)

    def get_visibility_matrix(self) -> NDArray[np.bool_]:
        """(N, U) which units each agent sees; nobody is marked as seeing itself, as in SMAC."""
        self._require_battle()
        seen, N = self._battles.snapshot, self.n_agents
        position, alive = seen.position[0].astype(np.float64), seen.health[0] > 0
        difference = position[None] - position[:N, None]
        sight = np.array([self.unit_sight_range(agent) for agent in range(N)])
        visible: NDArray[np.bool_] = np.hypot(difference[..., 0], difference[..., 1]) < sight[:, None]
        visible = visible & alive[None] & alive[:N, None]
        visible[np.arange(N), np.arange(N)] = False
        return visible

    # the rest

    def seed(self) -> int | None:
        return self._seed

    def save_replay(self) -> Path:
        """Save the battle so far: JSON with its seed and every order, of which the engine makes the same battle again.

        It goes to `replay_dir`, or the current folder, under `replay_prefix` or the map's name, and the time.
        """
        self._require_battle()
        when = datetime.now(UTC).strftime("%Y-%m-%d-%H-%M-%S-%f")
        path = Path(self.replay_dir) / f"{self.replay_prefix or self.map_name}_{when}.json"
        write_whole(path, [replay(self._options, self._battle_seed, self._head_start, self._given_actions)])
        _LOG.info("Replay saved at: %s", path)
        return path

    def render(self, mode: str = "human") -> NDArray[np.uint8] | None:
        """Show the battle in a window or notebook ("human"), or return it as a frame (H, W, 3) ("rgb_array")."""
        self._require_battle()
        if self._renderer is None:
            self._renderer = Renderer(self._battles, mode, size=min(self.window_size) // 2)
        if mode != self._renderer.mode:
            raise UsageError(f"the render mode is {mode!r}; it was {self._renderer.mode!r} before, and has to stay so")
        return self._renderer.render()

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None
