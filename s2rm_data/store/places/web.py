"""A store on a web server, to be read: any server that sends files will do, with or without range requests.

What comes is compared with the manifest like everything else, so that a wrong or stale answer is named, never used."""

from __future__ import annotations

import contextlib
import http.client
import time
import urllib.error
import urllib.request
from collections.abc import Hashable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, NoReturn
from urllib.parse import quote

from s2rm_data.core.errors import ConflictError, DamagedStoreError, DiskError, UsageError
from s2rm_data.store.layout import META
from s2rm_data.store.place import OpenObject, Place

SECONDS = 60.0  # that a server may say nothing
TRIES = 5  # of a request that was cut, refused or met a server too busy
KEPT_BYTES = 64 << 20  # of an object, kept while it is open
PIECE_BYTES = 1 << 20
BUSY = (429, 500, 502, 503, 504)
_CUT = (OSError, http.client.HTTPException)  # urllib's errors are OSErrors


class WebPlace(Place):
    """Files below an address, to be read. A web server lists nothing: the names are those of the manifest."""

    schemes: ClassVar[tuple[str, ...]] = ("https", "http")
    form: ClassVar[str] = "HOST/NAME"

    forbidden: ClassVar[str] = "; it wants a login, which is not supported here"
    headers: Mapping[str, str] = MappingProxyType({})  # that say who asks

    def address(self, name: str) -> str:
        return f"{self.path}/{quote(name)}"

    def read(self, name: str, most_bytes: int) -> bytes:
        return self.fetched(name, most_bytes)[0]

    def names(self, folder: str = "") -> Iterator[str]:
        return iter(())

    def has(self, name: str) -> bool:
        with self._errors(name):
            try:
                self.asked(name, method="HEAD").close()
            except FileNotFoundError:
                return False
            return True

    def check_exists(self) -> None:
        if not self.has(META):
            raise UsageError(f"there is no store at {self.path}: it has no {META}")

    @contextlib.contextmanager
    def opened(self, name: str) -> Iterator[OpenObject]:
        with self._errors(name), self.asked(name, method="HEAD") as answer:
            found = OpenAnswer(self, name, answer.headers)
        yield found

    def asked(self, name: str, *, method: str = "GET", headers: Mapping[str, str] | None = None) -> Any:
        """The answer; a server that is too busy or cannot be reached is asked again. `name` may be an address."""
        address = name if "://" in name else self.address(name)
        request = urllib.request.Request(address, method=method, headers=dict(headers or {}))
        for field, value in self.headers.items():
            request.add_unredirected_header(field, value)  # who asks is no other host's business
        for attempt in range(TRIES):
            try:
                return urllib.request.urlopen(request, timeout=SECONDS)
            except urllib.error.HTTPError as error:
                error.close()
                if error.code in (404, 410):
                    raise FileNotFoundError from None
                if error.code not in BUSY or attempt == TRIES - 1:
                    raise
            except _CUT:
                if attempt == TRIES - 1:
                    raise
            time.sleep(0.1 * 2**attempt)
        raise AssertionError

    def fetched(self, name: str, most_bytes: int, **wanted: Any) -> tuple[bytes, Mapping[str, str], int]:
        """Body, headers and status of an answer that has come whole."""
        with self._errors(name):
            for attempt in range(TRIES):
                with self.asked(name, **wanted) as answer:
                    try:
                        data = answer.read(most_bytes + 1)
                    except _CUT:
                        data = None
                    promised = answer.headers.get("Content-Length")
                    if data is not None and len(data) > most_bytes:
                        raise DamagedStoreError(f"{self.path / name}: has more than the {most_bytes:,} bytes allowed")
                    if data is not None and promised in (None, str(len(data))):
                        return data, answer.headers, answer.status
                time.sleep(0.1 * 2**attempt)
            raise DiskError(f"{self.path / name}: the connection was cut {TRIES} times; try again later")

    def _refuse(self, *given: Any, **named: Any) -> NoReturn:
        raise UsageError(f"{self.path} can only be read; write to a folder or a bucket, as in --out data.zarr")

    check_free = write_whole = replace_root = remove = writing = _refuse

    @contextlib.contextmanager
    def _errors(self, name: str) -> Iterator[None]:
        where = self.path / name
        try:
            yield
        except FileNotFoundError:
            raise DamagedStoreError(f"{where}: is missing") from None
        except urllib.error.HTTPError as error:
            hint = self.forbidden if error.code in (401, 403) else ""
            raise DiskError(f"{where}: the server answers {error.code} {error.reason}{hint}") from None
        except _CUT as error:
            raise DiskError(f"{where}: the server cannot be reached ({getattr(error, 'reason', error)})") from None


class OpenAnswer(OpenObject):
    """An object whose size and version are known. What is read of it is of this version, or an error."""

    def __init__(self, place: WebPlace, name: str, headers: Mapping[str, str]) -> None:
        size = headers.get("Content-Length")
        if size is None or not size.isdecimal():
            raise DiskError(f"{place.path / name}: the server does not say how large it is")
        self._place, self._name, self.nbytes = place, name, int(size)
        self.stamp: Hashable = self._version(headers)
        self._kept: bytes | None = None

    @staticmethod
    def _version(headers: Mapping[str, str]) -> tuple[str | None, str | None]:
        return headers.get("ETag"), headers.get("Last-Modified")

    def pieces(self) -> Iterator[bytes]:
        if self.nbytes > KEPT_BYTES:
            spans = [(at, min(KEPT_BYTES, self.nbytes - at)) for at in range(0, self.nbytes, KEPT_BYTES)]
            yield from self.ranges(spans)
        else:
            whole = self._whole()
            yield from (whole[at : at + PIECE_BYTES] for at in range(0, len(whole), PIECE_BYTES))

    def _whole(self) -> bytes:
        if self._kept is None:
            data, headers, _ = self._place.fetched(self._name, self.nbytes)
            self._check(headers)
            self._kept = data
        return self._kept

    def ranges(self, spans: Sequence[tuple[int, int]]) -> Iterator[bytes]:
        if self.nbytes <= KEPT_BYTES and 2 * sum(size for _, size in spans) > self.nbytes:
            self._whole()
        for offset, size in spans:
            yield self._part(offset, size) if self._kept is None else self._kept[offset : offset + size]

    def _part(self, offset: int, size: int) -> bytes:
        if not size:
            return b""
        span = {"Range": f"bytes={offset}-{offset + size - 1}"}
        data, headers, status = self._place.fetched(self._name, self.nbytes, headers=span)
        self._check(headers)
        if status == http.HTTPStatus.PARTIAL_CONTENT:
            return data
        if self.nbytes <= KEPT_BYTES:  # the server knows no ranges and has sent all of it
            self._kept = data
        return data[offset : offset + size]

    def _check(self, headers: Mapping[str, str]) -> None:
        if self._version(headers) != self.stamp:
            raise ConflictError(
                f"{self._place.path / self._name} has been replaced since it was opened; run the same command again"
            )


PLACE: type[Place] = WebPlace
