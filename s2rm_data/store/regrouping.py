"""Removing and renaming groups, with the promises of every other write: one commit decides, and a kill loses nothing.

Removing commits a manifest without the group first, and then removes its objects. Renaming writes every object under
its new name, commits a manifest that has the new names only, and removes the old ones. What a kill leaves is objects
that no manifest names; the same command, run again, removes them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from s2rm_data.addresses import Url
from s2rm_data.errors import ConflictError, UsageError
from s2rm_data.store.conflicts import check_links
from s2rm_data.store.documents import is_group_name, json_bytes
from s2rm_data.store.layout import META, group_document, parents
from s2rm_data.store.manifest import Entry, read_object
from s2rm_data.store.reader import Store, unknown_group
from s2rm_data.store.writer import StoreWriter

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
        manifest, place = writer.manifest, writer.place
        nbytes = manifest.group_nbytes(group)
        before = set(manifest.objects)
        if group in manifest.groups:
            check_links(place, group)
            manifest.drop_group(group)
            manifest.save(place)
        elif not _is_left_over(writer, group):
            raise unknown_group(str(place.path), group, sorted(manifest.groups))
        _clear(writer, group, before - set(manifest.objects))
    return nbytes


def rename_group(path: PathLike, group: str, name: str) -> None:
    """Give a finished group another name; its bytes stay the same."""
    group, name = group.strip("/"), name.strip("/")
    with _writer(path) as writer:
        manifest, place = writer.manifest, writer.place
        if group not in manifest.groups and name in manifest.groups and _is_left_over(writer, group):
            _clear(writer, group, set())  # a kill came after the commit
            return
        _check_rename(writer, group, name)
        place.clear(name, manifest.version)  # a kill came before the commit
        before = set(manifest.objects)
        new = {
            f"{name}/{old.removeprefix(group + '/')}": entry
            for old, entry in manifest.objects.items()
            if old.startswith(group + "/")
        }
        for target, entry in new.items():
            source = f"{group}/{target.removeprefix(name + '/')}"
            place.write_whole(target, [read_object(place, source, entry)])
        empty = json_bytes(group_document({}))
        for document in (f"{above}/{META}" for above in parents(name)):
            if document not in manifest.objects:
                place.write_whole(document, [empty])
                new[document] = Entry.of([empty])
        place.sync(new)
        _exchange(writer, group, name, new)
        _clear(writer, group, before - set(manifest.objects))


def _check_rename(writer: StoreWriter, group: str, name: str) -> None:
    manifest, where = writer.manifest, writer.place.path
    if group not in manifest.groups:
        raise unknown_group(str(where), group, sorted(manifest.groups))
    if manifest.missing_shards(group):
        raise UsageError(f"{group} is unfinished; finish it with the command that makes it, or remove it")
    if not is_group_name(name):
        raise UsageError(f"{name!r} cannot be the name of a group; use letters, digits, _, - and .")
    world, last = group.partition("/")[0], name.rpartition("/")[2]
    if name.partition("/")[0] != world or "/" not in name:
        raise UsageError(
            f"{name} is not a name in {world}, the world of {group}; write it with the world, as in {world}/{last}"
        )
    for other in manifest.groups:
        if other == name:
            raise ConflictError(f"{where} has a group {name} already; remove it first, or choose another name")
        if other.startswith(name + "/") or name.startswith(other + "/"):
            raise ConflictError(f"{where}: {name} and {other}, which is there, cannot hold each other")
    check_links(writer.place, name)


def _exchange(writer: StoreWriter, group: str, name: str, new: dict[str, Entry]) -> None:
    """The commit."""
    manifest = writer.manifest
    renamed = {
        name + path.removeprefix(group): document
        for path, document in manifest.documents.items()
        if path == group or path.startswith(group + "/")
    }
    entry = manifest.groups[group]
    manifest.drop_group(group)
    manifest.groups[name] = entry
    manifest.objects |= new
    manifest.documents |= renamed | {path: group_document({}) for path in parents(name)}
    manifest.save(writer.place)


def _is_left_over(writer: StoreWriter, group: str) -> bool:
    """Whether there are objects below a group's path, none of which the manifest names."""
    names = list(writer.place.names(group)) if is_group_name(group) and writer.place.has(group) else []
    return bool(names) and not any(name in writer.manifest.objects for name in names)


def _clear(writer: StoreWriter, group: str, dropped: set[str]) -> None:
    """Remove what the manifest no longer names, and folders that are empty then."""
    writer.place.clear(group, writer.manifest.version)
    writer.place.remove(sorted((name for name in dropped if not name.startswith(group + "/")), reverse=True))
