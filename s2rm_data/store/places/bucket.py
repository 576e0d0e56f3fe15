"""A store in a bucket: S3 and what speaks like it, Google Cloud Storage, Azure Blob Storage.

There is no lock. The root is replaced by compare-and-swap, so that of two writers the second is told; an object that is
there already is replaced only if nobody has committed it. Both need a bucket that keeps conditional writes, which a
writer therefore tries out first: some servers take the conditions and ignore them."""

from __future__ import annotations

import contextlib
import queue
import secrets
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, Self, TypeVar

from s2rm_data.core.addresses import StorePath, Url
from s2rm_data.core.errors import ConflictError, DamagedStoreError, DiskError, S2RMError, UsageError
from s2rm_data.core.optional import needed
from s2rm_data.store.documents import MOST_ROOT_BYTES
from s2rm_data.store.layout import META, PROBE
from s2rm_data.store.place import MOST_CHILDREN, OpenObject, Place, Version
from s2rm_data.store.places._credentials import CREDENTIALS, object_store

PIECE_BYTES = 4 << 20  # of an object, asked for at once
KEPT_BYTES = 64 << 20  # of an object, kept while it is open
TRIES = 6  # of a request that the server was too busy for
BUSY = ("409 Conflict", "ConditionalRequestConflict", "429 Too Many Requests", "SlowDown", "status: 409", "status: 429")
# What is in the message when the machine itself was asked for credentials, in vain.
NO_CREDENTIALS = ("169.254.169.254", "latest/api/token", "metadata.google", "credential", "Credential")

T = TypeVar("T")


def _obstore() -> Any:
    needed("obstore.exceptions", "cloud", "a store in a bucket")
    return needed("obstore", "cloud", "a store in a bucket")


