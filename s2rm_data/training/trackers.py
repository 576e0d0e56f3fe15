"""Runs told to Weights & Biases or MLflow while they train, beside the log and TensorBoard that every run writes.

A tracker listens to a run like the display of the command line does. It keeps what it writes in the run folder
(`wandb/`, `mlflow/`) unless the service's own environment variables say otherwise, such as WANDB_MODE=offline or
MLFLOW_TRACKING_URI. What a run learns does not depend on it.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from s2rm_data.errors import UsageError, did_you_mean, missing_component
from s2rm_data.training.budget import BUDGET
from s2rm_data.training.listener import Listener, Pace, Validated

PROJECT = "s2rm-data"  # of W&B, and experiment of MLflow


class Tracker(Listener):
    """`folder` is that of the command, `config` what the run is made of, as JSON. A command of several seeds starts
    several runs, one after the other, each by its name."""

    def __init__(self, folder: Path, config: Mapping[str, Any]) -> None:
        self._folder, self._config = folder, config

    def start(self, name: str, step: int, total: int) -> None:
        self.stop()
        named = name if name == self._folder.name else f"{self._folder.name}-{name}"
        self._open(named, {**self._config, "total_steps": total})

    def pace(self, pace: Pace) -> None:
        speed = {"train/steps_per_second": pace.steps_per_second}
        self._write(pace.step, {"train/loss": pace.loss, "train/lr": pace.lr, **speed})

    def validated(self, result: Validated) -> None:
        scores = {f"validation/{name}": value for name, value in result.scores.items()}
        self._write(result.step, {"validation/loss": result.loss, **scores})

    def finish(self, summary: dict[str, Any]) -> None:
        for group, found in summary["held_out"].items():
            scores = {f"{group}/{name}": value for name, value in found.items() if isinstance(value, float)}
            self._write(summary["steps"], scores)
        self.stop()

    def _open(self, name: str, config: dict[str, Any]) -> None:
        raise NotImplementedError

    def _write(self, step: int, values: Mapping[str, float]) -> None:
        raise NotImplementedError


class WandbTracker(Tracker):
    """A resumed run, longer or not, continues the one that W&B has under the same folder and config; offline, it is a
    second part."""

    _run: Any = None

    def _open(self, name: str, config: dict[str, Any]) -> None:
        try:
            import wandb
        except ModuleNotFoundError:
            raise missing_component("wandb", "wandb", "--log wandb") from None
        lasting = sorted((key, value) for key, value in config.items() if key not in (*BUDGET, "total_steps"))
        identity = hashlib.sha256(f"{self._folder.resolve()} {name} {lasting}".encode()).hexdigest()[:16]
        place: dict[str, Any] = {} if "WANDB_DIR" in os.environ else {"dir": str(self._folder)}
        self._run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", PROJECT),
            name=name,
            id=identity,
            resume=None if os.environ.get("WANDB_MODE") == "offline" else "allow",  # offline, it would only warn
            config=config,
            settings=wandb.Settings(silent=True),
            **place,
        )
        self._run.define_metric("*", step_metric="step")  # after a kill, steps come twice

    def _write(self, step: int, values: Mapping[str, float]) -> None:
        self._run.log({**values, "step": step})

    def picture(self, path: Path, step: int) -> None:
        import wandb

        self._run.log({"predictions": wandb.Image(str(path)), "step": step})

    def stop(self) -> None:
        if self._run is not None:
            self._run.finish()
            self._run = None


class MlflowTracker(Tracker):
    _client: Any = None
    _id: str | None = None

    def _open(self, name: str, config: dict[str, Any]) -> None:
        # MLflow refuses folders by default since 3.x, because it no longer develops them; they still work.
        os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
        try:
            from mlflow.tracking import MlflowClient
        except ModuleNotFoundError:
            raise missing_component("mlflow", "mlflow", "--log mlflow") from None
        where = os.environ.get("MLFLOW_TRACKING_URI") or (self._folder / "mlflow").resolve().as_uri()
        self._client = MlflowClient(tracking_uri=where)
        found = self._client.get_experiment_by_name(PROJECT)
        experiment = found.experiment_id if found else self._client.create_experiment(PROJECT)
        self._id = self._client.create_run(experiment, run_name=name).info.run_id
        for key, value in config.items():
            self._client.log_param(self._id, key, str(value)[:500])

    def _write(self, step: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            if math.isfinite(value):
                self._client.log_metric(self._id, name, value, step=step)

    def picture(self, path: Path, step: int) -> None:
        self._client.log_artifact(self._id, str(path), "predictions")

    def stop(self) -> None:
        if self._id is not None:
            self._client.set_terminated(self._id)
            self._id = None


TRACKERS: dict[str, Callable[[Path, Mapping[str, Any]], Tracker]] = {"wandb": WandbTracker, "mlflow": MlflowTracker}


class _Several:
    """Listeners one after the other; what the first one answers is the answer."""

    def __init__(self, listeners: Sequence[Listener]) -> None:
        self._listeners = listeners

    def __getattr__(self, name: str) -> Callable[..., Any]:
        methods = [getattr(listener, name) for listener in self._listeners]

        def call_all(*arguments: Any) -> Any:
            first, *_ = [method(*arguments) for method in methods]
            return first

        return call_all


def check_trackers(names: Sequence[str]) -> None:
    for name in names:
        if name not in TRACKERS:
            choices = f"the choices are {' and '.join(TRACKERS)}"
            raise UsageError(f"--log {name} is not known{did_you_mean(name, TRACKERS, choices)}")


def tracked(listener: Listener, names: Sequence[str], folder: Path, config: Mapping[str, Any]) -> Listener:
    """The listener, and the trackers named beside it."""
    check_trackers(names)
    if not names:
        return listener
    return cast(Listener, _Several([listener, *(TRACKERS[name](folder, config) for name in dict.fromkeys(names))]))
