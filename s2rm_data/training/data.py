"""The data of a run: which groups of the store it trains and validates on, and their identity, kept with the run."""

import contextlib
import hashlib
import math
from collections.abc import Collection, Mapping
from typing import Any

from s2rm_data.core.check import canonical_json
from s2rm_data.core.errors import ConflictError, UsageError
from s2rm_data.core.registry import MODELS, WORLDS
from s2rm_data.learning import Source, groups_of, open_groups, tasks_of
from s2rm_data.learning.world_learning import Learning
from s2rm_data.making.world import World
from s2rm_data.models import build
from s2rm_data.store import Store
from s2rm_data.training.config import TrainConfig

CACHE_SHARE = 0.9  # of a cache that training sequences may take; validation needs some


def choose_task(store: Store, asked: str | None, options: Collection[str] = ()) -> str:
    """The world asked for, else the first in the store whose training has the options named."""
    found = tasks_of(store)
    if asked is None:
        having = {name: {option.name for option in WORLDS.load(name).training_options} for name in found}
        found = [name for name in found if having[name] >= set(options)] or found
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


def training_option_names() -> set[str]:
    """Of all worlds that can be loaded."""
    names: set[str] = set()
    for task in WORLDS.names():
        with contextlib.suppress(UsageError):
            names |= {option.name for option in WORLDS.load(task).training_options}
    return names


def choose_groups(store: Store, task: str, options: Mapping[str, Any]) -> list[str] | None:
    """Paths of the groups, finished or not, that the world's training options choose; None if nothing was chosen."""
    world: World = WORLDS.load(task)
    known = {option.name: option for option in world.training_options}
    for name in options:
        if name not in known:
            flags = ", ".join(option.flag for option in known.values()) or "none"
            raise UsageError(
                f"--{name.replace('_', '-')} is not an option of training on {task}, which has of its own: {flags}; "
                "leave it out, or choose another --task"
            )
    if not options:
        return None
    paths = [path for path in (*store.groups, *store.unfinished) if path.startswith(f"{task}/")]
    return list(world.choose_groups(paths, {name: known[name].value(value) for name, value in options.items()}))


def chosen_of(store: Store, task: str, split: str, chosen: Collection[str] | None) -> list[str]:
    """The finished groups of a split; with `chosen`, those that are among them."""
    found = groups_of(store, task, split)
    if chosen is None:
        return found
    kept = [path for path in found if path in chosen]
    if not kept:
        raise UsageError(
            f"{store.path} has no finished split {split!r} among the groups chosen ({', '.join(chosen)}); "
            f"it has {', '.join(found)}"
        )
    return kept


def shortest_steps(store: Store, task: str, chosen: Collection[str] | None = None) -> int:
    """Steps of the shortest training sequences there are."""
    learning: Learning = WORLDS.load(task).learning()
    return min(learning.sequence_steps(store[path]) for path in chosen_of(store, task, "train", chosen))


def _size(nbytes: float) -> str:
    """As --cache-size takes it, rounded up."""
    factor, unit = next((f, u) for f, u in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (0.0, "B")) if nbytes >= f)
    return f"{math.ceil(100 * nbytes / factor) / 100:g}{unit}" if factor else f"{math.ceil(nbytes)}B"


class RunData:
    """Sources of batches, opened when they are first needed; `chosen` groups, None for all of the world's."""

    def __init__(self, store: Store, config: TrainConfig, chosen: Collection[str] | None = None) -> None:
        self.store, self.config = store, config
        self.learning: Learning = WORLDS.load(config.task).learning()
        self.train_groups = chosen_of(store, config.task, "train", chosen)
        self.validation_groups = chosen_of(store, config.task, "val", chosen)
        self.next_views = MODELS.load(config.model).needs_next_views
        self.train = self._open(self.train_groups, steps=config.window)
        self.validation = self._open(self.validation_groups, limit=config.validation_sequences)

    def _open(self, groups: list[str], **options: Any) -> Source:
        options |= {name: getattr(self.config, name) for name in self.learning.source_fields}
        fields = self.config.model_fields
        options |= {name: fields[name] for name in self.learning.view_fields if name in fields}
        options |= {"next_views": self.next_views, "device": self.config.device}
        return open_groups([self.store[path] for path in groups], **options)

    def shuffle_shards(self) -> int | None:
        """How many shards to shuffle together so that two such blocks fit into the cache; None if everything fits."""
        cached, cache = self.train.cached, self.store.cache
        if cached is None or cache is None:
            return None
        sizes = cached.unit_nbytes
        others = self.validation.cached
        if sum(sizes) + (sum(others.unit_nbytes) if others else 0) <= cache.most_bytes:
            return None
        shards = int(CACHE_SHARE * cache.most_bytes / 2) // max(sizes)
        if shards < 1:
            raise UsageError(
                f"a cache of {_size(cache.most_bytes)} is too small for training on {self.store.path}; give "
                f"--cache-size at least {_size(2 * max(sizes) / CACHE_SHARE)}, which holds two shards"
            )
        return min(shards, len(sizes))

    def windows(self, steps: int) -> Source:
        """The training data in windows of another length."""
        return self._open(self.train_groups, steps=steps)

    def held_out(self) -> dict[str, Source]:
        """All of the validation data, and what else the world names."""
        limit = self.config.held_out_sequences
        sources = {"val": self._open(self.validation_groups, limit=limit)}
        more = self.learning.held_out(self.store, self.train_groups)
        return sources | {name: self._open(groups, limit=limit) for name, groups in more.items()}

    def model_fields(self, config: TrainConfig) -> dict[str, Any]:
        """Fields of the model's config: the data's shapes, then those of the run."""
        image, arena = list(self.train.image_size), list(self.train.arena_size)
        shapes: dict[str, Any] = {"image_size": image, "arena_size": arena, "cell_size": self.train.cell_size}
        if (given := config.model_fields.get("image_size")) is not None and list(given) != image:
            raise UsageError(f"image_size is {given}, but the images of {self.store.path} are {image}")
        return dict(sorted({**shapes, **config.model_fields}.items()))  # in one order, also in a run that is resumed

    def build_model(self) -> Any:
        return build(self.config.model, self.config.task, **self.model_fields(self.config))

    def identity(self) -> dict[str, Any]:
        """Path of the store, and what its groups were made from: equal settings mean equal content."""
        groups = {}
        for path in (*self.train_groups, *self.validation_groups):
            group = self.store[path]
            digest = hashlib.sha256(canonical_json(group.settings)).hexdigest()
            groups[path] = {"count": len(group), "settings_sha256": digest, **self.learning.describe(group)}
        return {"path": str(self.store.path.absolute()), "groups": groups}

    def check_identity(self, saved: dict[str, Any]) -> None:
        mine = self.identity()["groups"]
        for path, entry in saved["groups"].items():
            if any(mine.get(path, {}).get(key) != entry.get(key) for key in ("count", "settings_sha256")):
                raise ConflictError(
                    f"{self.store.path}: {path} is not what the run was started on; give --store the same data, "
                    "or start another run with another --out"
                )
