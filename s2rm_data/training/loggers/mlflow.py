"""MLflow. Files go to `mlflow/` in the run folder, unless MLFLOW_TRACKING_URI says otherwise."""

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from s2rm_data.core.optional import needed
from s2rm_data.training.listener import Logger

EXPERIMENT = "s2rm-data"


class Mlflow(Logger):
    _client: Any = None
    _id: str | None = None

    def open(self, name: str, config: dict[str, Any], step: int) -> None:
        # MLflow refuses folders by default since 3.x, because it no longer develops them; they still work.
        os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
        tracking = needed("mlflow.tracking", "mlflow", "--log mlflow")
        where = os.environ.get("MLFLOW_TRACKING_URI") or (self.folder / "mlflow").resolve().as_uri()
        self._client = tracking.MlflowClient(tracking_uri=where)
        found = self._client.get_experiment_by_name(EXPERIMENT)
        experiment = found.experiment_id if found else self._client.create_experiment(EXPERIMENT)
        self._id = self._client.create_run(experiment, run_name=name).info.run_id
        for key, value in config.items():
            self._client.log_param(self._id, key, str(value)[:500])

    def write(self, step: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            if math.isfinite(value):
                self._client.log_metric(self._id, name, value, step=step)

    def picture(self, path: Path, step: int, animation: bytes) -> None:
        self._client.log_artifact(self._id, str(path), "predictions")

    def stop(self) -> None:
        if self._id is not None:
            self._client.set_terminated(self._id)
            self._id = None


LOGGER = Mlflow
