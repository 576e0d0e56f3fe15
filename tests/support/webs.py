"""A web server for tests, as a static host or as a stand-in of the Hugging Face hub, that misbehaves as it is told."""

from __future__ import annotations

import contextlib
import json
import re
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit


@dataclass
class Web:
    """Sends the files of `folder`. `cut` and `busy`: so many of the first answers for each file are cut in the middle,
    or are 503. `forbidden`: every answer is 403. `head`: the commit of `main`, for the hub; `token`: what it asks for.
    """

    folder: Path
    url: str = ""
    ranges: bool = True
    cut: int = 0
    busy: int = 0
    forbidden: bool = False
    head: str = "a1b2c3"
    token: str | None = None
    page: int = 3  # entries of a page of the hub's tree
    asked: Counter[str] = field(default_factory=Counter)
    partial: int = 0  # answers that were ranges


@contextlib.contextmanager
def serving(folder: Path, **behaviour: object) -> Iterator[Web]:
    web = Web(folder, **behaviour)  # type: ignore[arg-type]
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("One", (_Handler,), {"web": web}))
    web.url = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield web
    finally:
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    web: Web

    def log_message(self, format: str, *args: object) -> None: ...

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, *, body: bool) -> None:
        web, address = self.web, urlsplit(self.path)
        if web.forbidden:
            self.send_error(403)
        elif found := re.fullmatch(r"/api/datasets/me/balls/(revision|tree)/(.+)", address.path):
            self._hub(found[1], found[2])
        elif found := re.fullmatch(r"/datasets/me/balls/resolve/(\w+)/(.+)", address.path):
            self._redirect(found[1], found[2])
        elif address.path.startswith("/cdn/") and self.headers.get("Authorization"):
            self.send_error(400, "the token was sent elsewhere")
        else:
            self._file(web.folder / address.path.removeprefix("/cdn").lstrip("/"), body)

    def _hub(self, kind: str, rest: str) -> None:
        web = self.web
        if self._stranger():
            self.send_error(401)
        elif kind == "revision":
            self._json({"sha": web.head}) if rest == "main" else self.send_error(404)
        else:
            start = int(urlsplit(self.path).query.partition("cursor=")[2] or 0)
            files = sorted(p.relative_to(web.folder).as_posix() for p in web.folder.rglob("*") if p.is_file())
            entries = [{"type": "directory", "path": "data.zarr"}, *({"type": "file", "path": name} for name in files)]
            further = f"{web.url}{urlsplit(self.path).path}?cursor={start + web.page}"
            link = {"Link": f'<{further}>; rel="next"'} if start + web.page < len(entries) else {}
            self._json(entries[start : start + web.page], link)

    def _stranger(self) -> bool:
        return self.web.token is not None and self.headers.get("Authorization") != f"Bearer {self.web.token}"

    def _redirect(self, commit: str, name: str) -> None:
        if self._stranger() or commit != "a1b2c3":
            self.send_error(401 if self._stranger() else 404)
            return
        self.send_response(302)
        self.send_header("Location", f"{self.web.url}/cdn/{name}")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _json(self, value: object, headers: dict[str, str] | None = None) -> None:
        self._send(200, json.dumps(value).encode(), headers or {})

    def _file(self, path: Path, body: bool) -> None:
        web, name = self.web, f"{self.command} {self.path}"
        web.asked[name] += 1
        if not path.is_file():
            self.send_error(404)
            return
        if web.asked[name] <= web.busy:
            self.send_error(503)
            return
        data, status = path.read_bytes(), 200
        stamp = path.stat()
        headers = {"ETag": f'"{stamp.st_mtime_ns}-{stamp.st_ino}"'}
        if web.ranges and (span := re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))):
            data, status = data[int(span[1]) : int(span[2]) + 1], 206
            web.partial += 1
        if body and web.asked[name] <= web.cut:
            self._send(status, data, headers, of=max(len(data) // 2, 1))
        else:
            self._send(status, data, headers, of=len(data) if body else 0)

    def _send(self, status: int, data: bytes, headers: dict[str, str], of: int | None = None) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(data))}.items():
            self.send_header(name, value)
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(data[:of])
