"""A place in one file: flat://NAME keeps all objects of a store side by side, in the folder NAME.flat."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from s2rm_data.extend import ConflictError, DamagedStoreError, Place, Version


class Flat(Place):
    schemes = ("flat",)

    def __init__(self, path: Any) -> None:
        super().__init__(path)
        self._folder = Path(f"{path.name}.flat")

    def _file(self, name: str) -> Path:
        return self._folder / quote(name, safe="")

    def read(self, name: str, most_bytes: int) -> bytes:
        if not self._file(name).exists():
            raise DamagedStoreError(f"{self.path}/{name}: is missing")
        data = self._file(name).read_bytes()
        if len(data) > most_bytes:
            raise DamagedStoreError(f"{self.path}/{name}: has {len(data)} bytes; at most {most_bytes} are allowed")
        return data

    def names(self, folder: str = "") -> Iterator[str]:
        found = [unquote(file.name) for file in self._folder.glob("*")]
        return (name for name in found if name.startswith(f"{folder}/" if folder else ""))

    def write_whole(self, name: str, pieces: Sequence[bytes], *, replace: bool = False) -> None:
        self._folder.mkdir(exist_ok=True)
        self._file(name).write_bytes(b"".join(pieces))

    def read_root(self, most_bytes: int) -> tuple[bytes, Version]:
        data = self.read(self.root, most_bytes)
        return data, data

    def replace_root(self, data: bytes, previous: Version) -> Version:
        if self.has(self.root) and self._file(self.root).read_bytes() != previous:
            raise ConflictError(f"another process is writing to {self.path}")
        self.write_whole(self.root, [data])
        return data

    def remove(self, names: Iterable[str]) -> None:
        for name in names:
            self._file(name).unlink(missing_ok=True)


PLACE = Flat
