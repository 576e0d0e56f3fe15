"""The intent: what a writer is about to do that takes several steps, written down before the first of them.

    _intent.json    {"replace": {"bballs/train": "bballs/train.new"}, "names": ["bballs/val/zarr.json", ...], ...}

One commit, the replacement of the root, decides: before it, new objects are written under names that are listed here;
after it, the objects that it dropped are removed, which are listed too. So whoever finds an intent removes each name
that is listed and is not in the manifest; nothing else is ever removed from a store. Groups that replace others are
made under names of their own first. From the intent on it is only finished forward: their objects are moved to their
place, and then the root says so."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from s2rm_data.core.check import exactly, expect, table
from s2rm_data.core.errors import ConflictError, DamagedStoreError, DiskError
from s2rm_data.core.write import PARTIAL
from s2rm_data.store.documents import MOST_GROUPS, MOST_OBJECTS, MOST_ROOT_BYTES, is_group_name, sealed, unsealed
from s2rm_data.store.layout import META
from s2rm_data.store.manifest import REPLACEMENT, Manifest, naming
from s2rm_data.store.place import Place

INTENT = "_intent.json"
FORMAT = "s2rm-data intent 1"


@dataclass(frozen=True, kw_only=True)
class Intent:
    """`replace`: group -> the group that is to take its place. `names`: objects that go, or came, with the work."""

    names: frozenset[str]
    replace: Mapping[str, str] = field(default_factory=dict)

    def begin(self, place: Place) -> None:
        document = {"format": FORMAT, "names": sorted(self.names), "replace": dict(self.replace)}
        place.write_whole(INTENT, [sealed(document)], replace=True)
        place.sync([INTENT])

    def finish(self, place: Place, manifest: Manifest) -> None:
        """After the commit, or in its place where nothing came of the work."""
        if pending := {group: new for group, new in self.replace.items() if new in manifest.groups}:
            _move(place, manifest, pending)
        dropped = {name for name in self.names if name not in manifest.objects}
        # Where there is no lock, the root may be another one, or not have been kept.
        if dropped and not place.locks and place.read_root(MOST_ROOT_BYTES)[0] != manifest.to_bytes():
            other = f"{place.path / META}: is not what was committed; nothing was removed"
            raise DiskError(f"{other}. Run the same command again")
        place.remove(sorted(dropped | {name + PARTIAL for name in dropped} if place.locks else dropped))
        place.remove([INTENT])

    def concerns(self, group: str) -> bool:
        return any(name.startswith(f"{group}/") for name in self.names)


def read_intent(place: Place) -> Intent | None:
    """What a writer that was stopped has left to be finished."""
    if not place.has(INTENT):
        return None
    data = place.read(INTENT, MOST_ROOT_BYTES)
    with naming(place.path / INTENT):
        fields = exactly("the intent", unsealed(data, "; remove it"), ("format", "names", "replace"))
        expect(fields["format"] == FORMAT, "is of another version of this program")
        names, groups = fields["names"], table("groups", fields["replace"], MOST_GROUPS, is_group_name)
        expect(isinstance(names, list) and len(names) <= 4 * MOST_OBJECTS, "its names are not a list")
        expect(all(map(_is_object_name, names)), "it names what is no object of a store")
        expect(all(new == group + REPLACEMENT for group, new in groups.items()), "it replaces what it cannot")
    return Intent(names=frozenset(names), replace=groups)


def _is_object_name(name: object) -> bool:
    """Whether a name can be that of an object below a group; the folder of an array may lie one deeper than a group."""
    folder, _, last = name.rpartition("/") if isinstance(name, str) else ("", "", "")
    named = last == META or re.fullmatch(r"c\.\d{1,9}(\.0)*", last)
    return bool(named) and all(map(is_group_name, folder.split("/")))


def _move(place: Place, manifest: Manifest, pending: Mapping[str, str]) -> None:
    pairs = {
        name: group + name.removeprefix(new)
        for group, new in pending.items()
        for name in manifest.objects
        if name.startswith(f"{new}/")
    }
    if not place.locks and place.read_root(MOST_ROOT_BYTES)[1] != manifest.version:
        other = f"another process has committed to {place.path} since this one began; what it committed is safe"
        raise ConflictError(f"{other}. Run the same command again when it has finished")
    place.move(pairs)
    for source, target in pairs.items():  # before the commit: a server may have said that it holds what it does not
        with place.opened(target) as opened:
            if opened.nbytes != manifest.objects[source].nbytes:
                raise DamagedStoreError(f"{place.path / target}: has {opened.nbytes} bytes after it was moved")
    for group, new in pending.items():
        manifest.rename_group(new, group)
    manifest.save(place)


def names_of(manifest: Manifest, groups: Iterable[str]) -> frozenset[str]:
    chosen = tuple(f"{group}/" for group in groups)
    return frozenset(name for name in manifest.objects if name.startswith(chosen))
