"""The reproduction as a plan of shipped commands: data, a search of the learning rate, training, evaluation.

    plan = Plan(folder=Path("reproduction"))
    for stage in plan.stages(): ...

Every model of a task gets the same steps, batches and windows, and the same search: each learning rate of the list
once, for a quarter of the steps, with a seed that is not used again; the lowest validation loss wins. Seeds are 0, 1,
2; none is left out of the results, unless it diverged before its first validation. All work is in files, so that a plan
that was interrupted goes on where it stopped: s2rm-data and s2rm-train resume by themselves, and a job whose result is
there is not started.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from s2rm_data.errors import UsageError

SEARCH_SEED = 100
DIVERGED = "diverged"  # file left in a run folder by a training that ended with exit status 7
SEARCH_PART = 4  # a search run has this part of the steps

BALL_MODELS = {"s2gru": 3, "lstm": 3, "rmc": 3, "rims": 3, "s2rmc": 1, "tto": 1}  # model: seeds
BATTLE_MODELS = {"s2gru": 1, "lstm": 1, "rmc": 1, "tto": 1}


@dataclass(frozen=True, kw_only=True)
class Job:
    """One command. `program` is a module of s2rm_data.cli; it is done when `result` exists."""

    name: str
    program: str
    arguments: tuple[str, ...]
    result: Path | None = None
    steps: int = 0  # of training, for the estimate

    @property
    def done(self) -> bool:
        return self.result is not None and self.result.exists()


@dataclass(frozen=True, kw_only=True)
class Size:
    """How large a reproduction is. The defaults fit two CPU cores."""

    train: int = 4000
    val: int = 200
    test: int = 200
    battle_train: int = 300
    battle_val: int = 30
    battle_test: int = 40
    ball_steps: int = 3000
    battle_steps: int = 1500
    battle_cells: tuple[int, int] = (8, 24)  # radial, angular: a quarter of the default's cost
    preset: str = "laptop"


SIZES = {
    "laptop": Size(),
    "smoke": Size(
        train=24, val=8, test=4, battle_train=6, battle_val=3, battle_test=2, ball_steps=6, battle_steps=6,
        preset="smoke",
    ),
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Plan:
    """`folder` gets everything: data.zarr, search/, runs/, results/."""

    folder: Path
    size: Size = field(default_factory=Size)
    tasks: tuple[str, ...] = ("bballs", "sc2")
    models: dict[str, dict[str, int]] = field(default_factory=lambda: {"bballs": BALL_MODELS, "sc2": BATTLE_MODELS})
    rates: tuple[float, ...] = (1e-3, 3e-3)
    quick_evaluation: bool = False

    def __post_init__(self) -> None:
        if not self.rates:
            raise UsageError("no learning rate to search; give at least one")

    @property
    def store(self) -> Path:
        return self.folder / "data.zarr"

    def stages(self) -> Iterator[tuple[str, list[Job]]]:
        """(title, jobs that may run side by side), in order; later stages read what earlier ones have left."""
        yield "data", self.data_jobs()
        for task in self.tasks:
            if len(self.rates) > 1:
                yield f"{task}: search of the learning rate", self.search_jobs(task)
            yield f"{task}: training", self.training_jobs(task)
            yield f"{task}: evaluation", [self.evaluation_job(task)]

    def data_jobs(self) -> list[Job]:
        """One after the other: a store has one writer."""
        size, out = self.size, ("--out", str(self.store), "-q")
        balls = ("--train", f"{size.train}", "--val", f"{size.val}", "--test", f"{size.test}")
        cells = ("--radial", f"{size.battle_cells[0]}", "--angular", f"{size.battle_cells[1]}")
        known = ("--train", f"{size.battle_train}", "--val", f"{size.battle_val}", *cells)
        unseen = ("--train", "0", "--val", "0", "--test", f"{size.battle_test}", *cells)
        jobs = []
        if "bballs" in self.tasks:
            jobs.append(Job(name="balls", program="data", arguments=("bballs", "--balls", "1-6", *balls, *out)))
        if "sc2" in self.tasks:  # the paper's scenarios
            trained = ("sc2", "--scenario", "1c3s5z,3s5z,2s5z", *known, *out)
            jobs.append(Job(name="battles to train on", program="data", arguments=trained))
            tested = ("sc2", "--scenario", "1s2z,5s3z", *unseen, *out)
            jobs.append(Job(name="battles never trained on", program="data", arguments=tested))
        return jobs

    def steps(self, task: str) -> int:
        return self.size.ball_steps if task == "bballs" else self.size.battle_steps

    def search_jobs(self, task: str) -> list[Job]:
        steps = max(1, self.steps(task) // SEARCH_PART)
        return [
            self._training(task, model, self._search_folder(task, model, rate), SEARCH_SEED, steps, rate)
            for model in self.models[task]
            for rate in self.rates
        ]

    def training_jobs(self, task: str) -> list[Job]:
        return [
            self._training(
                task, model, self._run_folder(task, model, seed), seed, self.steps(task), self.chosen_rate(task, model)
            )
            for seed in range(max(self.models[task].values()))  # the first of every model, then the second: see sooner
            for model, seeds in self.models[task].items()
            if seed < seeds
        ]

    def chosen_rate(self, task: str, model: str) -> float:
        """Of the rate with the lowest validation loss; the first while the search is not over."""
        losses = {rate: self.search_loss(task, model, rate) for rate in self.rates}
        finished = {rate: loss for rate, loss in losses.items() if loss is not None}
        return min(finished, key=lambda rate: finished[rate]) if len(finished) == len(losses) else self.rates[0]

    def search_loss(self, task: str, model: str, rate: float) -> float | None:
        """None while it is not known; a run that diverged leaves no summary and counts as infinitely bad."""
        folder = self._search_folder(task, model, rate)
        if (folder / DIVERGED).exists():
            return float("inf")
        summary = folder / "summary.json"
        if not summary.exists():
            return None
        found: dict[str, Any] = json.loads(summary.read_text())
        return float(found["best_validation_loss"])

    def evaluation_job(self, task: str) -> Job:
        folders = [self._run_folder(task, model, seed) for model, n in self.models[task].items() for seed in range(n)]
        usable = [f for f in folders if (f / "best.safetensors").exists() or not (f / DIVERGED).exists()]
        runs = [word for folder in usable for word in ("--run", str(folder))]
        out = self.folder / "results" / task
        options = ["--store", str(self.store), "--out", str(out), "--overwrite", *["--quick"] * self.quick_evaluation]
        return Job(name=f"{task} results", program="eval", arguments=(*runs, *options), result=out / "results.json")

    def _search_folder(self, task: str, model: str, rate: float) -> Path:
        return self.folder / "search" / f"{task}-{model}-{rate:g}"

    def _run_folder(self, task: str, model: str, seed: int) -> Path:
        return self.folder / "runs" / task / f"{model}-{seed}"

    def _training(self, task: str, model: str, folder: Path, seed: int, steps: int, rate: float) -> Job:
        words = ["--store", self.store, "--task", task, "--model", model, "--preset", self.size.preset]
        words += ["--steps", steps, "--lr", repr(rate), "--seed", seed, "--set", "threads=1"]
        words += ["--out", folder, "--resume", "-q"]
        return Job(
            name=f"{task} {model}, seed {seed}, rate {rate:g}",
            program="train",
            arguments=tuple(str(word) for word in words),
            result=folder / "summary.json",
            steps=steps,
        )
