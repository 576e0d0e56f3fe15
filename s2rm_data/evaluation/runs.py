"""Run folders of s2rm-train, as evaluation reads them: `config.json` and `best.safetensors`.

Runs that differ in nothing but their seed are one entry of every table, with an interval over the seeds."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from s2rm_data.core.addresses import StorePath, store_path
from s2rm_data.core.errors import DamagedStoreError, S2RMWarning, UsageError
from s2rm_data.core.optional import needed
from s2rm_data.core.registry import MODELS, WORLDS
from s2rm_data.learning.batch import Batch, Prediction
from s2rm_data.models import WorldModel
from s2rm_data.training.folder import CONFIG, is_run, no_run, read_run, run_folder

WEIGHTS, SUMMARY = "best.safetensors", "summary.json"  # the second is written when training is finished
# Fields of a run's config that say nothing about what is learned.
_NOT_COMPARED = ("seed", "device", "threads", "precision", "compile", "loader_threads", "checkpoint_seconds")
_STEP_BY_STEP = ("initial_state", "encode", "unroll", "step", "decode")


@dataclass(frozen=True, kw_only=True)
class Look:
    """How a model appears in tables and figures; `colour` empty: one that is still free. `reference`: among what others
    are compared with. `in_paper`: the paper's number of this model is one of it."""

    title: str
    colour: str = ""
    marker: str = "x"
    place: int = 100
    oracle: bool = False
    reference: bool = False
    in_paper: bool = True


def look_of(model_name: str, *, skip: bool = False) -> Look:
    """What the model's class says of itself; a model that is not registered has its name only. With a skip that its
    class does not have by itself it is another model, with a name of its own."""
    if model_name not in MODELS.names():
        return Look(title=model_name)
    model: type[WorldModel] = MODELS.load(model_name)
    shown: dict[str, Any] = {"title": model.title or model_name, "colour": model.colour, "marker": model.marker}
    look = Look(**shown, place=model.place, oracle=model.needs_next_views, reference=model.is_reference)
    varied = skip and not model.is_reference
    return replace(look, title=f"{look.title} + skip", colour="", in_paper=False) if varied else look


@dataclass(frozen=True, kw_only=True)
class Run:
    """`name` is unique among the runs evaluated together; `label` is shared by the seeds of one config. `facts` is what
    the run keeps of each of its groups (`Learning.describe`). A model from outside has no folder."""

    name: str
    label: str
    model_name: str
    world: str
    model: Any
    look: Look
    seed: int = 0
    path: Path | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    store: str = ""

    @property
    def groups(self) -> tuple[str, ...]:
        """It was trained and validated on these."""
        return tuple(self.facts)

    @property
    def rolls_out(self) -> bool:
        """It can be stepped, and does not read the frame it predicts."""
        return not self.look.oracle and all(callable(getattr(self.model, name, None)) for name in _STEP_BY_STEP)

    @property
    def parameters(self) -> int | None:
        modules = isinstance(self.model, torch.nn.Module)
        return sum(p.numel() for p in self.model.parameters()) if modules else None

    @property
    def view(self) -> dict[str, Any]:
        """How its images are drawn, in worlds that draw them as a model wants them; nothing if it does not say."""
        fields = WORLDS.load(self.world).learning().view_fields if isinstance(self.model, WorldModel) else ()
        return {name: getattr(self.model.config, name) for name in fields}

    def predict(self, batch: Batch) -> Prediction:
        return self.model(batch)

    def to_json(self) -> dict[str, Any]:
        chosen = ("preset", "steps", "epochs", "batch_size", "window", "lr", "schedule")
        training = {key: self.config[key] for key in chosen if key in self.config}
        named = {"label": self.label, "model": self.model_name, "task": self.world, "seed": self.seed}
        made = {"parameters": self.parameters, "groups": list(self.groups), "training": training}
        return {**named, **made, "path": "" if self.path is None else str(self.path)}


def view_of(runs: Sequence[Run]) -> dict[str, Any]:
    """The one view of all runs that say how their images are drawn."""
    drawn = [run for run in runs if run.view]
    for run in drawn[1:]:
        if run.view != drawn[0].view:
            one, other = (", ".join(f"{k} {v}" for k, v in r.view.items()) for r in (drawn[0], run))
            raise UsageError(
                f"{drawn[0].name} sees images of {one}, {run.name} of {other}: they have unlike targets, and scores "
                "that cannot be compared; evaluate them apart, each with an --out of its own"
            )
    return drawn[0].view if drawn else {}


def find_runs(paths: Iterable[Path]) -> list[Path]:
    """Run folders: those given, and the finished ones directly in a folder that is not one (as `runs/NAME/seeds`). Runs
    that come with the package are found by their names."""
    found: list[Path] = []
    for path in map(run_folder, paths):
        is_one = (path / CONFIG).exists()
        if not is_one and not path.is_dir():
            raise no_run(path)
        if not (inside := [path] if is_one else _finished(path)):
            raise UsageError(f"{path} is not a run folder of s2rm-train, nor are there any in it: no {CONFIG}")
        found += inside
    return list(dict.fromkeys(found))


