"""Removing and renaming groups, with the promises of every other write: one commit decides, and a kill loses nothing.

Removing commits a manifest without the group first, and then removes its objects. Renaming writes every object under
its new name, commits a manifest that has the new names only, and removes the old ones. The intent lists all of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from s2rm_data.core.addresses import Url
from s2rm_data.core.errors import ConflictError, UsageError
from s2rm_data.store.documents import Entry, is_group_name, json_bytes, parents
from s2rm_data.store.existing import check_links
from s2rm_data.store.intent import Intent, names_of
from s2rm_data.store.layout import META, group_document
from s2rm_data.store.manifest import REPLACEMENT, check_object, read_object
from s2rm_data.store.reader import Store, unknown_group
from s2rm_data.store.writer import StoreWriter, foreign

PathLike = str | os.PathLike[str] | Url


@contextmanager
def _writer(path: PathLike) -> Iterator[StoreWriter]:
    Store(path)  # which must be there: a writer would make one
    with StoreWriter(path) as writer:
        yield writer


def remove_group(path: PathLike, group: str) -> int:
    """Remove a group, finished or not; returns the bytes that are free now."""
    group = group.strip("/")
    with _writer(path) as writer:
        nbytes = writer.manifest.group_nbytes(group)
        if group in writer.manifest.groups:
            check_links(writer.place, group)
            writer.drop(group)
        elif not (writer.finished and writer.finished.concerns(group)):  # a kill came after the commit
            raise unknown_group(str(writer.place.path), group, sorted(writer.manifest.groups))
    return nbytes


def rename_group(path: PathLike, group: str, name: str) -> None:
    """Give a finished group another name; its bytes stay the same."""
    group, name = group.strip("/"), name.strip("/")
    with _writer(path) as writer:
        manifest, place = writer.manifest, writer.place
        finished = writer.finished and writer.finished.concerns(group)
        if finished and group not in manifest.groups and name in manifest.groups:
            return  # a kill came after the commit
        _check_rename(writer, group, name)
        new = {f"{name}/{old.removeprefix(group + '/')}": old for old in names_of(manifest, [group])}
        above = {f"{path}/{META}" for path in parents(name)} - set(manifest.objects)
        for target in sorted({*new, *above}):
            if place.has(target):
                raise foreign(place, target, "name")
        intent = Intent(names=names_of(manifest, [group]) | {*new, *above, *(f"{p}/{META}" for p in parents(group))})
        intent.begin(place)
        for target, source in new.items():
            place.write_whole(target, [read_object(place, source, manifest.objects[source])])
        empty = json_bytes(group_document({}))
        for document in above:
            place.write_whole(document, [empty])
            manifest.objects[document] = Entry.of([empty])
            manifest.documents[document.removesuffix(f"/{META}")] = group_document({})
        place.sync({*new, *above})
        for target, source in new.items():  # a server may have said that it holds what it does not
            check_object(place, target, manifest.objects[source])
        manifest.rename_group(group, name)
        manifest.save(place)
        intent.finish(place, manifest)


def _check_rename(writer: StoreWriter, group: str, name: str) -> None:
    manifest, where = writer.manifest, writer.place.path
    if group not in manifest.groups:
        raise unknown_group(str(where), group, sorted(manifest.groups))
    if manifest.missing_shards(group):
        raise UsageError(f"{group} is unfinished; finish it with the command that makes it, or remove it")
    if not is_group_name(name):
        raise UsageError(f"{name!r} cannot be the name of a group; use letters, digits, _, - and .")
    if name.endswith(REPLACEMENT):
        raise UsageError(f"{name} is the name of a group that is to replace another one; choose another name")
    world, last = group.partition("/")[0], name.rpartition("/")[2]
    if name.partition("/")[0] != world or "/" not in name:
        not_in = f"{name} is not a name in {world}, the world of {group}"
        raise UsageError(f"{not_in}; write it with the world, as in {world}/{last}")
    for other in manifest.groups:
        if other == name:
            raise ConflictError(f"{where} has a group {name} already; remove it first, or choose another name")
        if other.startswith(name + "/") or name.startswith(other + "/"):
            raise ConflictError(f"{where}: {name} and {other}, which is there, cannot hold each other")
    check_links(writer.place, name)
