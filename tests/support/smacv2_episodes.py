"""Episodes of SMACv2's own class over the served API, to compare the environments with.

    python tests/support/smacv2_episodes.py

plays them anew, as tests/support/smac_episodes.py does for SMAC, and needs SMACv2 (https://github.com/oxwhirl/smacv2).
SMACv2's class is its own and unmodified. It draws its armies from a generator that cannot be seeded, so here it is
given a map on which the drawn armies stand already; that it creates them itself over the socket is tested with the
served API.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from smac_episodes import SEED, Controller, RunConfig, hide_maps_of, play

FILE = Path(__file__).parents[1] / "starcraft" / "envs" / "smacv2_episodes.npz"
EPO = {"prob_obs_enemy": 0.0, "action_mask": False, "use_unit_ranges": True, "obs_own_pos": True}  # its configs
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "protoss": ("10gen_protoss_5_vs_5", {"use_unit_ranges": True, "obs_own_pos": True}),
    "terran": ("10gen_terran_10_vs_10", {"use_unit_ranges": True, "obs_own_pos": True}),
    "zerg": ("10gen_zerg_10_vs_11", {"use_unit_ranges": True}),
    "conic, protoss": ("10gen_protoss_5_vs_5", {"use_unit_ranges": True, "conic_fov": True, "obs_own_pos": True}),
    "conic, terran": ("10gen_terran_10_vs_10", {"use_unit_ranges": True, "conic_fov": True}),
    "conic, zerg": ("10gen_zerg_5_vs_5", {"use_unit_ranges": True, "conic_fov": True, "obs_own_pos": True}),
    "wide cone": ("10gen_protoss_10_vs_10", {"conic_fov": True, "num_fov_actions": 3, "use_unit_ranges": False}),
    "narrow cone": ("10gen_terran_5_vs_5", {"conic_fov": True, "num_fov_actions": 40, "use_unit_ranges": True}),
    "quarters": ("10gen_zerg_10_vs_10", {"conic_fov": True, "num_fov_actions": 4, "use_unit_ranges": True}),
    "SMAC's ranges": ("10gen_zerg_5_vs_5", {"use_unit_ranges": False}),
    "more": (
        "10gen_terran_5_vs_6",
        {"conic_fov": True, "obs_last_action": True, "obs_timestep_number": True, "state_timestep_number": True,
         "obs_terrain_height": True, "obs_pathing_grid": True, "use_unit_ranges": True, "min_attack_range": 5},
    ),
    "least": ("10gen_protoss_5_vs_5", {"obs_all_health": False, "obs_own_health": False, "conic_fov": True,
                                      "state_last_action": False, "use_unit_ranges": True}),
    "negative": ("10gen_protoss_5_vs_5", {"reward_only_positive": False, "conic_fov": True, "use_unit_ranges": True}),
    "heuristic": ("10gen_terran_10_vs_10", {"heuristic_ai": True, "heuristic_rest": True, "use_unit_ranges": True}),
    "all told": ("10gen_zerg_5_vs_5", {"prob_obs_enemy": 1.0, "use_unit_ranges": True, "obs_own_pos": True}),
    "EPO, protoss": ("10gen_protoss_5_vs_5", EPO),
    "EPO, terran": ("10gen_terran_10_vs_11", EPO),
    "EPO, zerg": ("10gen_zerg_20_vs_23", EPO),
    "half told, conic": ("10gen_protoss_10_vs_11", {"prob_obs_enemy": 0.5, "conic_fov": True, "use_unit_ranges": True}),
    "EPO, conic": ("10gen_terran_10_vs_11", EPO | {"conic_fov": True}),
    "EPO, conic, crowd": ("10gen_protoss_20_vs_23", EPO | {"conic_fov": True, "num_fov_actions": 6}),
    "all seen": ("10gen_zerg_5_vs_5", {"fully_observable": True, "prob_obs_enemy": 0.5, "action_mask": False,
                                        "use_unit_ranges": True}),
    "no battle": ("10gen_zerg_5_vs_5", {"obs_starcraft": False, "obs_timestep_number": True, "prob_obs_enemy": 1.0,
                                        "use_unit_ranges": True}),
    "drawn": ("10gen_protoss_5_vs_5", {
        "prob_obs_enemy": 1.0, "use_unit_ranges": True, "conic_fov": True, "obs_last_action": True,
        "capability_config": {
            "attack": {"dist_type": "per_agent_uniform", "lower_bound": [0.2], "upper_bound": [0.9], "observe": True},
            "health": {"dist_type": "per_agent_uniform", "lower_bound": [0.1], "upper_bound": [0.7], "observe": True},
            "enemy_mask": {"dist_type": "mask", "mask_probability": 0.5},
        }}),
    "drawn, not told": ("10gen_terran_10_vs_11", {
        "prob_obs_enemy": 1.0, "kill_unit_step_mul": 5, "obs_all_health": False, "use_unit_ranges": True,
        "capability_config": {
            "attack": {"dist_type": "fixed", "items": [[0.1 * k for k in range(10)]], "observe": False},
            "health": {"dist_type": "per_agent_uniform", "lower_bound": 0.0, "upper_bound": 0.5, "observe": False},
            "team_gen": {"observe": False, "exception_unit_types": ["medivac"]}, "start_positions": {},
        }}),
}  # fmt: skip
SEEDS = (SEED,)  # one episode each


class Seeing:
    """SMACv2's class, in which all enemies have been seen already.

    It blanks what an agent observes of the enemies with lower numbers than one that nobody has seen (`enemy_feats =
    np.zeros(...)` in `get_obs_agent`), in an order of agents that it draws; see docs/environments.md.
    """

    def __init__(self, env: Any) -> None:
        self._env = env

    def __getattr__(self, name: str) -> Any:
        return getattr(self._env, name)

    def get_obs(self) -> Any:
        self._env.obs_enemies[:] = 1
        self._env.enemy_tags = [0] * self._env.n_enemies
        return self._env.get_obs()

    def reset(self) -> tuple[Any, Any]:
        _, state = self._env.reset()
        return self.get_obs(), state


class Told:
    """SMACv2's class with the numbers that ours draws, for the only battle of `seed`, and what ours drew for agents."""

    def __init__(self, env: Any, drawn: dict[str, Any]) -> None:
        self._env, self._drawn = env, drawn

    def __getattr__(self, name: str) -> Any:
        return getattr(self._env, name)

    def reset(self) -> tuple[Any, Any]:
        return self._env.reset(self._drawn)


