"""What SMAC's class answers about its map, its units and its sizes."""

# U units of both sides (agents first), N agents, A actions, O and S sizes of observation and state

from __future__ import annotations

import enum
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from s2rm_data.envs.battles import BattleBatch
from s2rm_data.envs.options import EnvOptions
from s2rm_data.envs.smac_units import ApiUnit, agent_ids, api_ids, api_units, map_type, type_of_id
from s2rm_data.errors import UsageError
from s2rm_data.generators.sc2.codes import Action
from s2rm_data.generators.sc2.features import AROUND, MAX_COOLDOWN
from s2rm_data.generators.sc2.maps import SIZE
from s2rm_data.generators.sc2.units import NUMBER_OF, UNIT_TYPES

# Methods of SMAC's class that talk to StarCraft II.
_GAME_METHODS = ("get_agent_action", "get_agent_action_heuristic", "init_units", "update_units", "only_medivac_left",
                 "reward_battle")  # fmt: skip


class Direction(enum.IntEnum):
    """SMAC's."""

    NORTH = 0
    SOUTH = 1
    EAST = 2
    WEST = 3


_STEP = {Direction.NORTH: (0, 1), Direction.SOUTH: (0, -1), Direction.EAST: (1, 0), Direction.WEST: (-1, 0)}


