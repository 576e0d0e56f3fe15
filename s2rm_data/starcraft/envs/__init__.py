"""StarCraft II battles as environments: SMAC's class, a vectorised environment, PettingZoo and Gymnasium.

    from s2rm_data.starcraft.envs import StarCraft2Env, vector_env

Each name is imported when it is first used. docs/environments.md describes them."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from s2rm_data.starcraft.envs.parallel import SmacParallelEnv, aec_env, parallel_env
    from s2rm_data.starcraft.envs.smac import StarCraft2Env
    from s2rm_data.starcraft.envs.smacv2 import StarCraftCapabilityEnvWrapper, install_as
    from s2rm_data.starcraft.envs.vector import VectorEnv, vector_env
    from s2rm_data.starcraft.policies._network import load_policy, save_policy

_NAMES = {
    "envs.parallel": "SmacParallelEnv aec_env parallel_env",
    "envs.smac": "StarCraft2Env",
    "envs.smacv2": "StarCraftCapabilityEnvWrapper install_as",
    "envs.vector": "VectorEnv vector_env",
    "policies._network": "load_policy save_policy",
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}

# fmt: off
__all__ = [
    "SmacParallelEnv", "StarCraft2Env", "StarCraftCapabilityEnvWrapper", "VectorEnv", "aec_env", "install_as",
    "load_policy", "parallel_env", "save_policy", "vector_env",
]
# fmt: on


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"s2rm_data.starcraft.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
