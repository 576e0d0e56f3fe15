"""One part of a run, on any machine; and `merge`, which commits all parts of a run at once: the store that it leaves
is, to the byte, the one that a single process makes."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from s2rm_data.core.addresses import StorePath
from s2rm_data.core.errors import ConflictError, DamagedStoreError, UsageError
from s2rm_data.core.progress import Progress
from s2rm_data.core.schema import SplitSource
from s2rm_data.making.run import Outcome, ShardSize, Task, Workers, split_specs, worker_count
from s2rm_data.store.documents import Entry, json_bytes
from s2rm_data.store.existing import check_split, existing_manifest, has_parts
from s2rm_data.store.layout import META, PARTS, PLAN, SplitSpec
from s2rm_data.store.manifest import Manifest, check_object, is_sound
from s2rm_data.store.parts import Part, PartManifest, PartPlan
from s2rm_data.store.place import Place, place_of
from s2rm_data.store.writer import Pacer, write_objects


def generate_part(
    sources: Sequence[SplitSource],
    path: StorePath,
    part: Part,
    *,
    workers: int = 1,
    shard_size: int | ShardSize | None = None,
    progress: Progress | None = None,
) -> Outcome:
    """Make a part's shards of all splits in the store at `path`; they are committed by `merge`. What is committed there
    already, and what an interrupted run of the same part has made, is not made again."""
    workers = worker_count(workers)
    specs = split_specs(sources, shard_size)
    place = place_of(path)
    place.check_free()
    with place.writing(shared=True):
        manifest = existing_manifest(place) or Manifest()
        for spec in specs:
            check_split(place, manifest, spec)
        return _PartRun(place, manifest, specs, part).run(sources, workers, progress or Progress())


class _PartRun:
    def __init__(self, place: Place, manifest: Manifest, specs: Sequence[SplitSpec], part: Part) -> None:
        self.place, self.manifest, self.specs = place, manifest, specs
        self.plan = PartPlan.of(specs, part.count)
        if not has_parts(place):
            name = f"{PARTS}/{PLAN}"
            place.write_new(name, [self.plan.to_bytes()])  # unless another part was faster
            place.sync([name])
        self.plan.check_same(PartPlan.read(place), place)
        self.made = self._resumed(part)
        self._mutex = threading.Lock()
        self._pacer = Pacer(self._save, place.least_commit_seconds)

    def _resumed(self, part: Part) -> PartManifest:
        """What an interrupted run of this part has made and is still there."""
        objects: dict[str, Entry] = {}
        if self.place.has(part.name):
            with contextlib.suppress(DamagedStoreError):
                objects = PartManifest.read(self.place, part, self.plan).objects
        sound = {name: entry for name, entry in objects.items() if is_sound(self.place, name, entry)}
        return PartManifest(part, self.plan.digest, sound)

    def run(self, sources: Sequence[SplitSource], workers: int, progress: Progress) -> Outcome:
        shards = [(s, i) for s, spec in enumerate(self.specs) for i in range(spec.shards)]
        own = [shards[i] for i in self.made.part.of(len(shards))]
        every = [Task(self.specs[s], sources[s], i, partial(self._add, self.specs[s])) for s, i in own]
        tasks = [task for task in every if not self._has(task.spec.entry.shard_objects(task.spec.group, task.index))]
        total, made = (sum(task.sequences for task in chosen) for chosen in (every, tasks))
        progress.start(total, total - made)
        try:
            Workers(self._pacer, progress).run(tasks, workers)
        except BaseException:
            with contextlib.suppress(Exception):  # the first error is the one to tell
                self._pacer.commit()
            raise
        self._save()  # also where there was nothing to make
        nbytes = sum(entry.nbytes for entry in self.made.objects.values())
        return Outcome(made=made, found=total - made, nbytes=nbytes, groups=tuple(spec.group for spec in self.specs))

    def _has(self, names: Sequence[str]) -> bool:
        return all(name in self.made.objects or name in self.manifest.objects for name in names)

    def _add(self, spec: SplitSpec, index: int, shards: Mapping[str, Sequence[bytes]]) -> None:
        entries = write_objects(self.place, spec.shard_objects(index, shards))
        with self._mutex:
            self.made.objects.update(entries)
        self._pacer.added()

    def _save(self) -> None:
        with self._mutex:
            self.made.save(self.place)


class Merged(NamedTuple):
    """`parts` were entered; 0 if an earlier merge had done so. `objects` and `nbytes` of the merged groups."""

    parts: int
    groups: tuple[str, ...]
    objects: int
    nbytes: int


def merge(path: StorePath, *, verify: bool = False, progress: Progress | None = None) -> Merged:
    """Commit the parts in the store at `path`, all at once; `verify` reads every byte of them first."""
    place = place_of(path)
    place.check_exists()
    _check_waiting(place)
    with place.writing():
        return _Merge(place).run(verify, progress or Progress())


def _check_waiting(place: Place) -> None:
    if not has_parts(place):
        raise UsageError(f"{place.path} has no parts to merge; make them with --part 1/N ... --part N/N")


class _Merge:
    def __init__(self, place: Place) -> None:
        self._place, self._manifest = place, existing_manifest(place) or Manifest()
        _check_waiting(place)
        self._plan = PartPlan.read(place)

    def run(self, verify: bool, progress: Progress) -> Merged:
        count = 0
        if not self._is_done(self._manifest):
            try:
                entries = self._collected()
                self._check_present(entries, verify, progress)
                self._commit(entries)
                count = self._plan.count
            except (DamagedStoreError, ConflictError):
                if not self._place.has(META) or not self._is_done(found := Manifest.load(self._place)):
                    raise
                self._manifest = found  # another merge was faster
        self._place.tidy(lambda name: self._manifest.is_ours(name) or name.startswith(f"{PARTS}/"))
        self._place.remove([Part(number, self._plan.count).name for number in range(1, self._plan.count + 1)])
        self._place.remove([f"{PARTS}/{PLAN}"])
        merged = tuple(f"{group}/" for group in self._plan.groups)
        sizes = [entry.nbytes for name, entry in self._manifest.objects.items() if name.startswith(merged)]
        return Merged(parts=count, groups=self._plan.groups, objects=len(sizes), nbytes=sum(sizes))

    def _is_done(self, manifest: Manifest) -> bool:
        """Whether the root names all of it: a merge was killed after its commit, or another one was faster."""
        documents = {f"{path}/{META}": Entry.of([json_bytes(d)]) for path, d in self._plan.all_documents().items()}
        return all(manifest.objects.get(name) == entry for name, entry in documents.items()) and all(
            group in manifest.groups and not manifest.missing_shards(group) for group in self._plan.groups
        )

    def _collected(self) -> dict[str, Entry]:
        """Every shard of the plan, from the parts or from the root; what is missing is named."""
        plan, there = self._plan, {*self._place.names(PARTS)} - {f"{PARTS}/{PLAN}"}
        ending = f"-of-{plan.count:05}.json"
        if foreign := sorted(name for name in there if name.endswith(".json") and not name.endswith(ending)):
            advice = "remove it, or make all parts again"
            raise ConflictError(f"{self._place.path / foreign[0]}: is not one of {plan.count} parts; {advice}")
        entries: dict[str, Entry] = {}
        absent, problems = list[int](), list[str]()
        for number in range(1, plan.count + 1):
            part = Part(number, plan.count)
            needed = {name for name in plan.objects_of(part) if name not in self._manifest.objects}
            if part.name not in there:
                absent += [number] if needed else []
                continue
            found = PartManifest.read(self._place, part, plan).objects
            if missing := sorted(needed - {*found}):
                problems.append(f"part {part} has not made {len(missing)} of its objects yet ({missing[0]}, ...)")
            entries |= found
        if absent:
            listed = ", ".join(map(str, absent[:20])) + (", ..." if len(absent) > 20 else "")
            problems.insert(0, f"missing of {plan.count} parts: {listed}")
        if problems:
            listed = "; ".join(problems[:3]) + (f" and {len(problems) - 3} more" if len(problems) > 3 else "")
            advice = "Run these parts (again), then merge"
            raise DamagedStoreError(f"{self._place.path} cannot be merged yet: {listed}. {advice}")
        return entries

    def _check_present(self, entries: Mapping[str, Entry], verify: bool, progress: Progress) -> None:
        """Whether every object is there and has its size; with `verify`, its SHA-256."""
        progress.start(sum(entry.nbytes for entry in entries.values()), 0)
        for name, entry in sorted(entries.items()):
            if verify:
                check_object(self._place, name, entry)
            else:
                with self._place.opened(name) as opened:
                    if opened.nbytes != entry.nbytes:
                        sizes = f"has {opened.nbytes} bytes where its part made {entry.nbytes}"
                        raise DamagedStoreError(f"{self._place.path / name}: {sizes}")
            progress.advance(entry.nbytes)

    def _commit(self, entries: Mapping[str, Entry]) -> None:
        manifest, documents = self._manifest, self._plan.all_documents()
        for path, document in documents.items():
            manifest.objects |= write_objects(self._place, {f"{path}/{META}": [json_bytes(document)]})
        manifest.documents |= documents
        manifest.groups |= self._plan.entries
        manifest.objects.update(entries)
        manifest.save(self._place)
