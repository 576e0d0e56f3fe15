"""Generate, store, train on and evaluate the partially observed worlds of *Spatially Structured Recurrent Modules*.

    import s2rm_data as s2

    s2.generate("bballs", out="data.zarr", balls="1-6", train=400)
    store = s2.open("data.zarr")
    data = s2.dataset(store["bballs/train"], window=20)
    run = s2.train(store, model="s2gru", preset="laptop")
    s2.evaluate([run], store).tables["one_step"]

These names are the public interface; docs/api.md describes each. Everything else in the package may change between
versions. To import the package is cheap: each name is loaded when it is first used."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from s2rm_data.api import build_model, dataset, evaluate, generate, get, load_model, merge, open, plan, train
    from s2rm_data.api import zarr_store as zarr_store
    from s2rm_data.core.registry import load_plugin
    from s2rm_data.generators.sc2.making.recorder import Recorder
    from s2rm_data.inspection.world_inspection import preview
    from s2rm_data.learning.batch import Batch
    from s2rm_data.starcraft.battle import Battle
    from s2rm_data.starcraft.envs import StarCraft2Env, vector_env
    from s2rm_data.store import Store, verify

__version__ = "0.2.0"

# fmt: off
__all__ = [
    "Batch", "Battle", "Recorder", "StarCraft2Env", "Store", "build_model", "dataset", "evaluate", "generate",
    "get", "load_model", "load_plugin", "merge", "open", "plan", "preview", "train", "vector_env", "verify",
    "zarr_store",
]
# fmt: on

_MODULES = {
    "Batch": "learning.batch",
    "Battle": "starcraft.battle",
    "Recorder": "generators.sc2.making.recorder",
    "StarCraft2Env": "envs",
    "Store": "store",
    "load_plugin": "core.registry",
    "preview": "inspection.world_inspection",
    "vector_env": "envs",
    "verify": "store",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"{__name__}.{_MODULES.get(name, 'api')}")
    value = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
