"""Parts of a store, made by processes that know nothing of each other, and what they are parts of.

    _parts/plan.json              the splits that all parts make together, in how many parts, and with which programs
    _parts/00003-of-00020.json    what part 3 has made: object name -> size and SHA-256

Both are sealed. A part writes its shards under their final names and then says so in its own document; `merge` enters
all of them in the root at once and removes `_parts`. Two runs of one part write the same bytes and need no lock."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import zstandard

import s2rm_data
from s2rm_data.core.check import exactly, expect, table, text, whole
from s2rm_data.core.errors import ConflictError, UsageError
from s2rm_data.store import documents
from s2rm_data.store.documents import Entry, is_group_name, parents
from s2rm_data.store.layout import PARTS, PLAN, ArrayLayout, GroupEntry, SplitSpec, consolidated, group_document
from s2rm_data.store.manifest import naming
from s2rm_data.store.place import Place

FORMAT = "s2rm-data parts 1"
MOST_PARTS = 99_999


@dataclass(frozen=True)
class Part:
    """Part `number` of `count`, counted from 1."""

    number: int
    count: int

    def __post_init__(self) -> None:
        if not 1 <= self.count <= MOST_PARTS:
            raise UsageError(f"{self.count} parts are not possible; allowed are 1 to {MOST_PARTS}")
        if not 1 <= self.number <= self.count:
            raise UsageError(f"there is no part {self.number} of {self.count}; parts count from 1 to {self.count}")

    @classmethod
    def parse(cls, given: Any) -> Part:
        """`3/20`."""
        match = re.fullmatch(r"\s*(\d{1,5})\s*/\s*(\d{1,5})\s*", str(given))
        if match is None:
            raise UsageError(f"{given!r} is not a part; write 3/20 for the third of twenty")
        return cls(int(match[1]), int(match[2]))

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    @property
    def name(self) -> str:
        return f"{PARTS}/{self.number:05}-of-{self.count:05}.json"

    def of(self, amount: int) -> range:
        """Its share of `amount` things in order; shares differ by one at most."""
        return range((self.number - 1) * amount // self.count, self.number * amount // self.count)


@dataclass(frozen=True, kw_only=True)
class PartPlan:
    """What all parts together make: the metadata documents of every group and array, by path."""

    count: int
    groups: tuple[str, ...]
    documents: Mapping[str, dict[str, Any]]
    package: str
    zstandard: str

    @classmethod
    def of(cls, specs: Sequence[SplitSpec], count: int) -> PartPlan:
        return cls(
            count=count,
            groups=tuple(spec.group for spec in specs),
            documents={path: document for spec in specs for path, document in spec.documents().items()},
            package=f"s2rm-data {s2rm_data.__version__}",
            zstandard=f"{zstandard.__version__} ({'.'.join(map(str, zstandard.ZSTD_VERSION))})",
        )

    def to_bytes(self) -> bytes:
        fields = {name: getattr(self, name) for name in ("count", "documents", "package", "zstandard")}
        return documents.sealed({"format": FORMAT, **fields, "groups": list(self.groups)})

    @classmethod
    def read(cls, place: Place) -> PartPlan:
        name = f"{PARTS}/{PLAN}"
        data = place.read(name, documents.MOST_ROOT_BYTES)
        with naming(place.path / name):
            fields = exactly("the plan", _fields(data), ("count", "documents", "groups", "package", "zstandard"))
            groups = fields["groups"]
            expect(isinstance(groups, list) and 1 <= len(groups) <= documents.MOST_GROUPS, "its groups are not a list")
            expect(len(set(map(str, groups))) == len(groups) and all(map(is_group_name, groups)), "groups are wrong")
            found = cls(
                count=whole(1, MOST_PARTS).fitted("number of parts", fields["count"]),
                groups=tuple(groups),
                documents=table("documents", fields["documents"], 10**6, is_group_name),
                package=text.fitted("its package version", fields["package"]),
                zstandard=text.fitted("its zstandard version", fields["zstandard"]),
            )
            _ = found.entries
        return found

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.to_bytes()).hexdigest()

    @cached_property
    def entries(self) -> dict[str, GroupEntry]:
        """What the manifest is to say of each group; raises `Misfit` for documents that cannot be."""
        found: dict[str, GroupEntry] = {}
        known: set[str] = set()
        for group in self.groups:
            expect(isinstance(self.documents.get(group), dict), f"there is no document of {group}")
            documents.check_group(self.documents[group])
            listed = self.documents[group]["consolidated_metadata"]
            listed = listed.get("metadata") if isinstance(listed, dict) else None
            arrays = {name: self.documents.get(f"{group}/{name}") for name in table(group, listed, 200, lambda n: True)}
            expect(bool(arrays) and all(isinstance(d, dict) for d in arrays.values()), f"{group} has no arrays")
            expect(consolidated(arrays) == self.documents[group]["consolidated_metadata"], f"{group} does not fit")  # type: ignore[arg-type]
            layouts = {name: ArrayLayout.from_document(f"{group}/{name}", d) for name, d in arrays.items() if d}
            shards = {layout.shards for layout in layouts.values()}
            expect(len(shards) == 1, f"arrays of {group} have unlike numbers of shards")
            found[group] = GroupEntry(arrays={n: len(lay.shape) for n, lay in layouts.items()}, shards=shards.pop())
            known |= {group, *(f"{group}/{name}" for name in arrays)}
        expect(known == {*self.documents}, "it has documents of nothing")
        return found

    @cached_property
    def shards(self) -> list[tuple[str, int]]:
        """(group, index) of every shard, in the order in which parts share them."""
        return [(group, index) for group in self.groups for index in range(self.entries[group].shards)]

    def objects_of(self, part: Part) -> set[str]:
        chosen = (self.shards[i] for i in part.of(len(self.shards)))
        return {name for group, index in chosen for name in self.entries[group].shard_objects(group, index)}

    def all_documents(self) -> dict[str, dict[str, Any]]:
        """Those of the groups above, too; in an order in which each comes after those above it."""
        above = {path: group_document({}) for group in self.groups for path in parents(group)}
        return dict(sorted({**above, **self.documents}.items()))

    def check_same(self, other: PartPlan, place: Place) -> None:
        """Refuse a part of something else than what the parts that are there are parts of."""
        fields = ("count", "parts"), ("package", "package version"), ("zstandard", "zstandard version")
        pairs = ((what, getattr(other, name), getattr(self, name)) for name, what in fields)
        changes = [f"{what}: {there} there, {here} here" for what, there, here in pairs if there != here][:1]
        if not changes and self.groups != other.groups:
            changes = [f"groups {', '.join(other.groups)} there, {', '.join(self.groups)} here"]
        changes = changes or [
            f"{path}: {key}: {there} there, {here} here"
            for path, document in self.documents.items()
            for key, there, here in documents.differences(other.documents.get(path, {}), document)
        ]
        if changes:
            waiting = f"{place.path} holds parts of another run, which wait to be merged: {'; '.join(changes[:3])}"
            raise ConflictError(f"{waiting}. Use the same command and versions for all parts, or another --out")


@dataclass
class PartManifest:
    """What a part has made so far. `plan` is the SHA-256 of the plan that it is a part of."""

    part: Part
    plan: str
    objects: dict[str, Entry] = field(default_factory=dict)

    def save(self, place: Place) -> None:
        fields = {"part": str(self.part), "plan": self.plan, "objects": documents.listed_objects(self.objects)}
        place.write_whole(self.part.name, [documents.sealed({"format": FORMAT, **fields})], replace=True)
        place.sync([self.part.name])

    @classmethod
    def read(cls, place: Place, part: Part, plan: PartPlan) -> PartManifest:
        data = place.read(part.name, documents.MOST_ROOT_BYTES)
        with naming(place.path / part.name):
            fields = exactly("the part", _fields(data), ("part", "plan", "objects"))
            expect(fields["part"] == str(part), f"says that it is part {fields['part']!r}")
            expect(fields["plan"] == plan.digest, "is part of another plan")
            names = plan.objects_of(part)
            objects = documents.check_objects(fields["objects"], lambda name: name in names)
        return cls(part, fields["plan"], objects)


def _fields(data: bytes) -> dict[str, Any]:
    document = documents.unsealed(data)
    expect(document.pop("format", None) == FORMAT, "is of another format, or of another version of this program")
    return document
