"""What SMAC's class answers about its map, its units and its sizes; units are as the API shows them."""

# U units of both sides (agents first), N agents, A actions, O and S sizes of observation and state

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from s2rm_data.core.errors import UsageError
from s2rm_data.starcraft import rules
from s2rm_data.starcraft.api.protocol import OPPONENT, PLAYER, STANDARD_ID, custom_ids
from s2rm_data.starcraft.codes import Action
from s2rm_data.starcraft.engine import layout as at
from s2rm_data.starcraft.envs.battles import BattleBatch, EnvOptions
from s2rm_data.starcraft.features import AROUND, MAX_COOLDOWN
from s2rm_data.starcraft.rules import MOVE_AMOUNT, MOVES
from s2rm_data.starcraft.scenarios import Scenario
from s2rm_data.starcraft.terrain_maps import SIZE
from s2rm_data.starcraft.units import AIR, NUMBER_OF, UNIT_TYPES, UnitType

FIRST_TAG = 1 << 32
# SMAC's names of its maps' armies, by the agents' types; another army has the names of its types.
_MAP_TYPES = {
    ("marine",): "marines",
    ("stalker", "zealot"): "stalkers_and_zealots",
    ("colossus", "stalker", "zealot"): "colossi_stalkers_zealots",
    ("marauder", "marine", "medivac"): "MMM",
    ("zealot",): "zealots",
    ("hydralisk",): "hydralisks",
    ("stalker",): "stalkers",
    ("colossus",): "colossus",
    ("baneling", "zergling"): "bane",
}
IDS = ("marine", "marauder", "medivac", "hydralisk", "zergling", "baneling", "stalker", "colossus", "zealot")


def map_type(scenario: Scenario) -> str:
    if scenario.generated is not None:
        return f"{scenario.generated.race}_gen"
    names = tuple(sorted({UNIT_TYPES[squad.unit_type].name for squad in scenario.agents}))
    return _MAP_TYPES.get(names, "_".join(names))


def _own_ids(battles: BattleBatch) -> dict[int, int]:
    """Unit type -> id of the map's own units; SMACv2's map has all of them."""
    types = [NUMBER_OF[name] for name in IDS] if battles.generated else battles.scenario.agent_types
    return custom_ids(types)


def api_ids(battles: BattleBatch) -> list[int]:
    """Ids of all units in slot order: the map's own for agents, the game's for enemies."""
    own, numbers = _own_ids(battles), [int(number) for number in battles.engine.kinds[0]]
    return [own[n] if slot < battles.agents else STANDARD_ID[n] for slot, n in enumerate(numbers)]


def type_of_id(battles: BattleBatch, api_id: int) -> UnitType:
    ids = api_ids(battles)
    return UNIT_TYPES[int(battles.engine.kinds[0, ids.index(api_id)])]


class ApiUnit(SimpleNamespace):
    """One unit with the names of the API's message; the dead have health 0."""

    def HasField(self, name: str) -> bool:  # noqa: N802 (the API's name)
        """As in the game, the enemies' cooldowns are not told."""
        return name != "weapon_cooldown" or self.owner == PLAYER


def api_units(battles: BattleBatch, battle_number: int) -> list[ApiUnit]:
    """All units of the only battle, in slot order; a battle's tags do not come again."""
    seen, ids = battles.snapshot, api_ids(battles)
    facing, z = battles.engine.facing[0].tolist(), battles.terrain.z
    units = []
    for slot in range(battles.units):
        kind, ours = UNIT_TYPES[int(battles.engine.kinds[0, slot])], slot < battles.agents
        x, y = (float(value) for value in seen.position[0, slot])
        units.append(
            ApiUnit(
                tag=FIRST_TAG + battle_number * battles.units + slot,
                owner=PLAYER if ours else OPPONENT,
                unit_type=ids[slot],
                pos=SimpleNamespace(x=x, y=y, z=float(z[min(int(x), 31), min(int(y), 31)])),
                facing=math.atan2(facing[slot][1], facing[slot][0]) % (2 * math.pi),
                radius=kind.radius,
                health=float(seen.health[0, slot]),
                health_max=kind.most_health(enemy=not ours),
                shield=float(seen.shield[0, slot]),
                shield_max=kind.shield,
                energy=float(seen.energy[0, slot]),
                energy_max=kind.energy_max,
                weapon_cooldown=float(seen.cooldown_loops[0, slot]) if ours else 0.0,
                is_flying=kind.plane == AIR,
                orders=(),
                engaged_target_tag=0,
            )
        )
    return units


