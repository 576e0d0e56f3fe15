"""StarCraft II battles as environments: SMAC's class, a vectorised environment, PettingZoo and Gymnasium.

    from s2rm_data.envs import StarCraft2Env, vector_env

Each name is imported when it is first used. docs/environments.md describes them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from s2rm_data.envs.parallel import SmacParallelEnv, aec_env, parallel_env
    from s2rm_data.envs.policy_files import load_policy, save_policy
    from s2rm_data.envs.smac import StarCraft2Env
    from s2rm_data.envs.smacv2 import StarCraftCapabilityEnvWrapper
    from s2rm_data.envs.vector import VectorEnv, vector_env

__all__ = [
    "SmacParallelEnv",
    "StarCraft2Env",
    "StarCraftCapabilityEnvWrapper",
    "VectorEnv",
    "aec_env",
    "load_policy",
    "parallel_env",
    "save_policy",
    "vector_env",
]

_MODULES = {
    "SmacParallelEnv": "parallel",
    "StarCraft2Env": "smac",
    "StarCraftCapabilityEnvWrapper": "smacv2",
    "VectorEnv": "vector",
    "aec_env": "parallel",
    "load_policy": "policy_files",
    "parallel_env": "parallel",
    "save_policy": "policy_files",
    "vector_env": "vector",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
