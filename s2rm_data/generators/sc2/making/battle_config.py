"""What decides the content of a StarCraft II split, apart from seed and split.

The arrays of a StarCraft II split: name, type, dimensions and meaning of each."""

# T steps, U units of both sides, N agents = the first units, A actions, I radial cells, J angular cells

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Any

from s2rm_data.core.check import between, check_fields, from_json, one_of
from s2rm_data.core.errors import UsageError
from s2rm_data.core.schema import ArraySpec
from s2rm_data.starcraft import codes, rules, scenarios
from s2rm_data.starcraft.engine import ENEMY_ORDERS
from s2rm_data.starcraft.features import Features
from s2rm_data.starcraft.formation import formation
from s2rm_data.starcraft.polar import PolarGrid
from s2rm_data.starcraft.policies import find
from s2rm_data.starcraft.rollout import members_of
from s2rm_data.starcraft.units import UNIT_TYPES

# The paper's scenarios. Its text trains on 2s5z, its figure shows 2s3z: both are made.
PAPER_TRAINING = ("1c3s5z", "3s5z", "2s3z", "2s5z")
PAPER_TEST = ("1s2z", "5s3z")


@dataclass(frozen=True, kw_only=True)
class EpisodeConfig:
    """What a stored episode looks like, whoever played it: all that reading it takes.

    radial, angular, radius: see `polar.PolarGrid`."""

    scenario: str
    steps: Annotated[int, between(1, 1000)] = 100  # paper: trajectories of 100 steps
    # Assumption: the paper leaves resolution and radius open; how often a unit is lost: docs/fidelity/data.md.
    radial: int = 16
    angular: int = 48
    radius: float = 9.0  # SMAC's sight range

    def __post_init__(self) -> None:
        check_fields(self)
        armies = scenarios.parse(self.scenario)
        if armies.generated is None:
            formation(armies)  # refuses an army that does not fit the map
        _ = self.grid  # refuses what cannot be an image

    @property
    def grid(self) -> PolarGrid:
        return PolarGrid(radial=self.radial, angular=self.angular, radius=self.radius)


@dataclass(frozen=True, kw_only=True)
class Sc2Config(EpisodeConfig):
    """epsilon None becomes the policy's own share of random actions. `enemy_order`: see `engine.ENEMY_ORDERS`."""

    policy: str = "mixed"  # a name, or the path of a trained policy's file
    epsilon: Annotated[float, between(0, 1)] | None = None  # share of random actions
    enemy_order: Annotated[str, one_of(*ENEMY_ORDERS)] = "random"

    def __post_init__(self) -> None:
        super().__post_init__()
        policy = find(self.policy)
        if policy.network is not None:
            armies = scenarios.parse(self.scenario)
            if armies.generated is not None:
                raise UsageError(
                    f"policy {self.policy!r} is a trained one, which knows one pair of armies; scenario "
                    f"{self.scenario!r} draws new ones for every episode: take a script"
                )
            sizes = Features(formation(armies).unit_type, armies.agent_count)
            policy.network.require(self.scenario, sizes.observation_size, sizes.agents, sizes.actions)
        if self.epsilon is None:
            object.__setattr__(self, "epsilon", policy.epsilon)


def episode_config(stored: dict[str, Any]) -> EpisodeConfig:
    """What episodes with this stored config look like. Who played them need not be there: neither a trained policy's
    file nor a plug-in."""
    players = {field.name for field in fields(Sc2Config)} - {field.name for field in fields(EpisodeConfig)}
    return from_json(EpisodeConfig, {name: value for name, value in stored.items() if name not in players})


