"""The arrays of a StarCraft II split: name, type, dimensions and meaning of each."""

# T steps, U units of both sides, N agents = the first units, A actions, I radial cells, J angular cells

from __future__ import annotations

from s2rm_data.generators.sc2 import scenarios
from s2rm_data.generators.sc2.channels import ACTION_CATEGORIES, CATEGORY_CHANNELS, HECS_CHANNELS, HECS_DIVISORS
from s2rm_data.generators.sc2.codes import ORDERS, OUTCOMES, Action
from s2rm_data.generators.sc2.config import Sc2Config
from s2rm_data.generators.sc2.team import members_of
from s2rm_data.generators.sc2.units import UNIT_TYPES
from s2rm_data.schema import ArraySpec

_STATE_CHUNK = 16  # episodes compressed together where one is small
_LEVEL = 1  # zstd 3 takes longer and saves little here


def action_count(scenario: str) -> int:
    """A: no-op, stop, four moves, and one for each target; a healer aims at agents, all others at enemies."""
    armies = scenarios.parse(scenario)
    return Action.ATTACK + max(armies.enemy_count, armies.agent_count if armies.heals else 0)


def array_specs(config: Sc2Config) -> tuple[ArraySpec, ...]:
    return (*_images(config), *_of_agents(config), *_of_units(config), *_of_episodes(config))


def _images(config: Sc2Config) -> list[ArraySpec]:
    shape = (config.steps, scenarios.parse(config.scenario).agent_count, config.radial, config.angular)
    dims = ("time", "agent", "radial", "angular")
    return [
        ArraySpec(
            name="categories",
            dtype="uint8",
            shape=(*shape, 3),
            dims=(*dims, "category_channel"),
            description="polar images of whole numbers: friendly marker; unit type, 0 where nobody is; action category",
            level=_LEVEL,
            attributes={
                "channels": list(CATEGORY_CHANNELS),
                "unit_types": ["nothing", *(unit.name for unit in UNIT_TYPES.values())],
                "action_categories": list(ACTION_CATEGORIES),
            },
        ),
        ArraySpec(
            name="hecs",
            dtype="float32",
            shape=(*shape, 4),
            dims=(*dims, "hecs_channel"),
            description="polar images of health, energy, cooldown (loops) and shield, each over its divisor",
            level=_LEVEL,
            attributes={"channels": list(HECS_CHANNELS), "divisors": list(HECS_DIVISORS)},
        ),
        ArraySpec(
            name="height",
            dtype="uint8",
            shape=shape,
            dims=dims,
            description="polar image of the terrain height, the game's byte; value * scale is SMAC's height 0..1",
            level=_LEVEL,
            attributes={"scale": 1 / 255},
        ),
    ]


def _of_agents(config: Sc2Config) -> list[ArraySpec]:
    T, N, A = config.steps, scenarios.parse(config.scenario).agent_count, action_count(config.scenario)
    return [
        _state("agent_position", "float32", (T, N, 2), ("time", "agent", "coordinate"), "x east, y north", "map units"),
        _state("agent_alive", "bool", (T, N), ("time", "agent"), "mask of images, positions and actions"),
        _state("action", "int16", (T, N), ("time", "agent"), "SMAC's number of the action chosen on this observation"),
        _state("action_target", "int16", (T, N), ("time", "agent"), "slot of the unit aimed at, -1 for nobody"),
        _state("available", "bool", (T, N, A), ("time", "agent", "choice"), "SMAC's mask of available actions"),
        _state("reward", "float32", (T,), ("time",), "SMAC's shaped reward of the step that follows the observation"),
    ]


def _of_units(config: Sc2Config) -> list[ArraySpec]:
    armies = scenarios.parse(config.scenario)
    T, U = config.steps, armies.agent_count + armies.enemy_count
    dims = ("time", "unit")
    return [
        _state("unit_type", "uint8", (U,), ("unit",), "agents first, then enemies; see `unit_types` of categories"),
        _state("unit_position", "float32", (T, U, 2), (*dims, "coordinate"), "x east, y north", "map units"),
        _state("unit_health", "float32", (T, U), dims, "0 for the dead", "hit points"),
        _state("unit_shield", "float32", (T, U), dims, "shield", "hit points"),
        _state("unit_energy", "float32", (T, U), dims, "energy"),
        _state("unit_cooldown", "float32", (T, U), dims, "time until the weapon is ready", "loops"),
        _state("unit_alive", "bool", (T, U), dims, "alive at this step"),
        ArraySpec(
            name="unit_order",
            dtype="uint8",
            shape=(T, U),
            dims=dims,
            description="what the unit is doing: an agent by its action, an enemy by its standing order",
            chunk=_STATE_CHUNK,
            level=_LEVEL,
            attributes={"orders": list(ORDERS)},
        ),
        _state("unit_target", "int16", (T, U), dims, "slot of the unit aimed at, -1 for nobody"),
        _state(
            "unit_goal", "float32", (T, U, 2), (*dims, "coordinate"), "where an enemy's attack-move leads", "map units"
        ),
    ]


def _of_episodes(config: Sc2Config) -> list[ArraySpec]:
    return [
        _state("length", "int16", (), (), "steps that were played; all after them is blank", "steps"),
        _state("outcome", "uint8", (), (), f"index into {', '.join(OUTCOMES)}"),
        _state("policy", "uint8", (), (), f"index into {', '.join(members_of(config.policy))}"),
        _state("seed", "uint64", (), (), "from it and the config alone the episode can be made again"),
        _state("units_in_view", "int32", (), (), "living units within an agent's view, summed over agents and steps"),
        _state("units_lost", "int32", (), (), "of those, how many lost their cell of the image to another unit"),
    ]


def _state(
    name: str, dtype: str, shape: tuple[int, ...], dims: tuple[str, ...], description: str, units: str = ""
) -> ArraySpec:
    return ArraySpec(
        name=name, dtype=dtype, shape=shape, dims=dims, description=description, units=units,
        chunk=_STATE_CHUNK, level=_LEVEL,
    )  # fmt: skip
