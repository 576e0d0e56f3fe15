"""A drop-in for SMACv2's `StarCraftCapabilityEnvWrapper`: its arguments and methods, without the game.

    from s2rm_data.starcraft.envs import StarCraftCapabilityEnvWrapper                   # instead of smacv2.env

And `install_as`, which puts this package's classes under the names of SMAC's or SMACv2's, for code that imports those.
"""

# N agents, A actions

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from s2rm_data.core.errors import UsageError, did_you_mean
from s2rm_data.starcraft import scenarios
from s2rm_data.starcraft.api.protocol import race_of
from s2rm_data.starcraft.envs.capabilities import MAPS
from s2rm_data.starcraft.envs.smac import StarCraft2Env
from s2rm_data.starcraft.envs.smac_queries import MultiAgentEnv, map_type


class CannotResetException(Exception):  # noqa: N818 (SMACv2's name)
    """SMACv2's, for a game that does not create its units; the engine does."""


class StarCraftCapabilityEnvWrapper(MultiAgentEnv):
    """SMACv2's wrapper: every battle has armies and places of its own.

    `map_name` is `10gen_protoss`, `10gen_terran` or `10gen_zerg`; the armies' sizes are in `capability_config`. The
    other arguments are those of `StarCraft2Env`, with SMACv2's defaults: `use_unit_ranges` is off, and `prob_obs_enemy`
    is 1, which has the agents forget as SMACv2's do; with None they observe all they see."""

    def __init__(self, *, capability_config: dict[str, Any], map_name: str = "10gen_terran", **options: Any) -> None:
        if map_name not in MAPS:
            maps = f"SMACv2's maps are {', '.join(MAPS)}; for another, take StarCraft2Env"
            raise UsageError(f"map_name is {map_name!r}{did_you_mean(str(map_name), MAPS, maps)}")
        self.distribution_config = capability_config
        options = {"use_unit_ranges": False, "prob_obs_enemy": 1.0, **options}
        self.env = StarCraft2Env(map_name=map_name, capability_config=capability_config, **options)

    def __getattr__(self, name: str) -> Any:
        if name == "env":  # not made yet
            raise AttributeError(name)
        return getattr(self.env, name)


_PACKAGES = ("smac", "smacv2")


def install_as(package: str) -> None:
    """Put this package's classes under the names of `smac` or `smacv2`, for code that imports those in its own files:
    `smac.env.StarCraft2Env` is then ours. Call it before that code is imported, in every process that is not forked."""
    if package not in _PACKAGES:
        raise UsageError(f"install_as got {package!r}{did_you_mean(str(package), _PACKAGES, 'give smac or smacv2')}")
    loaded = sys.modules.get(package)
    if loaded is not None and not isinstance(loaded.__spec__, _Spec):
        raise UsageError(f"{package} is imported already; call install_as({package!r}) before anything imports it")
    also = (StarCraftCapabilityEnvWrapper, CannotResetException) if package == "smacv2" else ()
    classes = {kind.__name__: kind for kind in (MultiAgentEnv, StarCraft2Env, *also)}
    registry = {name: _parameters(name) for name in [*scenarios.SMAC, *(MAPS if package == "smacv2" else ())]}
    maps = {
        "map_param_registry": registry,
        "get_smac_map_registry": lambda: registry,
        "get_map_params": registry.__getitem__,
    }
    contents: dict[str, dict[str, Any]] = {"": {}, "env": classes, "env.multiagentenv": classes}
    contents |= {f"env.starcraft2{name}": classes for name in ("", ".starcraft2", ".wrapper")}
    contents |= {f"env.starcraft2.maps{name}": maps for name in ("", ".smac_maps")}
    for path, names in contents.items():
        _install(f"{package}.{path}".rstrip("."), names)


class _Spec(ModuleSpec):
    """By which a module of `install_as` is known again."""


def _install(name: str, names: dict[str, Any]) -> None:
    module = ModuleType(name, "Classes of s2rm_data under another package's name.")
    module.__spec__, module.__path__ = _Spec(name, None, is_package=True), []
    vars(module).update(names)
    sys.modules[name] = module
    parent, _, own = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], own, module)


def _parameters(name: str) -> dict[str, Any]:
    """A map's entry in SMAC's registry; SMACv2's maps have ten units there, until a config says otherwise."""
    scenario = scenarios.parse(f"{name}_10_vs_10" if name in MAPS else name)
    sides = set(scenario.agent_types), set(scenario.enemy_types)
    return {
        "n_agents": scenario.agent_count,
        "n_enemies": scenario.enemy_count,
        "limit": scenario.limit_steps,
        "a_race": "TZP"[race_of(min(sides[0])) - 1],
        "b_race": "TZP"[race_of(min(sides[1])) - 1],
        "unit_type_bits": 0 if len(sides[0]) == len(sides[1]) == 1 else len(sides[0] | sides[1]),
        "map_type": map_type(scenario),
    }
