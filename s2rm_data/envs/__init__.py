"""StarCraft II battles as environments: the import path that users know, for what is in `starcraft/envs/`."""

from __future__ import annotations

from typing import Any

import s2rm_data.starcraft.envs as _envs
from s2rm_data.starcraft.envs import __all__ as __all__


def __getattr__(name: str) -> Any:
    return getattr(_envs, name)


def __dir__() -> list[str]:
    return dir(_envs)
