"""An S3 server in this process, whose n-th request meets a fault: in place of a bucket, without network or disk."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import signal
import socket
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

# What happens to request number n; those that end with -on, also to all after it.
KINDS = (
    "error",  # 500, nothing done
    "error-on",
    "cut",  # the connection ends instead of an answer, nothing done; in the middle of the bytes of a GET
    "lost",  # done, and then the connection ends
    "delay",
    "false-200",  # a PUT that is answered and not done
    "expired",  # 403
    "expired-on",
    "empty-list",
    "kill",  # of the client, before it is done
    "kill-after",
)
DATE = "Thu, 01 Jan 2026 00:00:00 GMT"
Answer = tuple[int, dict[str, str], bytes]


@dataclass
class Bucket:
    """Objects by key, and what is to happen."""

    objects: dict[str, bytes] = field(default_factory=dict)
    at: int = 0
    kind: str = ""
    count: int = 0
    hit: bool = False
    client: int = 0  # process to be killed
    requests: list[str] = field(default_factory=list)
    mutex: threading.Lock = field(default_factory=threading.Lock)

    def arm(self, at: int = 0, kind: str = "") -> None:
        self.at, self.kind, self.count, self.hit, self.requests = at, kind, 0, False, []

    def next_fate(self, request: str) -> str:
        with self.mutex:
            self.count += 1
            self.requests.append(request)
            if not self.at or self.count < self.at or (self.count > self.at and not self.kind.endswith("-on")):
                return ""
            self.hit = True
            return self.kind.removesuffix("-on")

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.client, signal.SIGKILL)

    # -- what S3 does

    def answer(self, method: str, path: str, headers: dict[str, str], body: bytes, *, dry: bool, empty: bool) -> Answer:
        url = urlsplit(path)
        key, query = unquote(url.path).lstrip("/").partition("/")[2], parse_qs(url.query, keep_blank_values=True)
        with self.mutex:
            if method == "POST" and "delete" in query:
                keys = [found.decode() for found in re.findall(rb"<Key>(.*?)</Key>", body)]
                for gone in [] if dry else keys:
                    self.objects.pop(gone, None)
                done = "".join(f"<Deleted><Key>{escape(gone)}</Key></Deleted>" for gone in keys)
                return 200, {}, f"<DeleteResult>{done}</DeleteResult>".encode()
            if method == "GET" and "list-type" in query:
                return 200, {}, self._list(query, empty=empty)
            if method == "PUT":
                return self._put(key, headers, body, dry=dry)
            if method == "DELETE":
                None if dry else self.objects.pop(key, None)
                return 204, {}, b""
            return self._get(key, headers)

    def _list(self, query: dict[str, list[str]], *, empty: bool) -> bytes:
        prefix, delimiter = (query.get(name, [""])[0] for name in ("prefix", "delimiter"))
        names, folders = [], {}
        for key in [] if empty else sorted(self.objects):
            if key.startswith(prefix):
                rest = key[len(prefix) :]
                if delimiter and delimiter in rest:
                    folders[prefix + rest.partition(delimiter)[0] + delimiter] = None
                else:
                    names.append(key)
        entries = "".join(
            f"<Contents><Key>{escape(key)}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
            f"<ETag>{_etag(self.objects[key])}</ETag><Size>{len(self.objects[key])}</Size></Contents>"
            for key in names
        )
        shared = "".join(f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>" for name in folders)
        return f"<ListBucketResult><IsTruncated>false</IsTruncated>{entries}{shared}</ListBucketResult>".encode()

    def _put(self, key: str, headers: dict[str, str], body: bytes, *, dry: bool) -> Answer:
        there = self.objects.get(key)
        if headers.get("if-none-match") == "*" and there is not None:
            return 412, {}, b"<Error><Code>PreconditionFailed</Code></Error>"
        if "if-match" in headers and (there is None or headers["if-match"] != _etag(there)):
            return 412, {}, b"<Error><Code>PreconditionFailed</Code></Error>"
        if not dry:
            self.objects[key] = body
        return 200, {"ETag": _etag(body)}, b""

    def _get(self, key: str, headers: dict[str, str]) -> Answer:
        if key not in self.objects:
            return 404, {}, b"<Error><Code>NoSuchKey</Code></Error>"
        data = self.objects[key]
        found = {"ETag": _etag(data), "Last-Modified": DATE}
        if "if-match" in headers and headers["if-match"] != _etag(data):
            return 412, {}, b"<Error><Code>PreconditionFailed</Code></Error>"
        if match := re.fullmatch(r"bytes=(\d+)-(\d+)", headers.get("range", "")):
            start, stop = int(match[1]), min(int(match[2]) + 1, len(data))
            return 206, {**found, "Content-Range": f"bytes {start}-{stop - 1}/{len(data)}"}, data[start:stop]
        return 200, found, data


def _etag(data: bytes) -> str:
    return f'"{hashlib.md5(data, usedforsecurity=False).hexdigest()}"'


class _Handler(BaseHTTPRequestHandler):
    bucket: Bucket
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16  # an answer in one packet

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        fate = self.bucket.next_fate(f"{self.command} {self.path}")
        if fate == "kill":
            self.bucket.kill()
        if fate == "delay":
            time.sleep(0.05)
        writes = self.command in ("PUT", "DELETE", "POST")
        if fate == "error":
            status, found, data = 500, {}, b"<Error><Code>InternalError</Code></Error>"
        elif fate == "expired":
            status, found, data = 403, {}, b"<Error><Code>ExpiredToken</Code></Error>"
        elif fate in ("kill", "cut") and (writes or fate == "kill" or self.command == "HEAD"):
            self._hang_up()
            return
        else:
            status, found, data = self.bucket.answer(
                self.command, self.path, headers, body, dry=fate == "false-200", empty=fate == "empty-list"
            )
        if fate in ("lost", "kill-after"):
            self.bucket.kill() if fate == "kill-after" else None
            self._hang_up()
            return
        self._send(status, found, data, cut=fate == "cut")

    def _send(self, status: int, found: dict[str, str], data: bytes, *, cut: bool) -> None:
        self.send_response_only(status)
        for name, value in found.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data[: len(data) // 2] if cut else data)
        if cut:
            self._hang_up()

    def _hang_up(self) -> None:
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_RDWR)

    do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = _handle  # noqa: N815

    def log_message(self, *arguments: object) -> None: ...


class _Quiet(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that was killed."""


def serve(bucket: Bucket) -> str:
    """The address of a server that ends with this process."""
    server = _Quiet(("127.0.0.1", 0), type("Handler", (_Handler,), {"bucket": bucket}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"