_STATE_CHUNK = 16  # episodes compressed together where one is small
_LEVEL = 1  # zstd 3 takes longer and saves little here
# What numbers in the arrays stand for
CODES: dict[str, list[Any]] = {
    "outcomes": list(codes.OUTCOMES),
    "orders": list(codes.ORDERS),
    "unit_types": ["nothing", *(unit.name for unit in UNIT_TYPES.values())],
    "action_categories": list(codes.ACTION_CATEGORIES),
    "category_channels": list(codes.CATEGORY_CHANNELS),
    "hecs_channels": list(codes.HECS_CHANNELS),
    "hecs_divisors": list(codes.HECS_DIVISORS),
}
# name, type, dimensions after the episode's, meaning, unit
_IMAGE = "time agent radial angular"
_ARRAYS = (
    ("categories", "uint8", f"{_IMAGE} category_channel",
     "polar images of whole numbers: friendly marker; unit type, 0 where nobody is; action category", ""),
    ("hecs", "float32", f"{_IMAGE} hecs_channel",
     "polar images of health, energy, cooldown (loops) and shield, each over its divisor", ""),
    ("height", "uint8", _IMAGE,
     "polar image of the terrain height, the game's byte; value * scale is SMAC's height 0..1", ""),
    ("agent_position", "float32", "time agent coordinate", "x east, y north", "map units"),
    ("agent_alive", "bool", "time agent", "mask of images, positions and actions", ""),
    ("action", "int16", "time agent", "SMAC's number of the action chosen on this observation", ""),
    ("action_target", "int16", "time agent", "slot of the unit aimed at, -1 for nobody", ""),
    ("available", "bool", "time agent choice", "SMAC's mask of available actions", ""),
    ("reward", "float32", "time", "SMAC's shaped reward of the step that follows the observation", ""),
    ("unit_type", "uint8", "unit", "agents first, then enemies; see `unit_types` of categories", ""),
    ("unit_position", "float32", "time unit coordinate", "x east, y north", "map units"),
    ("unit_health", "float32", "time unit", "0 for the dead", "hit points"),
    ("unit_shield", "float32", "time unit", "shield", "hit points"),
    ("unit_energy", "float32", "time unit", "energy", ""),
    ("unit_cooldown", "float32", "time unit", "time until the weapon is ready", "loops"),
    ("unit_alive", "bool", "time unit", "alive at this step", ""),
    ("unit_order", "uint8", "time unit",
     "what the unit is doing: an agent by its action, an enemy by its standing order", ""),
    ("unit_target", "int16", "time unit", "slot of the unit aimed at, -1 for nobody", ""),
    ("unit_goal", "float32", "time unit coordinate", "where an enemy's attack-move leads", "map units"),
    ("length", "int16", "", "steps that were played; all after them is blank", "steps"),
    ("outcome", "uint8", "", f"index into {', '.join(codes.OUTCOMES)}", ""),
    ("policy", "uint8", "", "index into {policies}", ""),
    ("seed", "uint64", "", "from it and the config alone the episode can be made again", ""),
    ("units_in_view", "int32", "", "living units within an agent's view, summed over agents and steps", ""),
    ("units_lost", "int32", "", "of those, how many lost their cell of the image to another unit", ""),
)  # fmt: skip
_ATTRIBUTES: dict[str, dict[str, Any]] = {
    "categories": {
        "channels": CODES["category_channels"],
        "unit_types": CODES["unit_types"],
        "action_categories": CODES["action_categories"],
    },
    "hecs": {"channels": CODES["hecs_channels"], "divisors": CODES["hecs_divisors"]},
    "height": {"scale": 1 / 255},
    "unit_order": {"orders": CODES["orders"]},
}


def array_specs(config: Sc2Config) -> tuple[ArraySpec, ...]:
    armies = scenarios.parse(config.scenario)
    size = {
        "time": config.steps,
        "agent": armies.agent_count,
        "unit": armies.agent_count + armies.enemy_count,
        "choice": rules.action_count(armies.agent_count, armies.enemy_count, heals=armies.heals),
        "radial": config.radial,
        "angular": config.angular,
        "coordinate": 2,
        "category_channel": len(codes.CATEGORY_CHANNELS),
        "hecs_channel": len(codes.HECS_CHANNELS),
    }
    policies = ", ".join(members_of(config.policy))
    return tuple(
        ArraySpec(
            name=name,
            dtype=dtype,
            shape=tuple(size[dim] for dim in dims.split()),
            dims=tuple(dims.split()),
            description=meaning.format(policies=policies),
            units=unit,
            chunk=1 if dims.startswith(_IMAGE) else _STATE_CHUNK,
            level=_LEVEL,
            attributes=_ATTRIBUTES.get(name, {}),
        )
        for name, dtype, dims, meaning, unit in _ARRAYS
    )
