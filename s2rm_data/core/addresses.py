"""Where a store lies: a path of this machine, or an address such as that of a cloud's bucket."""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from s2rm_data.core.errors import UsageError
from s2rm_data.core.registry import PLACES


@dataclass(frozen=True)
class Url:
    """The address of a store in a bucket, or of an object in it; joined with `/` like a path."""

    text: str

    def __truediv__(self, name: str) -> Url:
        return Url(f"{self.text}/{name}")

    def __str__(self) -> str:
        return self.text

    @property
    def name(self) -> str:
        return self.text.rpartition("/")[2]

    def absolute(self) -> Url:
        return self


StorePath = Path | Url


def store_path(given: str | os.PathLike[str] | Url) -> StorePath:
    """A path, or an address that begins with the scheme of a place, such as s3://."""
    if isinstance(given, Url):
        return given
    text = os.fspath(given)
    scheme = re.match(r"[a-z][a-z0-9+]*(?=://)", text)
    if scheme is None:
        return Path(text)
    form: str = _place_of_scheme(scheme[0], text).form
    parts = text.partition("://")[2].strip("/").split("/")
    if len(parts) < len(form.split("/")) or any(part in ("", ".", "..") for part in parts):
        example = form.replace("BUCKET", "mine").replace("NAME", "data.zarr")
        raise UsageError(f"{text} names no store; write {scheme[0]}://{form}, as in {scheme[0]}://{example}")
    return Url(f"{scheme[0]}://{'/'.join(parts)}")


def place_at(path: StorePath) -> Any:
    """The class of the place at a path, a `store.place.Place`."""
    text = str(path)
    return PLACES.load("folder") if isinstance(path, Path) else _place_of_scheme(text.partition("://")[0], text)


def _place_of_scheme(scheme: str, text: str) -> Any:
    if scheme in PLACES.names():
        return PLACES.load(scheme)  # which says if it cannot be loaded
    found: dict[str, Any] = {}
    for name in PLACES.names():
        with contextlib.suppress(UsageError):
            place = PLACES.load(name)
            found |= dict.fromkeys(place.schemes, place)
    if scheme not in found:
        raise UsageError(f"{text}: addresses of stores begin with {', '.join(f'{s}://' for s in found)}")
    return found[scheme]