class ObjectPlace(Place):
    schemes = ("s3", "gs", "az")
    form = "BUCKET/NAME"
    least_commit_seconds = 1.5  # Google Cloud Storage takes one write per second to an object
    path: Url

    def __init__(self, path: Url, client: Any) -> None:
        super().__init__(path)
        self._client, self._obstore = client, _obstore()
        self._known: Version = None  # the root that this writer found or wrote last

    @classmethod
    def at(cls, path: StorePath) -> Self:
        assert isinstance(path, Url)
        _obstore()
        return cls(path, object_store(path))

    # -- reading

    @contextlib.contextmanager
    def opened(self, name: str) -> Iterator[OpenObject]:
        with self._errors(name):
            meta = self._retried(lambda: self._obstore.head(self._client, name))
        yield OpenRemote(self, name, meta)

    def read(self, name: str, most_bytes: int) -> bytes:
        return self._read(name, most_bytes)[0]

    def read_root(self, most_bytes: int) -> tuple[bytes, Version]:
        return self._read(META, most_bytes)

    def _read(self, name: str, most_bytes: int) -> tuple[bytes, Version]:
        with self._errors(name):
            got = self._retried(lambda: self._obstore.get(self._client, name))
            size = got.meta["size"]
            if size > most_bytes:
                raise DamagedStoreError(f"{self.path / name}: has {size:,} bytes; at most {most_bytes:,} are allowed")
            return bytes(_waited(got.bytes)), _version(got.meta)

    def has(self, name: str) -> bool:
        with self._errors(name):
            return self._found(name) is not None

    def _found(self, name: str) -> Any:
        """What the server says of an object; None if there is none."""
        try:
            return self._retried(lambda: self._obstore.head(self._client, name))
        except FileNotFoundError:
            return None

    def children(self, folder: str = "") -> list[str]:
        with self._errors(folder):
            found = self._retried(lambda: self._obstore.list_with_delimiter(self._client, folder or None))
            names = [*found["common_prefixes"], *(entry["path"] for entry in found["objects"])]
            return sorted({name.rstrip("/").rpartition("/")[2] for name in names})[:MOST_CHILDREN]

    def names(self, folder: str = "") -> Iterator[str]:
        with self._errors(folder):
            for entries in _waited_for(lambda: self._obstore.list(self._client, folder or None)):
                yield from (entry["path"] for entry in entries)

    # -- writing

    def check_free(self) -> None:
        self.children()  # says if there is no such bucket, or no way to it

    @contextlib.contextmanager
    def writing(self, *, shared: bool = False) -> Iterator[None]:
        self._check_conditions()
        self._known = self._root()[1]
        yield

    def _check_conditions(self) -> None:
        """Refuse a bucket that takes conditional writes and ignores the conditions."""
        name = f"{PROBE}{secrets.token_hex(8)}"
        kept = False
        with self._errors(name):
            try:
                first = self._put(name, b"1", "create")
                second = self._put(name, b"2", first)
                kept = self._refuses(name, "create") and self._refuses(name, first) and second != first
            finally:
                _waited(lambda: self._obstore.delete(self._client, name))
        if not kept:
            raise ConflictError(
                f"{self.path}: this server does not keep conditional writes (If-None-Match, If-Match), so two writers "
                "could destroy each other's work; write to a folder and copy it, or use another server"
            )

    def _refuses(self, name: str, mode: Any) -> bool:
        errors = self._obstore.exceptions
        try:
            self._put(name, b"3", mode)
        except (errors.AlreadyExistsError, errors.PreconditionError):
            return True
        return False

    def _put(self, name: str, data: bytes, mode: Any) -> Version:
        put = self._obstore.put
        return _version(self._retried(lambda: put(self._client, name, data, mode=mode, use_multipart=False)))

    def write_whole(self, name: str, pieces: Sequence[bytes], *, replace: bool = False) -> None:
        data = b"".join(pieces)
        self._check_kept(name, data, self._write(name, data, replace=replace))

    def _check_kept(self, name: str, data: bytes, version: Version) -> None:
        """A server may have said that it holds what it does not; nothing is committed, or removed, because of it."""
        with self._errors(name):
            there = self._found(name)
        if there is None:
            raise DiskError(f"{self.path / name}: the server said that it holds this object, and does not; try again")
        if there["size"] != len(data) or (_version(there) != version and self.read(name, len(data)) != data):
            other = "the server holds other bytes than it was given, or another process is writing to it; try again"
            raise DiskError(f"{self.path / name}: {other}")

    def _write(self, name: str, data: bytes, *, replace: bool) -> Version:
        with self._errors(name):
            if replace:
                return self._put(name, data, "overwrite")
            for attempt in range(TRIES):
                try:
                    return self._put(name, data, "create")
                except self._obstore.exceptions.AlreadyExistsError:
                    if self.has(name):
                        return self._replace_uncommitted(name, data)
                    _pause(attempt)  # it met another request, which S3 answers alike
            raise self._conflict()

    def write_new(self, name: str, pieces: Sequence[bytes]) -> None:
        with self._errors(name), contextlib.suppress(self._obstore.exceptions.AlreadyExistsError):
            self._put(name, b"".join(pieces), "create")

    def _replace_uncommitted(self, name: str, data: bytes) -> Version:
        """Over what a killed writer left; the same bytes are left as they are, and so is what somebody committed.

        Once somebody else has committed anything, what is there may be theirs, and not committed yet."""
        there = self._retried(lambda: self._obstore.head(self._client, name))
        if there["size"] == len(data) and self._read(name, len(data))[0] == data:
            return _version(there)
        root, version = self._root()
        if f'"{name}"'.encode() in root:
            alone = "only one process may write to a store at a time. Run the same command again to see what is there"
            raise ConflictError(f"{self.path / name} has been committed by another process meanwhile; {alone}")
        if version != self._known:
            raise self._conflict()
        try:
            return self._put(name, data, _version(there))
        except self._obstore.exceptions.PreconditionError:
            raise self._conflict() from None

    def _root(self) -> tuple[bytes, Version]:
        """The root document as it is now; b"" and None if there is none."""
        return self._read(META, MOST_ROOT_BYTES) if self.has(META) else (b"", None)

    def replace_root(self, data: bytes, previous: Version) -> Version:
        """Tried again only if what is there is known: never blindly, it may be somebody else's."""
        errors = self._obstore.exceptions
        with self._errors(META):
            for attempt in range(TRIES):
                try:
                    self._known = self._put(META, data, "create" if previous is None else previous)
                    there = self._found(META)  # that of somebody who has committed since is as good
                    if (there and _version(there)) == previous != self._known:
                        said = "the server said that it has replaced it, and has not; try again"
                        raise DiskError(f"{self.path / META}: {said}")
                    return self._known
                except (errors.AlreadyExistsError, errors.PreconditionError):
                    there, version = self._root()
                    if there == data:  # ours: the answer got lost on its way
                        self._known = version
                        return version
                    if version != previous:
                        break
                    _pause(attempt)  # still the one that we know: two requests met
        raise self._conflict()

    def _conflict(self) -> ConflictError:
        return ConflictError(
            f"another process is writing to {self.path}, and has committed since this one began; what it committed is "
            "safe. Wait until it has finished and run the same command again, or write elsewhere with --out"
        )

    def remove(self, names: Iterable[str]) -> None:
        chosen = list(names)
        with self._errors(chosen[0] if chosen else ""):
            try:
                if chosen:
                    self._retried(lambda: self._obstore.delete(self._client, chosen))
            except FileNotFoundError:  # some servers say so, and leave the rest
                for name in chosen:
                    with contextlib.suppress(FileNotFoundError):
                        self._retried(lambda name=name: self._obstore.delete(self._client, name))  # type: ignore[misc]

    # -- errors

    def _retried(self, work: Callable[[], T]) -> T:
        """What obstore does not try again by itself: requests that met another one, and those that came too fast."""
        for attempt in range(TRIES):
            try:
                return _waited(work)
            except self._obstore.exceptions.BaseError as error:
                busy = any(words in str(error) for words in BUSY)
                if not busy or attempt == TRIES - 1 or not isinstance(error, self._obstore.exceptions.GenericError):
                    raise
                _pause(attempt)
        raise AssertionError

    @contextlib.contextmanager
    def _errors(self, name: str) -> Iterator[None]:
        try:
            yield
        except S2RMError:
            raise
        except FileNotFoundError as error:
            if "NoSuchBucket" in str(error) or "ContainerNotFound" in str(error):
                raise self._no_bucket() from None
            raise DamagedStoreError(f"{self.path / name}: is missing") from None
        except (self._obstore.exceptions.BaseError, OSError, ValueError) as error:
            raise self._explained(name, error) from None

    def _no_bucket(self) -> UsageError:
        bucket = self.path.text.partition("://")[2].partition("/")[0]
        return UsageError(f"there is no bucket {bucket!r} for {self.path}; create it first, or name another one")

    def _explained(self, name: str, error: Exception) -> S2RMError:
        where = self.path / name if name else self.path
        text = str(error)
        if "NoSuchBucket" in text or "The specified bucket does not exist" in text:
            return self._no_bucket()
        if any(words in text for words in NO_CREDENTIALS):
            ways = f"({CREDENTIALS[self.path.text.partition('://')[0]]}; see docs/cloud.md)"
            return DiskError(f"{where}: there are no credentials; give them as that cloud's own tools take them {ways}")
        kinds = self._obstore.exceptions
        if isinstance(error, kinds.PreconditionError):  # what was to be read is no longer the version that was found
            again = "run the same command again to see what is there"
            return ConflictError(f"{where} has been replaced by another process meanwhile; {again}")
        if isinstance(error, kinds.PermissionDeniedError | kinds.UnauthenticatedError) or "403 Forbidden" in text:
            return DiskError(f"{where}: the credentials do not allow this ({_first_line(text)})")
        return DiskError(f"{where}: the server cannot be reached, or has failed ({_first_line(text)})")


