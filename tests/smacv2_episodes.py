"""Episodes of SMACv2's own class over the served API, to compare the environments with.

    python tests/smacv2_episodes.py

plays them anew, as tests/smac_episodes.py does for SMAC, and needs SMACv2 (https://github.com/oxwhirl/smacv2). SMACv2's
class is its own and unmodified. It draws its armies from a generator that cannot be seeded, so here it is given a map
on which the drawn armies stand already; that it creates them itself over the socket is tested with the served API.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from smac_episodes import SEED, Controller, RunConfig, hide_maps_of, play

FILE = Path(__file__).parent / "envs" / "smacv2_episodes.npz"
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


def smacv2_env(name: str, options: dict[str, Any], seed: int) -> Seeing:
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
    team = {"team_gen": {"n_units": int(agents), "n_enemies": int(enemies), "observe": True}}
    return Seeing(starcraft2.StarCraft2Env(map_name=f"10gen_{race}", seed=seed, capability_config=team, **options))


def own_env(name: str, options: dict[str, Any], seed: int) -> Any:
    """Ours, at the moment at which the other first looks: before the loop that SMACv2 waits for what it creates."""
    from s2rm_data.envs import StarCraft2Env

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
