"""Checking a store from end to end: every object the manifest names, byte for byte."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from s2rm_data.core.addresses import Url, store_path
from s2rm_data.core.errors import DamagedStoreError
from s2rm_data.core.progress import Progress
from s2rm_data.core.write import PARTIAL, is_being_written
from s2rm_data.store.documents import parents
from s2rm_data.store.existing import has_parts
from s2rm_data.store.layout import META, PARTS
from s2rm_data.store.manifest import check_object
from s2rm_data.store.parts import PartPlan
from s2rm_data.store.reader import Group, Store


@dataclass
class Report:
    """`problems` name the object first. `digests`: group -> content digest, of those without a problem. `notes` say
    what is not finished because somebody is writing it."""

    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    digests: dict[str, str] = field(default_factory=dict)
    objects: int = 0
    nbytes: int = 0


def verify(path: str | os.PathLike[str] | Url, progress: Progress | None = None) -> Report:
    """All problems of a store, not only the first; none means that every byte is as it was committed, and that every
    document and chunk says what it can. What a writer at work has not committed yet is no problem."""
    report = Report()
    written = _is_being_written(path)
    try:
        store = Store(path)
    except DamagedStoreError as error:
        report.problems.append(str(error))
        return report
    _check_objects(store, report, progress or Progress())
    for group in sorted(store.manifest.groups):
        if not any(problem.startswith(f"{store.path / group}/") for problem in report.problems):
            _check_content(store, group, report)
    try:
        unexpected = _unexpected(store)
    except DamagedStoreError as error:
        unexpected = [str(error)]
    if written or _is_being_written(path):
        _forgive(store, report)
    else:
        report.problems += unexpected
        for group, (there, total) in store.unfinished.items():
            report.problems.append(f"{store.path / group}: is unfinished, {there} of {total} shards are there")
    return report


def _is_being_written(path: str | os.PathLike[str] | Url) -> bool:
    return isinstance(where := store_path(path), Path) and is_being_written(where)


def _forgive(store: Store, report: Report) -> None:
    """Beside a writer: groups that it has replaced or removed since are not looked at, others may be unfinished."""
    now = Store(store.place).manifest
    for group in store.manifest.groups:
        names = [name for name in store.manifest.objects if name.startswith(f"{group}/")]
        if any(now.objects.get(name) != store.manifest.objects[name] for name in names):
            report.notes.append(f"{store.path / group}: has been replaced meanwhile; verify it when that is done")
            report.problems = [p for p in report.problems if not p.startswith(f"{store.path / group}/")]
            report.digests.pop(group, None)
    for group, (there, total) in store.unfinished.items():
        report.notes.append(f"{store.path / group}: is being made, {there} of {total} shards were there")


def _check_objects(store: Store, report: Report, progress: Progress) -> None:
    entries = store.manifest.objects
    progress.start(sum(entry.nbytes for entry in entries.values()), 0)
    for name, entry in sorted(entries.items()):
        try:
            check_object(store.place, name, entry)
        except DamagedStoreError as error:
            report.problems.append(str(error))
        report.objects += 1
        report.nbytes += entry.nbytes
        progress.advance(entry.nbytes)


def _check_content(store: Store, path: str, report: Report) -> None:
    """Whether the documents of a group make sense, and if it is complete, its chunks too."""
    try:
        group = Group(store, path)
        if path in store.unfinished:
            return
        for array in group.arrays.values():
            array.check()
        report.digests[path] = group.content_digest()
    except DamagedStoreError as error:
        report.problems.append(str(error))


def _unexpected(store: Store) -> list[str]:
    """Objects that another Zarr reader would take for data although nobody committed them; parts wait to be."""
    groups = PartPlan.read(store.place).groups if has_parts(store.place) else ()
    known = {*store.manifest.objects, META, *(f"{path}/{META}" for group in groups for path in parents(group))}
    waiting = (f"{PARTS}/", *(f"{group}/" for group in groups))
    there = ((name, name.rpartition("/")[2]) for name in store.place.names() if not name.startswith(waiting))
    data = {name for name, last in there if last == META or (last.startswith("c.") and not last.endswith(PARTIAL))}
    return [f"{store.path / name}: is not in the manifest" for name in sorted(data - known)]
