"""Checking a store from end to end: every object the manifest names, byte for byte."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from s2rm_data.errors import DamagedStoreError
from s2rm_data.files import PARTIAL
from s2rm_data.progress import Progress
from s2rm_data.store.layout import META
from s2rm_data.store.manifest import Manifest, read_object
from s2rm_data.store.reader import Store


@dataclass
class Report:
    """`problems` name the object first. `digests`: group -> content digest, of the groups without a problem."""

    problems: list[str] = field(default_factory=list)
    digests: dict[str, str] = field(default_factory=dict)
    objects: int = 0
    nbytes: int = 0


def verify(path: Path, progress: Progress | None = None) -> Report:
    """All problems of a store, not only the first; an empty list means that every byte is as it was committed."""
    report = Report()
    try:
        store = Store(path)
    except DamagedStoreError as error:
        report.problems.append(str(error))
        return report
    _check_objects(store, report, progress or Progress())
    report.problems += _unexpected(path, store.manifest)
    for group, (there, total) in store.unfinished.items():
        report.problems.append(f"{path / group}: is unfinished, {there} of {total} shards are there")
    for group in store.groups:
        if not any(problem.startswith(f"{path / group}/") for problem in report.problems):
            _check_content(store, group, report)
    return report


def _check_objects(store: Store, report: Report, progress: Progress) -> None:
    entries = store.manifest.objects
    progress.start(sum(entry.nbytes for entry in entries.values()), 0)
    for name, entry in sorted(entries.items()):
        try:
            read_object(store.path, name, store.manifest)
        except DamagedStoreError as error:
            report.problems.append(str(error))
        report.objects += 1
        report.nbytes += entry.nbytes
        progress.advance(entry.nbytes)


def _check_content(store: Store, group: str, report: Report) -> None:
    try:
        report.digests[group] = store[group].content_digest()
    except DamagedStoreError as error:
        report.problems.append(str(error))


def _unexpected(root: Path, manifest: Manifest) -> list[str]:
    """Objects that another Zarr reader would take for data although nobody committed them."""
    known = {*manifest.objects, META}
    strays = (path for path in sorted(root.rglob("*")) if path.relative_to(root).as_posix() not in known)
    return [f"{path}: is not in the manifest" for path in strays if path.is_file() and _looks_like_data(path.name)]


def _looks_like_data(name: str) -> bool:
    return not name.endswith(PARTIAL) and (name == META or name.startswith("c."))
