"""The viewer's server: loopback only, GET only, a fixed list of addresses, and no name but the loopback's.

A page from elsewhere that a browser has open must not reach it: requests under another host name (DNS rebinding) or
from another site are refused, nothing may be framed, and no answer is shared across origins."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import parse_qsl, urlsplit

from s2rm_data.core.errors import S2RMError, UsageError
from s2rm_data.inspection.viewer.answers import Answers
from s2rm_data.inspection.viewer.page import POLICY, page, script, style

HOST = "127.0.0.1"
NAMES = ("127.0.0.1", "localhost", "[::1]")
_MOST_QUERY = 4000  # characters
MOST_CONNECTIONS = 64  # at once, a thread each; a browser opens six
_HEADERS = {
    "Content-Security-Policy": POLICY.format(scripts="'self'", styles="'self'")
    + "; connect-src 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_FILES: dict[str, tuple[str, Callable[[], str]]] = {
    "/": ("text/html; charset=utf-8", page),
    "/viewer.js": ("text/javascript; charset=utf-8", script),
    "/viewer.css": ("text/css; charset=utf-8", style),
}
# What a store that breaks its own rules, though its seals are right, can raise when it is drawn.
_UNDRAWABLE = (ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError, MemoryError)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "s2rm-data", ""
    timeout = 60  # seconds that a connection may be silent, and that a request may take to come
    answers: ClassVar[Answers]
    _waiting: ClassVar[dict[socket.socket, float]]  # connection -> when its request must have come

    def parse_request(self) -> bool:
        if not super().parse_request():
            return False
        self._waiting.pop(self.connection, None)  # it is here; the answer may take its time
        if self.command != "GET":
            return self._refuse(HTTPStatus.METHOD_NOT_ALLOWED, "Only GET is answered.")
        host = self.headers.get("Host", "")
        if host.rpartition(":")[0] not in NAMES and host not in NAMES:
            return self._refuse(HTTPStatus.FORBIDDEN, "Only the loopback address is answered.")
        foreign = self.headers.get("Origin", f"http://{host}") != f"http://{host}"
        if (foreign or self.headers.get("Sec-Fetch-Site", "none") in ("cross-site", "same-site")) and self.path != "/":
            return self._refuse(HTTPStatus.FORBIDDEN, "Other sites are not answered.")
        return True

    def do_GET(self) -> None:
        try:
            address = urlsplit(self.path)
        except ValueError as error:
            self._say(HTTPStatus.BAD_REQUEST, f"This is no address: {error}")
            return
        route = address.path.removeprefix("/")
        if address.path in _FILES and not address.query:
            kind, content = _FILES[address.path]
            self._send(HTTPStatus.OK, kind, content().encode())
        elif self.answers.knows(route) and len(address.query) <= _MOST_QUERY:
            self._answer(route, address.query)
        else:
            self._say(HTTPStatus.NOT_FOUND, "There is no such page.")

    def _answer(self, route: str, query: str) -> None:
        try:
            pairs = _pairs(query)
            if len(dict(pairs)) != len(pairs):
                raise UsageError("a parameter is given twice")
            kind, content = self.answers.answer(route, dict(pairs))
        except S2RMError as error:
            self._say(HTTPStatus.BAD_REQUEST, str(error))
        except _UNDRAWABLE as error:
            self._say(HTTPStatus.INTERNAL_SERVER_ERROR, f"This cannot be drawn: {type(error).__name__}: {error}")
        else:
            self._send(HTTPStatus.OK, kind, content)
            if route == "episode":  # the first picture waits for nothing; other worlds get ready while it is looked at
                threading.Thread(target=self.answers.warm_up, daemon=True).start()

    def _refuse(self, status: HTTPStatus, words: str) -> bool:
        self.close_connection = True  # a body that was sent along is not read as the next request
        self._say(status, words)
        return False

    def _say(self, status: HTTPStatus, words: str) -> None:
        self._send(status, "text/plain; charset=utf-8", words.encode(errors="replace"))

    def _send(self, status: HTTPStatus, kind: str, content: bytes) -> None:
        self.send_response(status)
        for name, value in {**_HEADERS, "Content-Type": kind, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET")
        self.end_headers()
        self.wfile.write(content)

    def handle_one_request(self) -> None:
        """Bytes that trickle in are no silence: a request that has not come by then ends the connection."""
        self._waiting[self.connection] = time.monotonic() + self.timeout
        try:
            super().handle_one_request()
        finally:
            self._waiting.pop(self.connection, None)

    def handle(self) -> None:
        try:
            super().handle()
        except OSError:  # the browser has gone away
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: what a browser asks for is no news."""


def _pairs(query: str) -> list[tuple[str, str]]:
    try:
        return parse_qsl(query, keep_blank_values=True, max_num_fields=10)
    except ValueError:
        raise UsageError("there are more than 10 parameters") from None


class ViewerServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, answers: Answers, port: int = 0) -> None:
        self._free = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self._waiting: dict[socket.socket, float] = {}
        handler = type("StoreHandler", (Handler,), {"answers": answers, "_waiting": self._waiting})
        super().__init__((HOST, port), handler)

    def serve_forever(self, poll_interval: float = 0.5) -> None:
        threading.Thread(target=self.RequestHandlerClass.answers.get_ready, daemon=True).start()  # type: ignore[attr-defined]
        super().serve_forever(poll_interval)

    def service_actions(self) -> None:
        """Twice per second."""
        now = time.monotonic()
        for connection, until in [*self._waiting.items()]:
            if now > until:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.server_address[1]}/"
