"""Training: a config, a store and a folder become a run that can be stopped anywhere and resumed exactly."""

import importlib.util

from s2rm_data.core.errors import missing_component

for _package in ("torch", "safetensors", "tensorboard"):
    if importlib.util.find_spec(_package) is None:
        raise missing_component(_package, "train", "training")
