"""A drop-in for SMAC's `StarCraft2Env`: the same arguments, methods, attributes and numbers, without the game.

    from s2rm_data.starcraft.envs import StarCraft2Env                                   # instead of smac.env

For the same seed and actions it gives what SMAC's own class gives when it plays the engine through `sc2-server`."""

# U units of both sides (agents first), N agents, A actions, O and S sizes of observation and state

from __future__ import annotations

import dataclasses
import logging
import secrets
from collections.abc import Mapping, MutableSequence, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from s2rm_data.core.check import between, checked
from s2rm_data.core.errors import UsageError
from s2rm_data.core.write import write_whole
from s2rm_data.starcraft import scenarios
from s2rm_data.starcraft.api.server.game import Event, battle_seed, replay_of
from s2rm_data.starcraft.codes import ORDERS, Action, Order
from s2rm_data.starcraft.engine import layout as at
from s2rm_data.starcraft.engine.batch import HEAD_START_LOOPS
from s2rm_data.starcraft.engine.step import SCRIPT_LOOPS
from s2rm_data.starcraft.envs.battles import LIMIT, RUNNING, WIN, BattleBatch, EnvOptions, env_options
from s2rm_data.starcraft.envs.capabilities import EPISODE, given_units, table
from s2rm_data.starcraft.envs.render import Renderer
from s2rm_data.starcraft.envs.smac_queries import FIRST_TAG, SmacQueries
from s2rm_data.starcraft.features import NO_ACTION
from s2rm_data.starcraft.rules import action_along
from s2rm_data.starcraft.scenarios import Scenario
from s2rm_data.starcraft.units import NUMBER_OF

_MEDIVAC = NUMBER_OF["medivac"]
_ONLY = np.zeros(1, dtype=np.int64)  # the only battle
_NOBODY = -1  # as a target of the heuristic


def replay(options: EnvOptions, seed: int, head_start: bool, actions: Sequence[Sequence[int]]) -> bytes:
    """Plays the battle again to find out where its moves led."""
    battles = BattleBatch(options, 1)
    if options.capability_config and (battles.knowledge or battles.scenario != scenarios.parse(options.map_name)):
        raise UsageError("capability_config draws what a replay cannot tell; battles of its armies cannot be saved")
    if battles.generated and options.step_mul != SCRIPT_LOOPS:
        raise UsageError(
            f"step_mul is {options.step_mul}; a battle of SMACv2's can be saved with {SCRIPT_LOOPS} only, since in a "
            "replay the map's script runs every half second, and here at every step"
        )
    battles.begin(_ONLY, battles.fresh([seed], head_start=head_start), _ONLY)
    begin = SCRIPT_LOOPS - HEAD_START_LOOPS if battles.generated else 0  # the script runs at the first step
    loop = begin + (HEAD_START_LOOPS if head_start else 0)
    events: list[Event] = []
    for step in actions:
        chosen = np.array([step], dtype=np.int64)
        before = battles.snapshot.health[0] > 0
        orders = battles.succeeding(chosen, battles.orders(chosen))
        battles.engine.act(orders, options.move_amount)  # to see the goals; the step gives the same orders again
        ordered = enumerate(orders[0].tolist())
        events += [_event(battles, loop, agent, action) for agent, action in ordered if action and before[agent]]
        battles.step(chosen)
        loop += options.step_mul or 0
    return replay_of(options.map_name, options.enemy_order, seed, (begin, loop), FIRST_TAG, events)


def _event(battles: BattleBatch, loop: int, agent: int, action: int) -> Event:
    order, target, goal = Order.IDLE, 0, None
    if Action.NORTH <= action <= Action.WEST:
        order = Order.MOVE
        goal = (float(battles.engine.floats[0, at.GOAL_X, agent]), float(battles.engine.floats[0, at.GOAL_Y, agent]))
    elif action >= Action.ATTACK:
        heals = battles.engine.kinds[0, agent] == _MEDIVAC
        order = Order.HEAL if heals else Order.ATTACK
        target = FIRST_TAG + action - Action.ATTACK + (0 if heals else battles.agents)
    return Event(loop, ORDERS[order], FIRST_TAG + agent, target, goal)


_LOG = logging.getLogger("s2rm_data.starcraft.envs")


def _whole(action: Any) -> int:
    """SMAC would round 1.5; only what is a whole number passes here."""
    whole = int(action)
    if whole != action:
        raise ValueError(action)
    return whole


