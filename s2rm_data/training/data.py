"""The data of a run: which groups of the store it trains and validates on, and their identity, kept with the run."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from s2rm_data.config import canonical_json
from s2rm_data.errors import ConflictError, UsageError
from s2rm_data.learning import Learning
from s2rm_data.loading import Source, groups_of, open_groups, tasks_of
from s2rm_data.models import build
from s2rm_data.registry import MODELS, WORLDS
from s2rm_data.store import Store
from s2rm_data.training.config import TrainConfig


def choose_task(store: Store, asked: str | None) -> str:
    """The world asked for, else the first that the store has."""
    found = tasks_of(store)
    if asked is None:
        if not found:
            listed = ", ".join(store.groups) or "nothing yet"
            raise UsageError(
                f"{store.path} has no training split; it has {listed}. "
                f"Make one with: s2rm-data {WORLDS.names()[0]} --out {store.path}"
            )
        return found[0]
    WORLDS.load(asked)  # refuses a name that it does not know
    if asked not in found:
        groups_of(store, asked, "train")  # says what is missing
    return asked


def shortest_steps(store: Store, task: str) -> int:
    """Steps of the shortest training sequences there are."""
    learning: Learning = WORLDS.load(task).learning()
    return min(learning.sequence_steps(store[path]) for path in groups_of(store, task, "train"))


class RunData:
    """Sources of batches, opened when they are first needed."""

    def __init__(self, store: Store, config: TrainConfig) -> None:
        self.store, self.config = store, config
        self.learning: Learning = WORLDS.load(config.task).learning()
        self.train_groups = groups_of(store, config.task, "train")
        self.validation_groups = groups_of(store, config.task, "val")
        self.next_views = MODELS.load(config.model).needs_next_views
        self.train = self._open(self.train_groups, steps=config.window)
        self.validation = self._open(self.validation_groups, limit=config.validation_sequences)

    def _open(self, groups: list[str], **options: Any) -> Source:
        options |= {name: getattr(self.config, name) for name in self.learning.source_fields}
        return open_groups(
            [self.store[path] for path in groups], next_views=self.next_views, device=self.config.device, **options
        )

    def held_out(self) -> dict[str, Source]:
        """All of the validation data, and what else the world names."""
        limit = self.config.held_out_sequences
        sources = {"val": self._open(self.validation_groups, limit=limit)}
        more = self.learning.held_out(self.store, self.train_groups)
        return sources | {name: self._open(groups, limit=limit) for name, groups in more.items()}

    def model_fields(self, config: TrainConfig) -> dict[str, Any]:
        """Fields of the model's config: the data's shapes, then those of the run."""
        shapes = {"image_size": list(self.train.image_size), "arena_size": list(self.train.arena_size)}
        for name, value in shapes.items():
            given = config.model_fields.get(name)
            if name == "image_size" and given is not None and list(given) != value:
                raise UsageError(f"image_size is {given}, but the images of {self.store.path} are {value}")
        return {**shapes, **config.model_fields}

    def build_model(self) -> Any:
        return build(self.config.model, self.config.task, **self.model_fields(self.config))

    def identity(self) -> dict[str, Any]:
        """Path of the store, and what its groups were made from: equal settings mean equal content."""
        groups = {}
        for path in (*self.train_groups, *self.validation_groups):
            group = self.store[path]
            digest = hashlib.sha256(canonical_json(group.settings)).hexdigest()
            groups[path] = {"count": len(group), "settings_sha256": digest, **self.learning.describe(group)}
        return {"path": str(Path(self.store.path).absolute()), "groups": groups}

    def check_identity(self, saved: dict[str, Any]) -> None:
        mine = self.identity()["groups"]
        for path, entry in saved["groups"].items():
            if any(mine.get(path, {}).get(key) != entry.get(key) for key in ("count", "settings_sha256")):
                raise ConflictError(
                    f"{self.store.path}: {path} is not what the run was started on; give --store the same data, "
                    "or start another run with another --out"
                )
        for path in mine:
            if path not in saved["groups"]:
                raise ConflictError(
                    f"{self.store.path} has got {path} since the run was started without it; "
                    "start another run with another --out, or give --store the data it was started on"
                )
