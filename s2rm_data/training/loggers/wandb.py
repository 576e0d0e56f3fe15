"""Weights & Biases. Files go to `wandb/` in the run folder, unless W&B's own variables (WANDB_DIR) say otherwise."""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from s2rm_data.core.optional import needed
from s2rm_data.training.listener import Logger
from s2rm_data.training.schedule import BUDGET


class Wandb(Logger):
    """A resumed run continues the one that W&B has under the same folder and config; offline, it is a second part."""

    _run: Any = None

    def open(self, name: str, config: dict[str, Any], step: int) -> None:
        wandb = needed("wandb", "wandb", "--log wandb")
        lasting = sorted((key, value) for key, value in config.items() if key not in (*BUDGET, "total_steps"))
        identity = hashlib.sha256(f"{self.folder.resolve()} {name} {lasting}".encode()).hexdigest()[:16]
        how: dict[str, Any] = {} if "WANDB_DIR" in os.environ else {"dir": str(self.folder)}
        how |= {"project": os.environ.get("WANDB_PROJECT", "s2rm-data"), "name": name, "id": identity, "config": config}
        how["resume"] = None if os.environ.get("WANDB_MODE") == "offline" else "allow"  # offline, it would only warn
        self._run = wandb.init(settings=wandb.Settings(silent=True), **how)
        self._run.define_metric("*", step_metric="step")  # after a kill, steps come twice

    def write(self, step: int, values: Mapping[str, float]) -> None:
        self._run.log({**values, "step": step})

    def picture(self, path: Path, step: int, animation: bytes) -> None:
        import wandb

        self._run.log({"predictions": wandb.Image(str(path)), "step": step})

    def stop(self) -> None:
        if self._run is not None:
            self._run.finish()
            self._run = None


LOGGER = Wandb
