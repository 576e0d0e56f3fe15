"""Checking a store from end to end: every object the manifest names, byte for byte."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from s2rm_data.errors import DamagedStoreError
from s2rm_data.files import PARTIAL
from s2rm_data.progress import Progress
from s2rm_data.store.layout import META
from s2rm_data.store.manifest import Manifest, check_object
from s2rm_data.store.reader import Group, Store


@dataclass
class Report:
    """`problems` name the object first. `digests`: group -> content digest, of the groups without a problem."""

    problems: list[str] = field(default_factory=list)
    digests: dict[str, str] = field(default_factory=dict)
    objects: int = 0
    nbytes: int = 0


def verify(path: str | os.PathLike[str], progress: Progress | None = None) -> Report:
    """All problems of a store, not only the first; an empty list means that every byte is as it was committed, and
    that every document and chunk says what it can.
    """
    report = Report()
    root = Path(path)
    try:
        store = Store(root)
    except DamagedStoreError as error:
        report.problems.append(str(error))
        return report
    _check_objects(store, report, progress or Progress())
    report.problems += _unexpected(root, store.manifest)
    for group, (there, total) in store.unfinished.items():
        report.problems.append(f"{root / group}: is unfinished, {there} of {total} shards are there")
    for group in sorted(store.manifest.groups):
        if not any(problem.startswith(f"{root / group}/") for problem in report.problems):
            _check_content(store, group, report)
    return report


def _check_objects(store: Store, report: Report, progress: Progress) -> None:
    entries = store.manifest.objects
    progress.start(sum(entry.nbytes for entry in entries.values()), 0)
    for name, entry in sorted(entries.items()):
        try:
            check_object(store.path, name, store.manifest)
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


def _unexpected(root: Path, manifest: Manifest) -> list[str]:
    """Objects that another Zarr reader would take for data although nobody committed them."""
    known = {*manifest.objects, META}
    found = (Path(folder) / name for folder, _, names in os.walk(root) for name in names)
    strays = sorted(path for path in found if path.relative_to(root).as_posix() not in known)
    return [f"{path}: is not in the manifest" for path in strays if path.is_file() and _looks_like_data(path.name)]


def _looks_like_data(name: str) -> bool:
    return not name.endswith(PARTIAL) and (name == META or name.startswith("c."))
