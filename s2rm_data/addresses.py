"""Where a store lies: a path of this machine, or an address in a cloud's bucket."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from s2rm_data.errors import UsageError

_SCHEME = re.compile(r"[a-z][a-z0-9+]*(?=://)")
SCHEMES = ("s3", "gs", "az")


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
    """A path, or the address of a bucket that begins with s3://, gs:// or az://."""
    if isinstance(given, Url):
        return given
    text = os.fspath(given)
    scheme = _SCHEME.match(text)
    if scheme is None:
        return Path(text)
    if scheme[0] not in SCHEMES:
        raise UsageError(f"{text}: addresses of stores begin with {', '.join(f'{s}://' for s in SCHEMES)}")
    bucket, _, key = text.partition("://")[2].strip("/").partition("/")
    if not bucket or not key or "//" in key or any(part in (".", "..") for part in key.split("/")):
        raise UsageError(f"{text} names no store; write {scheme[0]}://BUCKET/NAME, as in {scheme[0]}://mine/data.zarr")
    return Url(f"{scheme[0]}://{bucket}/{key}")
