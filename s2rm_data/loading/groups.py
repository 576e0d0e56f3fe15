"""Which groups of a store a world's split has, and opening them as a source of batches."""

from __future__ import annotations

from typing import Any

from s2rm_data.errors import UsageError, did_you_mean
from s2rm_data.learning import Source
from s2rm_data.registry import WORLDS
from s2rm_data.store import Group, Store
from s2rm_data.world import world_of


def groups_of(store: Store, task: str, split: str) -> list[str]:
    """Paths such as `WORLD/train`, or `WORLD/SCENARIO/train` for every scenario."""
    found = [path for path in store.groups if path.startswith(f"{task}/") and path.endswith(f"/{split}")]
    if found:
        return found
    for path in unfinished_groups(store, task, split):
        there, total = store.unfinished[path]
        raise UsageError(
            f"{store.path}: {path} is unfinished, {there} of {total} shards are there; "
            "run the command that makes it again to finish it"
        )
    it_has = f"it has {', '.join(store.groups) or 'nothing yet'}"
    splits = {path.rsplit("/", 1)[-1] for path in store.groups if path.startswith(f"{task}/")}
    raise UsageError(
        f"{store.path} has no split {split!r} of the world {task}{did_you_mean(split, splits, it_has)}. "
        f"Make one with: s2rm-data {task} --out {store.path}"
    )


def unfinished_groups(store: Store, task: str, split: str) -> list[str]:
    """Paths of groups that are left out because their making was interrupted."""
    return [path for path in store.unfinished if path.startswith(f"{task}/") and path.endswith(f"/{split}")]


def tasks_of(store: Store, split: str = "train") -> list[str]:
    """The worlds that have this split."""
    paths = [path for path in store.groups if path.endswith(f"/{split}")]
    return [world for world in WORLDS.names() if any(path.startswith(f"{world}/") for path in paths)]


def open_source(store: Store, task: str, split: str, **options: Any) -> Source:
    """All groups of a split together; options as for the world's `Learning.open`."""
    return open_groups([store[path] for path in groups_of(store, task, split)], **options)


def open_groups(groups: list[Group], **options: Any) -> Source:
    """Groups of one world together."""
    worlds = {world_of(group).name for group in groups}
    if len(worlds) != 1:
        raise UsageError(f"groups of different worlds cannot be loaded together: {', '.join(sorted(worlds))}")
    return world_of(groups[0]).learning().open(groups, **options)