# Methods of SMAC's class that talk to StarCraft II.
_GAME_METHODS = ("get_agent_action", "get_agent_action_heuristic", "init_units", "update_units", "only_medivac_left",
                 "reward_battle")  # fmt: skip


class MultiAgentEnv:
    """What SMAC's classes are derived from."""


class SmacQueries(MultiAgentEnv):
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
        self.unit_type_bits, self.map_type = features.bits, map_type(battles.scenario)
        bits = [f"type_{bit}" for bit in range(self.unit_type_bits)]
        known, looks = features.options, ["fov_x", "fov_y"] * self._options.conic_fov
        drawn = ["attack_probability"] * (known.attack_told is not None)
        drawn += ["total_health"] * (known.health_told is not None)
        self.capability_attr_names = drawn + bits
        self.ally_state_attr_names = ["health", "energy/cooldown", "rel_x", "rel_y"]
        self.ally_state_attr_names += ["shield"] * self.shield_bits_ally + looks
        if not battles.generated:  # SMAC's
            self.ally_state_attr_names += self.capability_attr_names
        self.enemy_state_attr_names = ["health", "rel_x", "rel_y"] + ["shield"] * self.shield_bits_enemy + bits
        self.map_x = self.map_y = self.max_distance_x = self.max_distance_y = SIZE
        self.pathing_grid, self.terrain_height = battles.terrain.pathing, battles.terrain.height
        own = _own_ids(battles)
        self._ids = {f"{name}_id": own.get(NUMBER_OF[name], 0) for name in IDS}  # 0: no agent is one
        self._describe_units()

    def _describe_units(self) -> None:
        kinds = [UNIT_TYPES[int(number)] for number in self._battles.engine.kinds[0]]
        self._full = self._battles.engine.floats[0, at.HEALTH_MAX].astype(np.float32)
        self._healer = np.array([kind.is_healer for kind in kinds])
        self.max_reward = float(self._battles.max_rewards[0])

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
        return MAX_COOLDOWN.get(type_of_id(self._battles, unit.unit_type).name if unit.owner == PLAYER else "", 15.0)

    def unit_max_shield(self, unit: ApiUnit) -> float:
        return type_of_id(self._battles, unit.unit_type).shield

    def unit_shoot_range(self, agent_id: int) -> float:
        return float(self._battles.features.rules[self._battles.engine.kinds[0, self._agent(agent_id)], rules.REACH])

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
        return 0 <= x < SIZE and 0 <= y < SIZE

    def can_move(self, unit: ApiUnit, direction: int) -> bool:
        (dx, dy), half = MOVES[Action.NORTH + direction], self._options.move_amount / 2 / MOVE_AMOUNT
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

    def get_cap_size(self) -> int:
        return self._battles.features.cap_size

    def get_ally_num_attributes(self) -> int:
        return len(self._ally_names)

    @property
    def _ally_names(self) -> list[str]:
        """SMACv2 keeps what is drawn in a list of its own."""
        return self.ally_state_attr_names + self.capability_attr_names * self._battles.generated

    def get_capabilities_agent(self, agent_id: int) -> NDArray[np.float32]:
        """(K,) what the battle drew for an agent: attack_probability, total_health, its unit type one-hot."""
        features, knowledge, agent = self._battles.features, self._battles.knowledge, self._agent(agent_id)
        drawn = [] if knowledge is None else [part[0, agent] for part in knowledge.traits[:2] if len(part)]
        bits = np.zeros(features.bits, dtype=np.float32)
        if features.bits:
            bits[features.type_index(int(self._battles.engine.kinds[0, agent]), ours=True)] = 1
        return np.concatenate([np.array(drawn, dtype=np.float32), bits])

    def get_capabilities(self) -> NDArray[np.float32]:
        return np.concatenate([self.get_capabilities_agent(agent) for agent in range(self.n_agents)])

    def get_enemy_num_attributes(self) -> int:
        return len(self.enemy_state_attr_names)

    def get_env_info(self) -> dict[str, Any]:
        capabilities = {"cap_shape": self.get_cap_size()} if self._battles.generated else {}  # SMACv2's
        return capabilities | {
            "state_shape": self.get_state_size(),
            "obs_shape": self.get_obs_size(),
            "n_actions": self.get_total_actions(),
            "n_agents": self.n_agents,
            "episode_limit": self.episode_limit,
            "agent_features": self._ally_names,
            "enemy_features": self.enemy_state_attr_names,
        }

    # names

    def get_obs_feature_names(self) -> list[str]:
        """What the numbers of an observation are, as SMACv2 calls them, from the first agent's view."""
        options, names = self._options, [f"move_action_{Action(way).name.lower()}" for way in MOVES]
        if not options.obs_starcraft:
            return ["timestep"] * options.obs_timestep_number
        names += [f"pathing_grid_{n}" for n in range(self.n_obs_pathing * options.obs_pathing_grid)]
        names += [f"terrain_height_{n}" for n in range(self.n_obs_height * options.obs_terrain_height)]
        health, place = ["health"] * options.obs_all_health, ["distance", "relative_x", "relative_y"]
        for e in range(self.n_enemies):
            shield = ["shield"] * (options.obs_all_health and self.shield_bits_enemy)
            parts = ["shootable", *place, *health, *shield]
            names += [f"enemy_{part}_{e}" for part in parts] + self._bit_names(f"enemy_unit_type_{e}")
        shield, drawn = ["shield"] * self.shield_bits_ally, self._drawn_names
        for a in range(1, self.n_agents):
            parts = ["visible", *place, *health, *(shield * options.obs_all_health), *drawn]
            names += [f"ally_{part}_{a}" for part in parts] + self._bit_names(f"ally_unit_type_{a}")
            names += [f"ally_last_action_{a}_action_{n}" for n in range(self.n_actions * options.obs_last_action)]
        own = ["health", *shield] * (options.obs_all_health or options.obs_own_health) + drawn
        own += ["pos_x", "pos_y"] * options.obs_own_pos + ["fov_x", "fov_y"] * options.conic_fov
        names += [f"own_{part}" for part in own] + self._bit_names("own_unit_type")
        return names + ["unused"] * self._extra_time + ["timestep"] * options.obs_timestep_number

    def get_state_feature_names(self) -> list[str]:
        options, names = self._options, []
        if options.obs_instead_of_state:
            return [f"{name}_of_agent_{a}" for a in range(self.n_agents) for name in self.get_obs_feature_names()]
        ours = ["health", "cooldown", "relative_x", "relative_y", *["shield"] * self.shield_bits_ally]
        ours += [*self._drawn_names, *["fov_x", "fov_y"] * options.conic_fov]
        theirs = ["health", "relative_x", "relative_y", *["shield"] * self.shield_bits_enemy]
        for side, parts, count in (("ally", ours, self.n_agents), ("enemy", theirs, self.n_enemies)):
            for unit in range(count):
                names += [f"{side}_{part}_{unit}" for part in parts] + self._bit_names(f"{side}_unit_type_{unit}")
        last = range(self.n_actions * options.state_last_action)
        names += [f"ally_last_action_{a}_action_{n}" for a in range(self.n_agents) for n in last]
        return names + ["timestep"] * options.state_timestep_number

    @property
    def _drawn_names(self) -> list[str]:
        known = self._battles.features.options
        return ["attack_prob"] * (known.attack_told is not None) + ["health_level"] * (known.health_told is not None)

    def _bit_names(self, what: str) -> list[str]:
        return [f"{what}_bit_{bit}" for bit in range(self.unit_type_bits)]

    def get_stats(self) -> dict[str, float]:
        return {
            "battles_won": self.battles_won,
            "battles_game": self.battles_game,
            "battles_draw": self.timeouts,
            "win_rate": self.battles_won / max(self.battles_game, 1),
            "timeouts": self.timeouts,
            "restarts": self.force_restarts,
        }
