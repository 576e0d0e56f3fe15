"""The reproduction as a plan of shipped commands: data, a search of the learning rate, training, evaluation.

    plan = Plan(folder=Path("reproduction"), worlds={NAME: ...})
    for title, jobs in plan.stages(): ...

Every model of a world gets the same steps, batches and windows, and the same search: each learning rate of the list
once, for a quarter of the steps, with a seed that is not used again; the lowest validation loss wins, and of rates that
are level the smallest. Seeds are 0, 1, 2; none is left out of the results, unless it diverged before its first
validation. All work is in files, so that a plan that was interrupted resumes where it stopped: s2rm-data and s2rm-train
resume by themselves, and a job whose result is there is not started. What differs between worlds is in their
`Reproduction`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from s2rm_data.core.errors import DamagedStoreError, UsageError
from s2rm_data.core.read import read_regular

SEARCH_SEED = 100
DIVERGED = "diverged"  # file left in a run folder by a training that ended with exit status 7
SEARCH_PART = 4  # a search run has this part of the steps
LEVEL = 0.02  # losses of a search that differ by this share say nothing; large rates are those that fail later
MOST_BYTES = 16 << 20  # of a summary
# Sizes, each also the preset of the training, and how much is evaluated: 14 runs on all sequences would take an hour.
EVALUATED = {
    "laptop": ("--sequences", "60", "--dropped-sequences", "10", "--rollout-sequences", "10"),
    "smoke": ("--quick",),
}
SIZES = tuple(EVALUATED)


@dataclass(frozen=True, kw_only=True)
class DataCommand:
    """Options of one `s2rm-data WORLD`, and a name for what it makes."""

    name: str
    words: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class WorldSize:
    """How much of a world is made and how long each model is trained on it."""

    steps: int
    data: tuple[DataCommand, ...]


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """A world's part: `models` by name with their number of seeds, and `sizes` by name; `laptop` fits two CPU cores. A
    name such as `lstm+skip` is the model with that field set."""

    models: Mapping[str, int]
    sizes: Mapping[str, WorldSize]


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
class Plan:
    """`folder` gets everything: data.zarr, search/, runs/, results/. `worlds` take part, by name."""

    folder: Path
    worlds: Mapping[str, Reproduction]
    size: str = SIZES[0]
    rates: tuple[float, ...] = (1e-3, 3e-3, 6e-3)
    plugins: tuple[str, ...] = ()  # named with --plugin, for every command
    training_steps: int | None = None  # of every model, instead of the size's

    def __post_init__(self) -> None:
        if not self.rates:
            raise UsageError("no learning rate to search; give at least one")
        for name, part in self.worlds.items():
            if self.size not in part.sizes:
                raise UsageError(f"{name} has no size {self.size!r}; it has {', '.join(part.sizes)}")

    @property
    def store(self) -> Path:
        return self.folder / "data.zarr"

    def stages(self) -> Iterator[tuple[str, list[Job]]]:
        """(title, jobs that may run side by side), in order; later stages read what earlier ones have left."""
        yield "data", self.data_jobs()
        for world in self.worlds:
            if len(self.rates) > 1:
                yield f"{world}: search of the learning rate", self.search_jobs(world)
            yield f"{world}: training", self.training_jobs(world)
            yield f"{world}: evaluation", [self.evaluation_job(world)]

    def data_jobs(self) -> list[Job]:
        """One after the other: a store has one writer."""
        out = ("--out", str(self.store))
        return [
            Job(name=command.name, program="data", arguments=(name, *command.words, *out, *self._plugins))
            for name, part in self.worlds.items()
            for command in part.sizes[self.size].data
        ]

    def steps(self, world: str) -> int:
        return self.training_steps or self.worlds[world].sizes[self.size].steps

    def search_jobs(self, world: str) -> list[Job]:
        steps = max(1, self.steps(world) // SEARCH_PART)
        return [
            self._training(world, model, self._search_folder(world, model, rate), SEARCH_SEED, steps, rate)
            for model in self.worlds[world].models
            for rate in self.rates
        ]

    def training_jobs(self, world: str) -> list[Job]:
        """The first seed of every model, then the second: something is seen sooner."""
        models, steps = self.worlds[world].models, self.steps(world)
        points = [(model, seed) for seed in range(max(models.values())) for model in models if seed < models[model]]
        return [
            self._training(world, m, self._run_folder(world, m, seed), seed, steps, self.chosen_rate(world, m))
            for m, seed in points
        ]

    def chosen_rate(self, world: str, model: str) -> float:
        """The smallest of those whose validation loss is level with the lowest; the first until the search is over."""
        losses = {rate: self.search_loss(world, model, rate) for rate in self.rates}
        finished = {rate: loss for rate, loss in losses.items() if loss is not None}
        if len(finished) < len(losses):
            return self.rates[0]
        lowest = min(finished.values())
        return min(rate for rate, loss in finished.items() if loss <= lowest + LEVEL * abs(lowest))

    def search_loss(self, world: str, model: str, rate: float) -> float | None:
        """None while it is not known; a run that diverged leaves no summary and counts as infinitely bad."""
        folder = self._search_folder(world, model, rate)
        if (folder / DIVERGED).exists():
            return float("inf")
        summary = folder / "summary.json"
        if not summary.exists():
            return None
        try:
            return float(json.loads(read_regular(summary, MOST_BYTES))["best_validation_loss"])
        except (ValueError, TypeError, LookupError, RecursionError, OverflowError, OSError):
            cure = f"remove the folder {folder}, and the search of this rate is repeated"
            raise DamagedStoreError(f"{summary} is damaged; {cure}") from None

    def search_markdown(self, world: str) -> str:
        """The validation losses of the search as a table; those of the rates that were taken in bold."""
        from s2rm_data.evaluation.runs import look_of  # PyTorch, which a help text does not need
        from s2rm_data.evaluation.tables import markdown_line

        rows = [["validation loss in the search", *(f"{rate:g}" for rate in self.rates)]]
        rows.append(["---"] * (1 + len(self.rates)))
        for model in self.worlds[world].models:
            losses = {rate: self.search_loss(world, model, rate) for rate in self.rates}
            texts = {rate: "–" if loss is None else f"{loss:.3f}" for rate, loss in losses.items()}
            taken = self.chosen_rate(world, model)
            texts[taken] = f"**{texts[taken]}**"
            name, _, variant = model.partition("+")
            rows.append([look_of(name, skip=variant == "skip").title, *texts.values()])
        return "".join(markdown_line(row) + "\n" for row in rows)

    def evaluation_job(self, world: str) -> Job:
        models = self.worlds[world].models
        folders = [self._run_folder(world, model, seed) for model, n in models.items() for seed in range(n)]
        usable = [f for f in folders if (f / "best.safetensors").exists() or not (f / DIVERGED).exists()]
        runs = [word for folder in usable for word in ("--run", str(folder))]
        out = self.folder / "results" / world
        options = ["--store", str(self.store), "--out", str(out), "--overwrite", *EVALUATED[self.size]]
        words = (*runs, *options, *self._plugins)
        return Job(name=f"{world} results", program="eval", arguments=words, result=out / "results.json")

    @property
    def _plugins(self) -> tuple[str, ...]:
        return tuple(word for name in self.plugins for word in ("--plugin", name))

    def _search_folder(self, world: str, model: str, rate: float) -> Path:
        return self.folder / "search" / f"{world}-{model}-{rate:g}"

    def _run_folder(self, world: str, model: str, seed: int) -> Path:
        return self.folder / "runs" / world / f"{model}-{seed}"

    def _training(self, world: str, model: str, folder: Path, seed: int, steps: int, rate: float) -> Job:
        name, _, variant = model.partition("+")
        words = ["--store", self.store, "--task", world, "--model", name, "--preset", self.size]
        words += ["--set", f"{variant}=true"] if variant else []
        words += ["--steps", steps, "--lr", repr(rate), "--seed", seed, "--set", "threads=1"]
        words += ["--out", folder, "--resume", "-q"]
        title, arguments = f"{world} {model}, seed {seed}, rate {rate:g}", (*map(str, words), *self._plugins)
        return Job(name=title, program="train", arguments=arguments, result=folder / "summary.json", steps=steps)
