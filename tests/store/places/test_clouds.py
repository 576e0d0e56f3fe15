"""Google's and Azure's dialects, against a server on this machine: what is asked of them, and what is said without one.

The server is a stand-in, written from the documentation of the two services: it shows what this program sends and that
it understands the answers, not how the services behave.
"""

from __future__ import annotations

import email.utils
import json
import os
import threading
import urllib.parse
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from xml.sax.saxutils import escape

import pytest
from buckets import tree_at
from toy import ToySplit, tree

from s2rm_data.core.addresses import Url, store_path
from s2rm_data.core.errors import ConflictError, DiskError, UsageError
from s2rm_data.making.run import generate
from s2rm_data.store import Store, StoreWriter, verify
from s2rm_data.store.place import place_of

pytestmark = pytest.mark.costs(1)

SPLITS = [ToySplit(), ToySplit(group="toy/val", count=5)]
DATE = email.utils.formatdate(0, usegmt=True)


class Cloud(BaseHTTPRequestHandler):
    """Google Cloud Storage as its XML interface is, in memory: every object has a generation."""

    protocol_version = "HTTP/1.1"
    objects: dict[str, tuple[int, bytes]]
    asked: list[tuple[str, str, dict[str, str]]]
    lock: threading.Lock
    numbers: Iterator[int]

    def answer(self, status: int, data: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content_Length": str(len(data)), "Last_Modified": DATE, **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def handle_request(self) -> None:
        url = urllib.parse.urlsplit(self.path)
        key = urllib.parse.unquote(url.path).removeprefix("/mine").lstrip("/")
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.asked.append((self.command, self.path, {k.lower(): v for k, v in self.headers.items()}))
        with self.lock:
            if not key:
                self.list_objects(dict(urllib.parse.parse_qsl(url.query)))
            elif self.command == "PUT":
                self.put(key, body)
            elif key not in self.objects:
                self.answer(404)
            elif self.command == "DELETE":
                del self.objects[key]
                self.answer(204)
            else:
                self.get(key)

    def put(self, key: str, body: bytes) -> None:
        wanted = self.headers.get("x-goog-if-generation-match")
        if wanted is not None and int(wanted) != self.objects.get(key, (0, b""))[0]:
            self.answer(412)
            return
        self.objects[key] = (next(self.numbers), body)
        self.answer(200, **self.stamps(key))

    def stamps(self, key: str) -> dict[str, str]:
        number = str(self.objects[key][0])
        return {"ETag": f'"{number}"', "x_goog_generation": number}

    def get(self, key: str) -> None:
        data = self.objects[key][1]
        span = self.headers.get("Range")
        if span and self.command == "GET":
            first, last = (int(n) for n in span.removeprefix("bytes=").split("-"))
            last = min(last, len(data) - 1)
            where = f"bytes {first}-{last}/{len(data)}"
            self.answer(206, data[first : last + 1], Content_Range=where, **self.stamps(key))
        elif self.command == "HEAD":
            self.answer(200, **{**self.stamps(key), "Content_Length": str(len(data))})
        else:
            self.answer(200, data, **self.stamps(key))

    def list_objects(self, query: dict[str, str]) -> None:
        prefix, inner = query.get("prefix", ""), set()
        lines = []
        for key, (number, data) in sorted(self.objects.items()):
            rest = key.removeprefix(prefix)
            if not key.startswith(prefix):
                continue
            if query.get("delimiter") and "/" in rest:
                inner.add(prefix + rest.partition("/")[0] + "/")
                continue
            fields = f"<Key>{escape(key)}</Key><Size>{len(data)}</Size><ETag>{number}</ETag>"
            lines.append(f"<Contents>{fields}<LastModified>2020-01-01T00:00:00.000Z</LastModified></Contents>")
        lines += [f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>" for name in sorted(inner)]
        self.answer(200, f"<ListBucketResult>{''.join(lines)}</ListBucketResult>".encode())

    do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = handle_request  # noqa: N815

    def log_message(self, *arguments: object) -> None: ...


@pytest.fixture
def cloud() -> Iterator[tuple[str, type[Cloud]]]:
    fields = {"objects": {}, "asked": [], "lock": threading.Lock(), "numbers": iter(range(1, 10**9))}
    handler = type("Handler", (Cloud,), fields)
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", handler
    server.shutdown()
    server.server_close()


@pytest.fixture
def google(cloud: tuple[str, type[Cloud]], clean: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> type[Cloud]:
    address, handler = cloud
    empty = dict.fromkeys(("client_email", "private_key", "private_key_id"), "")
    account = {"gcs_base_url": address, "disable_oauth": True, **empty}
    (tmp_path / "account.json").write_text(json.dumps(account))
    monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT", str(tmp_path / "account.json"))
    monkeypatch.setenv("GOOGLE_BASE_URL", address)
    return handler


@pytest.fixture
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An environment that says nothing of any cloud."""
    for name in [*os.environ]:
        if name.startswith(("AWS_", "GOOGLE_", "AZURE_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))


def test_google_holds_the_bytes_that_a_folder_holds(google: type[Cloud], toy_store: Path) -> None:
    url = store_path("gs://mine/toy.zarr")
    generate(SPLITS, url, shard_size=4)
    assert tree_at(str(url)) == tree(toy_store)
    assert verify(url).problems == []
    assert {key.partition("/")[0] for key in google.objects} == {"toy.zarr"}
    expected = [
        headers["x-goog-if-generation-match"]
        for method, path, headers in google.asked
        if method == "PUT" and urllib.parse.unquote(path) == "/mine/toy.zarr/zarr.json"
    ]
    assert expected[0] == "0"
    assert len({*expected}) == len(expected) > 1  # each commit replaces the one before


def test_of_two_writers_to_google_the_second_to_commit_is_told(google: type[Cloud]) -> None:
    url = store_path("gs://mine/toy.zarr")
    generate(SPLITS, url, shard_size=4)
    with StoreWriter(url) as first:
        generate([ToySplit(group="toy/more", count=2)], url)
        first.manifest.groups.pop("toy/val")
        with pytest.raises(ConflictError, match="has committed since this one began"):
            first.manifest.save(first.place)
    assert Store(url).groups == ["toy/more", "toy/train", "toy/val"]


def test_azure_is_asked_with_its_conditions_and_the_accounts_key(
    cloud: tuple[str, type[Cloud]], clean: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, handler = cloud
    for name, value in (("ENDPOINT", address), ("ACCOUNT_NAME", "lab"), ("ACCOUNT_KEY", "c2VjcmV0")):
        monkeypatch.setenv(f"AZURE_STORAGE_{name}", value)
    place = place_of("az://mine/data.zarr")
    place.write_new("new", [b"1"])
    place.replace_root(b"{}", None)
    place.replace_root(b"{ }", {"e_tag": "abc"})
    found = [
        (path, headers.get("if-none-match"), headers.get("if-match"), headers["authorization"].partition(":")[0])
        for method, path, headers in handler.asked
        if method == "PUT"
    ]
    assert found == [
        ("/mine/data.zarr/new", "*", None, "SharedKey lab"),
        ("/mine/data.zarr/zarr.json", "*", None, "SharedKey lab"),
        ("/mine/data.zarr/zarr.json", None, "abc", "SharedKey lab"),
    ]


def test_what_is_missing_is_said_in_the_words_of_that_cloud(
    clean: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=r"az://mine/data\.zarr cannot be used: .*AZURE_STORAGE_ACCOUNT_NAME, and"):
        Store("az://mine/data.zarr")
    monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT", str(tmp_path / "none.json"))
    with pytest.raises(UsageError, match=r"gs://mine/data\.zarr cannot be used: .*none\.json.*GOOGLE_APPLICATION_CRED"):
        Store("gs://mine/data.zarr")
    monkeypatch.delenv("GOOGLE_SERVICE_ACCOUNT")
    for nowhere in ("GOOGLE_BASE_URL", "AZURE_STORAGE_ENDPOINT"):
        monkeypatch.setenv(nowhere, "http://127.0.0.1:9")
    monkeypatch.setenv("GOOGLE_SKIP_SIGNATURE", "true")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "lab")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "c2VjcmV0")
    for scheme in ("gs", "az"):
        with pytest.raises(DiskError, match=rf"{scheme}://mine/data\.zarr/zarr\.json: the server cannot be reached"):
            Store(f"{scheme}://mine/data.zarr")


@pytest.mark.parametrize("scheme", ["gs", "az"])
def test_an_address_is_read_alike_for_every_cloud(scheme: str) -> None:
    assert store_path(f"{scheme}://mine/sets/data.zarr/") == Url(f"{scheme}://mine/sets/data.zarr")
    with pytest.raises(UsageError, match=rf"names no store; write {scheme}://BUCKET/NAME"):
        store_path(f"{scheme}://mine")