def _waited(work: Callable[[], T]) -> T:
    """What `work` returns or raises. The main thread lets another one wait for the server, so that it sees signals."""
    if threading.current_thread() is not threading.main_thread():
        return work()
    answer: queue.SimpleQueue[tuple[bool, Any]] = queue.SimpleQueue()

    def ask() -> None:
        try:
            answer.put((True, work()))
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            answer.put((False, error))

    threading.Thread(target=ask, name="request", daemon=True).start()
    succeeded, found = answer.get()
    if not succeeded:
        raise found
    return found


def _waited_for(begin: Callable[[], Iterable[T]]) -> Iterator[T]:
    pieces = iter(_waited(begin))
    end: Any = object()
    while (piece := _waited(lambda: next(pieces, end))) is not end:
        yield piece


def _pause(attempt: int) -> None:
    """Longer each time, and not as long as others who wait."""
    time.sleep(0.1 * 2**attempt * (1 + secrets.randbelow(100) / 100))


def _version(meta: Any) -> dict[str, str]:
    """What compare-and-swap compares; obstore refuses keys that are None."""
    return {key: meta[key] for key in ("e_tag", "version") if meta.get(key) is not None}


def _first_line(text: str) -> str:
    line = " ".join(text.split("\n\n")[0].split())
    return line if len(line) <= 300 else line[:297] + "..."