class Draws:
    """NumPy and `random` for SMACv2's module: what it draws at random is read off the caller's variables."""

    def __init__(self, seed: int) -> None:
        self._seed = np.uint64(seed)
        self.random = SimpleNamespace(rand=self._told, default_rng=lambda: SimpleNamespace(uniform=self._fails))

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def _draw(self, tag: Any, number: int) -> float:
        from s2rm_data.starcraft.armies import unit_draw

        return float(unit_draw(self._seed, tag, number))

    def shuffle(self, agents: list[int]) -> None:
        from s2rm_data.starcraft.envs.capabilities import _TURN

        step = sys._getframe(1).f_locals["self"]._episode_steps
        for k in range(len(agents) - 1, 0, -1):
            other = int(self._draw(_TURN, step * len(agents) + k) * (k + 1))
            agents[k], agents[other] = agents[other], agents[k]

    def _told(self) -> float:
        from s2rm_data.starcraft.envs.capabilities import _TOLD

        its = sys._getframe(1).f_locals
        env = its["self"]
        return self._draw(_TOLD, (env._episode_steps * env.n_enemies + its["e_id"]) * env.n_agents + its["a_id"])

    def _fails(self) -> float:
        from s2rm_data.starcraft.envs.capabilities import _FAILS

        its = sys._getframe(1).f_locals
        return self._draw(_FAILS, its["self"]._episode_steps * its["self"].n_agents + its["a_id"])


def smacv2_env(name: str, options: dict[str, Any], seed: int) -> Any:
    """SMACv2's own class on the scenario's own armies, through the server."""
    from absl import flags

    if not flags.FLAGS.is_parsed():
        flags.FLAGS(["smacv2"])
    from smacv2.env.starcraft2 import starcraft2

    class Drawn(Controller):
        def create_game(self, request: Any) -> Any:
            request.local_map.map_path = f"{name}.SC2Map"
            return super().create_game(request)

        def data(self) -> Any:
            return self.ask(data={"unit_type_id": True})

    class Config(RunConfig):
        version = None

        def start(self, **_: Any) -> Config:
            self.controller = Drawn()
            return self

    _, race, agents, _, enemies = name.split("_")
    starcraft2.run_configs.get = lambda version=None: Config()
    hide_maps_of("smac")
    given = dict(options.get("capability_config", {}))
    given["team_gen"] = {
        "observe": True,
        "n_units": int(agents),
        "n_enemies": int(enemies),
        **given.get("team_gen", {}),
    }
    made = {**options, "capability_config": given}
    starcraft2.np, starcraft2.random = np, sys.modules["random"]
    if "prob_obs_enemy" not in options:
        return Seeing(starcraft2.StarCraft2Env(map_name=f"10gen_{race}", seed=seed, **made))
    draws = Draws(seed)
    starcraft2.np, starcraft2.random = draws, SimpleNamespace(shuffle=draws.shuffle)
    return Told(starcraft2.StarCraft2Env(map_name=f"10gen_{race}", seed=seed, **made), drawn_for(name, options, seed))


def drawn_for(name: str, options: dict[str, Any], seed: int) -> dict[str, Any]:
    """What ours draws for its agents, as SMACv2's distributions would give it."""
    env = own_env(name, options, seed)
    env.reset()
    knowledge, parts = env._battles.knowledge, options.get("capability_config", {})
    items = {"attack": knowledge.attack, "health": knowledge.health, "enemy_mask": knowledge.masked}
    return {part: {"item": items[part][0].copy(), "id": 0} for part in items if part in parts}


def own_env(name: str, options: dict[str, Any], seed: int) -> Any:
    """Ours, at the moment at which the other first looks: before the loop that SMACv2 waits for what it creates."""
    from s2rm_data.starcraft.envs import StarCraft2Env

    class Early(StarCraft2Env):
        def _begin(self, seed: int, *, head_start: bool) -> None:
            super()._begin(seed, head_start=False)

    return Early(name, seed=seed, **options)


def episodes() -> Iterator[tuple[str, str, dict[str, Any], int]]:
    for case, (name, options) in CASES.items():
        for seed in SEEDS:
            yield f"{case}, seed {seed}", name, options, seed


def main() -> None:
    kept = {}
    for case, name, options, seed in episodes():
        played = play(smacv2_env(name, options, seed), 1, 2)
        kept |= {f"{case}/{key}": values for key, values in played.items()}
    np.savez_compressed(FILE, **kept)


if __name__ == "__main__":
    main()
