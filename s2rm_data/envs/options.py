"""The options of SMAC's environment, checked, with what only the real game has refused by name."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Annotated, Any

from s2rm_data.config import above, at_least, between, check_fields, require
from s2rm_data.errors import UsageError, did_you_mean
from s2rm_data.generators.sc2 import scenarios
from s2rm_data.generators.sc2.features import MOST_LOOKS, FeatureOptions
from s2rm_data.generators.sc2.generated import MIN_ATTACK_RANGE
from s2rm_data.generators.sc2.units import LOOPS_PER_STEP

# Arguments of SMAC's class that need StarCraft II itself, and the only values that the engine can be given.
_GAME_ONLY: dict[str, tuple[Any, ...]] = {"difficulty": ("7", 7), "game_version": (None,)}


@dataclass(frozen=True, kw_only=True)
class EnvOptions:
    """Names, meanings and defaults are those of SMAC's constructor and, from `obs_own_pos` on, of SMACv2's; `map_name`
    is any scenario of `s2rm-data sc2`.
    """

    map_name: str = "8m"
    step_mul: Annotated[int, between(1, 1000)] | None = LOOPS_PER_STEP  # game loops per step; None is SMAC's 8
    move_amount: Annotated[float, above(0, at_most=32)] = 2.0  # map units
    continuing_episode: bool = False
    obs_all_health: bool = True
    obs_own_health: bool = True
    obs_last_action: bool = False
    obs_pathing_grid: bool = False
    obs_terrain_height: bool = False
    obs_instead_of_state: bool = False
    obs_timestep_number: bool = False
    state_last_action: bool = True
    state_timestep_number: bool = False
    reward_sparse: bool = False
    reward_only_positive: bool = True
    reward_death_value: Annotated[float, at_least(0)] = 10.0
    reward_win: float = 200.0
    reward_defeat: float = 0.0
    reward_negative_scale: float = 0.5
    reward_scale: bool = True
    reward_scale_rate: Annotated[float, above(0)] = 20.0
    obs_own_pos: bool = False
    conic_fov: bool = False
    num_fov_actions: Annotated[int, between(1, MOST_LOOKS)] = 12
    use_unit_ranges: bool | None = None  # None: on in SMACv2's scenarios, off on SMAC's maps
    min_attack_range: Annotated[float, between(0, 32)] = MIN_ATTACK_RANGE

    def __post_init__(self) -> None:
        if not isinstance(self.map_name, str):
            raise UsageError(f"map_name is {self.map_name!r}; give the name of a scenario, such as '3s5z'")
        scenarios.parse(self.map_name)
        if self.step_mul is None:
            object.__setattr__(self, "step_mul", LOOPS_PER_STEP)
        check_fields(self)
        terrain = self.obs_pathing_grid or self.obs_terrain_height
        whole = not terrain or self.move_amount == int(self.move_amount)
        require(self, "move_amount", whole, "a whole number with obs_pathing_grid or obs_terrain_height")

    @property
    def features(self) -> FeatureOptions:
        names = [field.name for field in dataclasses.fields(FeatureOptions)]
        return FeatureOptions(**{name: getattr(self, name) for name in names})


NAMES = tuple(field.name for field in dataclasses.fields(EnvOptions))


def env_options(given: dict[str, Any], also: tuple[str, ...] = ()) -> EnvOptions:
    """Options from keywords; an unknown one is a `UsageError`. `also` are further names that the caller takes."""
    for name, value in given.items():
        if name in _GAME_ONLY:
            if value not in _GAME_ONLY[name]:
                raise UsageError(
                    f"{name} is {value!r}; only StarCraft II itself has other choices than {_GAME_ONLY[name][0]!r}, "
                    "the engine does not: leave it out"
                )
        elif name not in NAMES:
            known = (*NAMES, *also)
            it_has = f"it has {', '.join(known)}"
            raise UsageError(f"the environment has no option {name!r}{did_you_mean(name, known, it_has)}")
    return EnvOptions(**{name: value for name, value in given.items() if name in NAMES})
