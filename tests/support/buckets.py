"""An S3 server for tests (moto, in a process of its own), and a proxy before it that misbehaves."""

from __future__ import annotations

import contextlib
import http.client
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from s2rm_data.store.place import place_of

ENVIRONMENT = {"AWS_ACCESS_KEY_ID": "tester", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1"}


@contextlib.contextmanager
def s3_server() -> Iterator[str]:
    """The address of a server with no buckets."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    server = subprocess.Popen([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)], **quiet)
    try:
        address = f"http://127.0.0.1:{port}"
        for _ in range(1200):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"{address}/moto-api/").close()
                break
            time.sleep(0.1)
        yield address
    finally:
        server.kill()
        server.wait()


def make_bucket(address: str, name: str) -> None:
    urllib.request.urlopen(urllib.request.Request(f"{address}/{name}", method="PUT")).close()


def flip(url: str, name: str) -> None:
    """Change one bit of an object, as nobody who commits would."""
    place = place_of(url)
    data = bytearray(place.read(name, 10**9))
    data[len(data) // 2] ^= 1
    place.write_whole(name, [bytes(data)], replace=True)


def tree_at(url: str) -> dict[str, bytes]:
    """Every object of a store with its bytes, as `toy.tree` gives those of a folder."""
    place = place_of(url)
    return {name: place.read(name, 10**9) for name in sorted(place.names())}


class Proxy(BaseHTTPRequestHandler):
    """Hands requests on; subclasses change them. `Host` stays as it is, which the signature covers."""

    upstream: str
    protocol_version = "HTTP/1.1"

    def changed(self, headers: dict[str, str]) -> dict[str, str]:
        return headers

    def answer(self, send: Callable[[], tuple[int, dict[str, str], bytes]]) -> tuple[int, dict[str, str], bytes]:
        return send()

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = self.changed(dict(self.headers))

        def send() -> tuple[int, dict[str, str], bytes]:
            connection = http.client.HTTPConnection(self.upstream.removeprefix("http://"), timeout=60)
            try:
                connection.request(self.command, self.path, body or None, headers)
                got = connection.getresponse()
                return got.status, dict(got.getheaders()), got.read()
            finally:
                connection.close()

        status, found, data = self.answer(send)
        self.send_response_only(status)
        for name, value in found.items():
            if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                self.send_header(name, value)
        length = found.get("Content-Length", "0") if self.command == "HEAD" else str(found.get("Cut", len(data)))
        self.send_header("Content-Length", length)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)
        if "Cut" in found:
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_RDWR)

    do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = _handle  # noqa: N815

    def log_message(self, *arguments: object) -> None: ...


@contextlib.contextmanager
def proxy(kind: type[Proxy], upstream: str) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (kind,), {"upstream": upstream}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
