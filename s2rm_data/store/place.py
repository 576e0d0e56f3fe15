"""Where a store lies: a folder, a prefix of a bucket, or what a plug-in brings, with the same promises. A writer holds
a lock in a folder (`places/folder.py`); in a bucket (`places/bucket.py`) the root is replaced by compare-and-swap."""

from __future__ import annotations

import contextlib
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Self

from s2rm_data.core.addresses import StorePath, Url, place_at, store_path
from s2rm_data.core.errors import UsageError
from s2rm_data.store.layout import META

MOST_CHILDREN = 1000  # names of a folder that are looked at

Version = Any  # of a root document; what `replace_root` compares. None where there is no root yet


class OpenObject(ABC):
    """One object, opened for reading. `stamp` changes when it is replaced or written to."""

    nbytes: int
    stamp: Hashable

    def pieces(self) -> Iterator[bytes]:
        """All of it, in order."""
        return self.ranges([(0, self.nbytes)])

    @abstractmethod
    def ranges(self, spans: Sequence[tuple[int, int]]) -> Iterator[bytes]:
        """The bytes of each (offset, size)."""


class OpenBytes(OpenObject):
    def __init__(self, data: bytes) -> None:
        self._data, self.nbytes, self.stamp = data, len(data), hash(data)

    def ranges(self, spans: Sequence[tuple[int, int]]) -> Iterator[bytes]:
        return (self._data[offset : offset + size] for offset, size in spans)


class Place(ABC):
    """Names are relative, separated by `/`. What is missing or unreadable raises an error that names the object.

    `schemes` begin the addresses of such places, as in scheme://NAME; `form` is what follows. Root documents are not to
    be replaced more often than every `least_commit_seconds`. `locks`: `writing` keeps others out; elsewhere
    `replace_root` has to notice them."""

    schemes: ClassVar[tuple[str, ...]] = ()
    form: ClassVar[str] = "NAME"
    least_commit_seconds: ClassVar[float] = 0.0
    locks: ClassVar[bool] = False
    root: ClassVar[str] = META  # name of the root document
    path: StorePath

    def __init__(self, path: StorePath) -> None:
        self.path = path

    @classmethod
    def at(cls, path: StorePath) -> Self:
        return cls(path)

    # -- reading

    @abstractmethod
    def read(self, name: str, most_bytes: int) -> bytes:
        """All bytes of an object; one of more than `most_bytes` is refused unread."""

    @abstractmethod
    def names(self, folder: str = "") -> Iterator[str]:
        """Names of all objects below a folder."""

    def opened(self, name: str) -> AbstractContextManager[OpenObject]:
        return contextlib.nullcontext(OpenBytes(self.read(name, sys.maxsize)))

    def read_root(self, most_bytes: int) -> tuple[bytes, Version]:
        return self.read(self.root, most_bytes), None

    def has(self, name: str) -> bool:
        """Whether anything has this name."""
        return any(found == name or found.startswith(f"{name}/") for found in self.names())

    def children(self, folder: str = "") -> list[str]:
        """First names of what lies directly in a folder, sorted; not more than a thousand."""
        below = f"{folder}/" if folder else ""
        return sorted({name.removeprefix(below).partition("/")[0] for name in self.names(folder)})[:MOST_CHILDREN]

    def check_free(self) -> None:  # noqa: B027 - most places need nothing here
        """Refuse a place at which no store can be."""

    def check_exists(self) -> None:
        """Refuse a place at which nothing is."""
        if not self.has(self.root) and not self.children():
            raise UsageError(f"there is no store at {self.path}")

    # -- writing

    @abstractmethod
    def write_whole(self, name: str, pieces: Sequence[bytes], *, replace: bool = False) -> None:
        """Write an object. `replace`: whatever is there under its name, even if somebody has committed it."""

    @abstractmethod
    def replace_root(self, data: bytes, previous: Version) -> Version:
        """Replace the root document if it is still the `previous` one; else raise `ConflictError`."""

    @abstractmethod
    def remove(self, names: Iterable[str]) -> None: ...

    def writing(self, *, shared: bool = False) -> AbstractContextManager[None]:
        """Entered while objects are written: alone, or `shared` with others that only add objects."""
        return contextlib.nullcontext()

    def tidy(self, ours: Callable[[str], bool]) -> None:  # noqa: B027 - most places need nothing here
        """Remove what killed writers left half written of objects whose names are `ours`."""

    def write_new(self, name: str, pieces: Sequence[bytes]) -> None:
        """Write an object unless there is one."""
        if not self.has(name):  # of two at the same moment the last one wins; both compare what they find then
            self.write_whole(name, pieces)

    def sync(self, names: Iterable[str]) -> None:  # noqa: B027 - most places need nothing here
        """Make the names of objects that were written durable."""

    def move(self, pairs: Mapping[str, str]) -> None:
        """Give objects other names, in place of what has these; one that is not there has been moved before. An
        interrupt may leave both names, of which the first ones are removed later."""
        for source, target in pairs.items():
            if self.has(source):
                self.write_whole(target, [self.read(source, sys.maxsize)], replace=True)
        self.sync(pairs.values())

    def free_nbytes(self) -> int | None:
        """What can still be written here; None where that is not known."""
        return None


def place_of(path: str | os.PathLike[str] | Url | Place) -> Place:
    if isinstance(path, str | os.PathLike | Url):
        found = store_path(path)
        place: type[Place] = place_at(found)
        return place.at(found)
    return path