def _finished(folder: Path) -> list[Path]:
    """The finished runs in a folder; where there are none, those that have weights. The others are named."""
    found = [child for child in sorted(folder.iterdir()) if (child / CONFIG).exists() or is_run(child)]
    with_weights = [child for child in found if (child / CONFIG).exists() and (child / WEIGHTS).exists()]
    finished = [child for child in with_weights if (child / SUMMARY).exists()]
    ready = finished or with_weights
    left_out = [str(child) for child in found if child not in ready]
    if ready and left_out:
        why = "their training is not finished" if finished else "their training has not come to a first validation"
        warnings.warn(f"left out, because {why}: {', '.join(left_out)}", S2RMWarning, stacklevel=2)
    if ready and not finished:
        warnings.warn(f"no run in {folder} is finished; what is there so far is evaluated", S2RMWarning, stacklevel=2)
    return ready or [child for child in found if (child / CONFIG).exists()]


def load_runs(paths: Iterable[Path], device: torch.device | str = "cpu") -> list[Run]:
    folders = find_runs(paths)
    documents = [read_run(folder) for folder in folders]
    configs = [document["config"] for document in documents]
    models = [_load_model(folder, config) for folder, config in zip(folders, configs, strict=True)]
    looks = [look_of(c["model"], skip=model.config.skip) for c, model in zip(configs, models, strict=True)]
    labels, names = _labels(documents, folders, looks), _names(folders)
    stores = [document.get("store", {}) for document in documents]
    return [
        Run(
            name=names[n],
            label=labels[n],
            path=folders[n],
            model_name=config["model"],
            world=config["task"],
            seed=int(config.get("seed", 0)),
            config=config,
            facts=stores[n].get("groups", {}),
            store=str(stores[n].get("path", "")),
            model=models[n].to(device).eval(),
            look=looks[n],
        )
        for n, config in enumerate(configs)
    ]


def store_of(runs: Iterable[Run]) -> StorePath:
    """The store that the runs were trained on, if it is the same for all and still there."""
    paths = dict.fromkeys(run.store for run in runs)
    if len(paths) > 1:
        raise UsageError(f"the runs were trained on different stores ({', '.join(paths)}); name one with --store")
    path = next(iter(paths), "")
    found = store_path(path) if path else None
    if found is None or (isinstance(found, Path) and not found.exists()):
        gone = f"the store the runs were trained on ({path or 'unknown'}) is not there"
        raise UsageError(f"{gone}; name one with --store")
    return found


def _load_model(folder: Path, config: dict[str, Any]) -> WorldModel:
    load_model = needed("s2rm_data.models.weights", "train", "reading weights").load_model
    path = folder / WEIGHTS
    if not path.exists():
        why = f"has no weights ({WEIGHTS}): its training has not reached its first validation"
        raise UsageError(f"{folder} {why}; resume it with s2rm-train --resume --out {folder}")
    MODELS.require(config["model"])
    WORLDS.require(config["task"])
    try:
        model: WorldModel = load_model(path)
    except (RuntimeError, UsageError) as error:
        raise DamagedStoreError(f"{path} cannot be used as weights: {error}") from None
    if model.config.task != config["task"]:
        raise DamagedStoreError(f"{path} holds a model of the world {model.config.task}, not {config['task']}")
    return model


def _labels(documents: Sequence[dict[str, Any]], folders: Sequence[Path], looks: Sequence[Look]) -> list[str]:
    """The model's title; followed by the folder's name where runs of one model differ in more than the seed."""
    compared = [{k: v for k, v in d["config"].items() if k not in _NOT_COMPARED} for d in documents]
    groups = [sorted(document.get("store", {}).get("groups", {})) for document in documents]
    kinds = [json.dumps(kind, sort_keys=True) for kind in zip(compared, groups, strict=True)]
    shown = [(look.title, document["config"]["task"]) for look, document in zip(looks, documents, strict=True)]
    labels = []
    for kind, own, folder in zip(kinds, shown, folders, strict=True):
        same_model = {k for k, other in zip(kinds, shown, strict=True) if other == own}
        first = folders[kinds.index(kind)]
        labels.append(own[0] if len(same_model) == 1 else f"{own[0]} ({first.name or folder.resolve().name})")
    return labels


def _names(folders: Sequence[Path]) -> list[str]:
    """The shortest ends of the paths that tell the folders apart."""
    resolved = [folder.resolve() for folder in folders]
    for depth in range(1, max(len(path.parts) for path in resolved) + 1):
        names = ["/".join(path.parts[-depth:]) for path in resolved]
        if len(set(names)) == len(names):
            return names
    return [str(path) for path in resolved]