class StarCraft2Env(SmacQueries):
    """SMAC's class with the embedded engine in it; docs/environments.md lists what differs.

    The arguments that are keywords only are SMACv2's, and `enemy_order`: "random" numbers the enemies anew in every
    battle, as the game does, "created" in the order in which they are created. SMACv2's scenarios
    (`10gen_protoss_5_vs_5`) are maps as well."""

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
        enemy_order: str = "random",
        fully_observable: bool = False,
        obs_starcraft: bool = True,
        prob_obs_enemy: float | None = None,
        action_mask: bool = True,
        kill_unit_step_mul: int = 2,
        capability_config: Mapping[str, Any] | None = None,
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
        self._targets = np.full(self.n_agents, _NOBODY, dtype=np.int64)
        self._given_actions: list[list[int]] = []
        self.episode_config: dict[str, Any] = {}
        self._renderer: Renderer | None = None

    # playing

    def reset(
        self, episode_config: Mapping[str, Any] | None = None
    ) -> tuple[list[NDArray[np.floating]], NDArray[np.float32]]:
        """Start the next battle. Until the first one is over, every reset starts the game, and so that one, again.

        `episode_config` gives a battle of SMACv2's what is drawn otherwise, as its distributions make it: `team_gen`
        (`ally_team`, `enemy_team`), `ally_start_positions`, `enemy_start_positions`, `attack`, `health`, `enemy_mask`.
        """
        self.episode_config = table("episode_config", episode_config or {}, EPISODE)
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
        scenario = self._given_scenario()
        fresh = self._battles.fresh(np.array([seed], dtype=np.uint64), head_start=head_start, scenario=scenario)
        self._battles.begin(_ONLY, fresh, _ONLY)
        if self._battles.knowledge is not None:
            self._battles.knowledge.take(self.episode_config)
        self._battle_seed, self._head_start = seed, head_start
        self._targets[:] = _NOBODY
        self._episode_steps, self._over, self._units = 0, False, None
        if self._battles.snapshot.unit_type.ndim == 2:
            self._describe_units()
        self._given_actions.clear()

    def _given_scenario(self) -> Scenario | None:
        """With the armies and places of the episode's config, if it has any."""
        scenario = self._battles.scenario
        if scenario.generated is None or "team_gen" not in self.episode_config:
            return None
        units = given_units(self.episode_config, scenario.generated)
        return dataclasses.replace(scenario, generated=dataclasses.replace(scenario.generated, given=units))

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
        battles.step(chosen, by_rules=not self.heuristic_ai)
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
        """SMAC's heuristic, in place of the actions that are given: attack the nearest enemy until it is dead, heal the
        nearest hurt; `heuristic_rest` walks toward a target out of reach. By smac/env/starcraft2/starcraft2.py,
        including that the dead choose as well, to no effect."""
        seen, N, attack_at = self._battles.snapshot, self.n_agents, self._battles.features.attack_at
        position, health = seen.position[0].astype(np.float64), seen.health[0]
        hurt = ~self._healer & (health < self._full)
        chosen = np.full((1, N), int(Action.NO_OP), dtype=np.int64)
        for agent in range(N):
            heals = self._healer[agent]
            side = slice(0, N) if heals else slice(N, None)
            wanted = (health[side] > 0) & (hurt[side] | (not heals))
            ways = position[side] - position[agent]
            if self._targets[agent] == _NOBODY or not wanted[self._targets[agent]]:
                distance = np.where(wanted, np.sqrt((ways * ways).sum(axis=1)), np.inf)
                self._targets[agent] = distance.argmin() if wanted.any() else _NOBODY
            target = self._targets[agent]
            if target == _NOBODY:
                continue
            chosen[0, agent] = attack_at + target
            if self.heuristic_rest and not self._battles.available[0, agent, attack_at + target]:
                chosen[0, agent] = action_along(*ways[target])
        return chosen

    def _end(self) -> tuple[bool, dict[str, Any]]:
        outcome = int(self._battles.outcome[0])
        won, limit = outcome == WIN, outcome == LIMIT
        info: dict[str, Any] = self._battles.ends
        self._over = outcome != RUNNING
        if self._over:
            self._episode_count += 1
            self.battles_game += 1
            self.battles_won += won
            self.timeouts += limit
            if limit and self.continuing_episode:
                info["episode_limit"] = True
        return self._over, info

    # observing

    def get_obs(self) -> list[NDArray[np.floating]]:
        """What each agent observes, (O,) each; with obs_timestep_number in float64, as SMAC's."""
        self._require_battle()
        observation = self._battles.observe()[0]
        if self._options.obs_timestep_number and self._options.obs_starcraft:
            timed = observation.astype(np.float64)
            timed[:, -1] = self._episode_steps / self.episode_limit
            return list(timed)
        return list(observation)

    def get_obs_agent(self, agent_id: int) -> NDArray[np.floating]:
        return self.get_obs()[self._agent(agent_id)]

    def get_state(self) -> NDArray[np.float32]:
        self._require_battle()
        return self._battles.state()[0]

    def get_state_dict(self) -> dict[str, Any]:
        """The state in parts: allies (N, ...), enemies (E, ...), last_action (N, A), timestep."""
        self._require_battle()
        battles = self._battles
        state = battles.parts_of_state()[0]
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
        return self.get_avail_actions()[self._agent(agent_id)]

    def get_true_avail_agent_actions(self, agent_id: int) -> list[int]:
        """Without `action_mask` as if it were on."""
        self._require_battle()
        return self._battles.true_available[0, self._agent(agent_id)].astype(np.int64).tolist()

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

        It goes to `replay_dir`, or the current folder, under `replay_prefix` or the map's name, and the time."""
        self._require_battle()
        if self.episode_config:
            raise UsageError(
                "the battle has armies of an episode_config, which a replay cannot tell; it cannot be saved"
            )
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

    def render_fovs(self) -> None:
        """In SMACv2 it draws the cones of sight into the game's window; here every frame shows them."""

    def close(self) -> None:
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None