class SmacQueries:
    """The methods of SMAC's class that play nothing. `_battles` is the only battle, `_battle` its number."""

    def __init__(self, options: EnvOptions) -> None:
        self._options = options
        self._battles = BattleBatch(options, 1)
        self._battle = -1  # number of the battle within its game, -1 before the first
        self._units: list[ApiUnit] | None = None
        self.battles_won = self.battles_game = self.timeouts = self.force_restarts = 0
        self._describe_map()

    def _describe_map(self) -> None:
        battles, features = self._battles, self._battles.features
        self.n_agents, self.n_enemies = battles.agents, battles.units - battles.agents
        self.n_actions, self.n_actions_no_attack, self.n_actions_move = battles.actions, features.attack_at, 4
        self.n_fov_actions = features.attack_at - Action.ATTACK
        self.episode_limit = battles.limit
        self.n_obs_pathing, self.n_obs_height = 8, 9
        self.shield_bits_ally, self.shield_bits_enemy = int(features.ally_shield), int(features.enemy_shield)
        self.unit_type_bits, self.map_type = features.bits, map_type(battles)
        bits = [f"type_{bit}" for bit in range(self.unit_type_bits)]
        self.ally_state_attr_names = ["health", "energy/cooldown", "rel_x", "rel_y"]
        self.ally_state_attr_names += ["shield"] * self.shield_bits_ally
        self.ally_state_attr_names += ["fov_x", "fov_y"] * self._options.conic_fov + bits
        self.enemy_state_attr_names = ["health", "rel_x", "rel_y"] + ["shield"] * self.shield_bits_enemy + bits
        self.map_x = self.map_y = self.max_distance_x = self.max_distance_y = SIZE
        self.pathing_grid, self.terrain_height = battles.terrain.pathing, battles.terrain.height
        self._ids = agent_ids(battles)
        self._describe_units()

    def _describe_units(self) -> None:
        kinds = [UNIT_TYPES[int(number)] for number in self._battles.engine.kinds[0]]
        self._full = np.array([kind.health for kind in kinds], dtype=np.float32)
        self._healer = np.array([kind.is_healer for kind in kinds])
        self.max_reward = self._battles.max_reward

    def __getattr__(self, name: str) -> Any:
        """The options and unit ids that SMAC keeps as attributes, such as `obs_all_health` and `marine_id`."""
        if not name.startswith("__"):
            for place in (self.__dict__.get("_ids", {}), vars(self.__dict__.get("_options", object))):
                if name in place:
                    return place[name]
        if name in _GAME_METHODS:
            raise AttributeError(f"{name}() talks to StarCraft II; an environment on the embedded engine has none")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _require_battle(self) -> None:
        if self._battle < 0:
            raise UsageError("there is no battle yet; call reset() first")

    def _agent(self, agent_id: int) -> int:
        if agent_id not in range(self.n_agents):
            raise UsageError(f"there is no agent {agent_id!r}; agents have the numbers 0 to {self.n_agents - 1}")
        return int(agent_id)

    # units

    def _all_units(self) -> list[ApiUnit]:
        self._require_battle()
        if self._units is None:
            self._units = api_units(self._battles, self._battle)
        return self._units

    @property
    def agents(self) -> dict[int, ApiUnit]:
        """Agents by number, as the API shows them."""
        return dict(enumerate(self._all_units()[: self.n_agents]))

    @property
    def enemies(self) -> dict[int, ApiUnit]:
        return dict(enumerate(self._all_units()[self.n_agents :]))

    @property
    def death_tracker_ally(self) -> NDArray[np.float64]:
        return (self._battles.snapshot.health[0, : self.n_agents] <= 0).astype(np.float64)

    @property
    def death_tracker_enemy(self) -> NDArray[np.float64]:
        return (self._battles.snapshot.health[0, self.n_agents :] <= 0).astype(np.float64)

    def get_unit_by_id(self, a_id: int) -> ApiUnit:
        return self.agents[self._agent(a_id)]

    def get_unit_types(self) -> list[int]:
        """The API's ids of all units, agents first."""
        return api_ids(self._battles)

    def get_unit_type_id(self, unit: ApiUnit, ally: bool) -> int:
        """The place of a unit's type among the one-hot types."""
        number = NUMBER_OF[type_of_id(self._battles, unit.unit_type).name]
        return self._battles.features.type_index(number, ours=ally)

    def unit_max_cooldown(self, unit: ApiUnit) -> float:
        return MAX_COOLDOWN.get(type_of_id(self._battles, unit.unit_type).name if unit.owner == 1 else "", 15.0)

    def unit_max_shield(self, unit: ApiUnit) -> float:
        return type_of_id(self._battles, unit.unit_type).shield

    def unit_shoot_range(self, agent_id: int) -> float:
        return self._battles.features.shoot_range(int(self._battles.engine.kinds[0, self._agent(agent_id)]))

    def unit_sight_range(self, agent_id: int) -> float:
        return self._battles.features.sight_range(int(self._battles.engine.kinds[0, self._agent(agent_id)]))

    @property
    def fov_directions(self) -> NDArray[np.float64]:
        """(N, 2) where agents look; east without a conic field of view, as in SMACv2."""
        looking = self._battles.looking
        return np.tile((1.0, 0.0), (self.n_agents, 1)) if looking is None else looking[0].copy()

    # terrain

    @staticmethod
    def distance(x1: float, y1: float, x2: float, y2: float) -> float:
        return math.hypot(x2 - x1, y2 - y1)

    def check_bounds(self, x: int, y: int) -> bool:
        """Whether a cell is on the map."""
        return 0 <= x < SIZE and 0 <= y < SIZE

    def can_move(self, unit: ApiUnit, direction: int) -> bool:
        dx, dy = _STEP[Direction(direction)]
        half = self._options.move_amount / 2
        x, y = int(unit.pos.x + half * dx), int(unit.pos.y + half * dy)
        return self.check_bounds(x, y) and bool(self.pathing_grid[x, y])

    def get_surrounding_points(self, unit: ApiUnit, include_self: bool = False) -> list[tuple[int, int]]:
        """Cells around a unit, in eight directions."""
        x, y, amount = int(unit.pos.x), int(unit.pos.y), int(self._options.move_amount)
        points = [(x + int(dx) * amount, y + int(dy) * amount) for dx, dy in AROUND]
        return points if include_self else points[:-1]

    def get_surrounding_pathing(self, unit: ApiUnit) -> list[float]:
        points = self.get_surrounding_points(unit)
        return [self.pathing_grid[x, y] if self.check_bounds(x, y) else 1 for x, y in points]

    def get_surrounding_height(self, unit: ApiUnit) -> list[float]:
        points = self.get_surrounding_points(unit, include_self=True)
        return [self.terrain_height[x, y] if self.check_bounds(x, y) else 1 for x, y in points]

    # sizes

    def get_total_actions(self) -> int:
        return self.n_actions

    def get_obs_move_feats_size(self) -> int:
        return self._battles.features.move_width

    def get_obs_enemy_feats_size(self) -> tuple[int, int]:
        return self.n_enemies, self._battles.features.enemy_width

    def get_obs_ally_feats_size(self) -> tuple[int, int]:
        return self.n_agents - 1, self._battles.features.ally_width

    def get_obs_own_feats_size(self) -> int:
        return self._battles.features.own_width + self._extra_time

    def get_obs_size(self) -> int:
        """SMAC's number; with obs_timestep_number its observations, and so these, have one number more."""
        return self._battles.features.observation_size - self._extra_time

    @property
    def _extra_time(self) -> int:
        """How many numbers SMAC leaves out when it counts; SMACv2 none."""
        return int(self.obs_timestep_number and not self._battles.generated)

    def get_state_size(self) -> int:
        if self.obs_instead_of_state:
            return self.get_obs_size() * self.n_agents
        return self._battles.features.state_size

    def get_ally_num_attributes(self) -> int:
        return len(self.ally_state_attr_names)

    def get_enemy_num_attributes(self) -> int:
        return len(self.enemy_state_attr_names)

    def get_env_info(self) -> dict[str, Any]:
        capabilities = {"cap_shape": self.unit_type_bits} if self._battles.generated else {}  # SMACv2's
        return capabilities | {
            "state_shape": self.get_state_size(),
            "obs_shape": self.get_obs_size(),
            "n_actions": self.get_total_actions(),
            "n_agents": self.n_agents,
            "episode_limit": self.episode_limit,
            "agent_features": self.ally_state_attr_names,
            "enemy_features": self.enemy_state_attr_names,
        }

    def get_stats(self) -> dict[str, float]:
        return {
            "battles_won": self.battles_won,
            "battles_game": self.battles_game,
            "battles_draw": self.timeouts,
            "win_rate": self.battles_won / max(self.battles_game, 1),
            "timeouts": self.timeouts,
            "restarts": self.force_restarts,
        }
