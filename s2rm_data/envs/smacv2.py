"""A drop-in for SMACv2's `StarCraftCapabilityEnvWrapper`: its arguments and methods, without the game.

    from s2rm_data.envs import StarCraftCapabilityEnvWrapper                   # instead of smacv2.env

The numbers of `capability_config` name one of the scenarios; its distributions have to be those that SMACv2 publishes
for the race.
"""

# N agents, A actions

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from s2rm_data.envs.smac import StarCraft2Env
from s2rm_data.errors import UsageError, did_you_mean
from s2rm_data.generators.sc2.armies import REFLECTED_SHARE
from s2rm_data.generators.sc2.generated import PREFIX, RACES
from s2rm_data.generators.sc2.maps import SIZE

# Arguments of SMACv2's class that have one value here, and what another would mean.
_FIXED: dict[str, tuple[Any, str]] = {
    "prob_obs_enemy": (1.0, "enemies that are hidden from some agents at random"),
    "action_mask": (True, "masks that allow targets out of range"),
    "obs_starcraft": (True, "observations without the battle"),
    "fully_observable": (False, "agents that see everything"),
    "kill_unit_step_mul": (2, "agents that die early"),
}
_CAPABILITIES = ("n_units", "n_enemies", "team_gen", "start_positions")
_MAPS = tuple(PREFIX + race for race in RACES)


class StarCraftCapabilityEnvWrapper:
    """SMACv2's wrapper: every battle has armies and places of its own.

    `map_name` is `10gen_protoss`, `10gen_terran` or `10gen_zerg`; the armies' sizes are in `capability_config`. The
    other arguments are those of `StarCraft2Env`; `use_unit_ranges` is off unless given, as in SMACv2.
    """

    def __init__(self, *, capability_config: dict[str, Any], map_name: str = "10gen_terran", **options: Any) -> None:
        if map_name not in _MAPS:
            maps = f"SMACv2's maps are {', '.join(_MAPS)}; for another, take StarCraft2Env"
            raise UsageError(f"map_name is {map_name!r}{did_you_mean(str(map_name), _MAPS, maps)}")
        for name, (only, meaning) in _FIXED.items():
            if options.pop(name, only) != only:
                raise UsageError(f"{name} can be {only!r} only; {meaning} are not simulated here")
        self.distribution_config = capability_config
        agents, enemies = _sizes(map_name.removeprefix(PREFIX), capability_config)
        options = {"use_unit_ranges": False, **options}
        self.env = StarCraft2Env(map_name=f"{map_name}_{agents}_vs_{enemies}", **options)

    def __getattr__(self, name: str) -> Any:
        if name == "env":  # not made yet
            raise AttributeError(name)
        return getattr(self.env, name)

    def get_capabilities_agent(self, agent_id: int) -> NDArray[np.float32]:
        """(K,) the agent's unit type, one-hot."""
        features, kind = self.env._battles.features, int(self.env._battles.engine.kinds[0, agent_id])
        return np.eye(features.bits, dtype=np.float32)[features.type_index(kind, ours=True)]

    def get_capabilities(self) -> NDArray[np.float32]:
        """(N * K,)"""
        return np.concatenate([self.get_capabilities_agent(agent) for agent in range(self.env.n_agents)])


def _sizes(race: str, config: dict[str, Any]) -> tuple[int, int]:
    """Numbers of agents and enemies of a `capability_config`, the rest of which must be what SMACv2 publishes."""
    if not isinstance(config, dict) or not {"n_units", "n_enemies"} <= set(config):
        raise UsageError(f"capability_config is {config!r}; it is a dictionary with n_units and n_enemies")
    for name in config:
        if name not in _CAPABILITIES:
            raise UsageError(f"capability_config has {name!r}; what is simulated here is {', '.join(_CAPABILITIES)}")
    drawn = RACES[race]
    teams, places = config.get("team_gen"), config.get("start_positions")
    if teams is not None:
        weights = dict(zip(teams.get("unit_types", ()), teams.get("weights", ()), strict=False))
        _require(teams, "team_gen", "dist_type", "weighted_teams")
        _require({"weights": weights}, "team_gen", "weights", dict(drawn.weights))
        alone = {"exception_unit_types": tuple(teams.get("exception_unit_types", ()))}
        _require(alone, "team_gen", "exception_unit_types", drawn.never_alone)
        _require(teams, "team_gen", "observe", True)
    if places is not None:
        drawn_places = {"dist_type": "surrounded_and_reflect", "p": REFLECTED_SHARE, "map_x": SIZE, "map_y": SIZE}
        for name, only in drawn_places.items():
            _require(places, "start_positions", name, only)
    return config["n_units"], config["n_enemies"]


def _require(part: dict[str, Any], where: str, name: str, only: Any) -> None:
    if part.get(name, only) != only:
        raise UsageError(f"{where} of capability_config has {name} {part[name]!r}; the engine draws with {only!r}")