class OpenRemote(OpenObject):
    """An object whose size and version are known. What is read of it is of this version, or an error."""

    def __init__(self, place: ObjectPlace, name: str, meta: Any) -> None:
        self._place, self._name, self._e_tag = place, name, meta["e_tag"]
        self.nbytes: int = meta["size"]
        self.stamp: Hashable = (meta["size"], meta["e_tag"], meta["version"], meta["last_modified"])
        self._kept: bytes | None = None

    def pieces(self) -> Iterator[bytes]:
        place = self._place
        kept: list[bytes] = []
        with place._errors(self._name):
            options = {"if_match": self._e_tag} if self._e_tag else {}
            got = place._retried(lambda: place._obstore.get(place._client, self._name, options=options))
            for piece in _waited_for(lambda: got.stream(min_chunk_size=PIECE_BYTES)):
                data = bytes(piece)
                if self.nbytes <= KEPT_BYTES:
                    kept.append(data)
                yield data
        if self.nbytes <= KEPT_BYTES:
            self._kept = b"".join(kept)

    def ranges(self, spans: Sequence[tuple[int, int]]) -> Iterator[bytes]:
        if self._kept is None and 2 * sum(size for _, size in spans) > self.nbytes and self.nbytes <= KEPT_BYTES:
            for _ in self.pieces():  # one request for all of it
                pass
        if self._kept is not None:
            yield from (self._kept[offset : offset + size] for offset, size in spans)
            return
        for group in _bounded(spans, KEPT_BYTES):
            yield from self._get(*zip(*group, strict=True))

    def _get(self, starts: Sequence[int], lengths: Sequence[int]) -> list[bytes]:
        place, wanted = self._place, {"starts": starts, "lengths": lengths}
        with place._errors(self._name):
            found = place._retried(lambda: place._obstore.get_ranges(place._client, self._name, **wanted))
        return [bytes(piece) for piece in found]


def _bounded(spans: Sequence[tuple[int, int]], most_bytes: int) -> Iterator[list[tuple[int, int]]]:
    """The spans in groups of at most so many bytes, or of one span."""
    group: list[tuple[int, int]] = []
    total = 0
    for span in spans:
        if group and total + span[1] > most_bytes:
            yield group
            group, total = [], 0
        group.append(span)
        total += span[1]
    if group:
        yield group


PLACE = ObjectPlace
