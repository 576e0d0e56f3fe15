"""The viewer's server answers the loopback address, GET, and what the page needs; nothing else."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
import time
from collections.abc import Iterator

import pytest
from patience import CLOCK_SECONDS

from s2rm_data.inspection.viewer.answers import Answers
from s2rm_data.inspection.viewer.server import MOST_CONNECTIONS, Handler, ViewerServer
from s2rm_data.store import Store


@pytest.fixture(scope="module")
def server(store: Store) -> Iterator[ViewerServer]:
    with ViewerServer(Answers(store)) as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield made
        made.shutdown()


def ask(server: ViewerServer, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=CLOCK_SECONDS)
    connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    found = answer.status, dict(answer.getheaders()), answer.read()
    connection.close()
    return found


def test_it_listens_on_the_loopback_address_only(server: ViewerServer) -> None:
    assert server.server_address[0] == "127.0.0.1" and server.url.startswith("http://127.0.0.1:")


@pytest.mark.parametrize(
    "path", ["/", "/viewer.js", "/viewer.css", "/catalogue", "/episode?group=bballs%2Fval&number=0"]
)
def test_it_answers_what_the_page_needs_and_lets_nothing_in(server: ViewerServer, path: str) -> None:
    status, headers, content = ask(server, path)
    assert status == 200 and content
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert not any(name.lower().startswith("access-control") for name in headers)


@pytest.mark.parametrize(
    "path",
    ["/x", "/../pyproject.toml", "/%2e%2e/etc/passwd", "/viewer.js?x=1", "/page/data.js", "/catalogue/"],
)
def test_other_addresses_are_not_there(server: ViewerServer, path: str) -> None:
    assert ask(server, path)[0] == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "HEAD", "OPTIONS", "TRACE", "PATCH", "CONNECT"])
def test_only_get_is_answered(server: ViewerServer, method: str) -> None:
    status, headers, _ = ask(server, "/catalogue", method)
    assert status == 405 and headers["Allow"] == "GET"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "localhost.evil:1"])
def test_another_host_name_is_refused(server: ViewerServer, host: str) -> None:
    assert ask(server, "/catalogue", Host=host)[0] == 403


@pytest.mark.parametrize("host", ["127.0.0.1:1", "localhost", "localhost:8000", "[::1]:9"])
def test_the_loopback_by_any_name_and_port_is_answered(server: ViewerServer, host: str) -> None:
    """As a tunnel from another machine asks."""
    assert ask(server, "/catalogue", Host=host)[0] == 200


def test_other_sites_may_link_to_the_page_but_not_ask_for_data(server: ViewerServer) -> None:
    assert ask(server, "/", Sec_Fetch_Site="cross-site")[0] == 200
    assert ask(server, "/catalogue", Sec_Fetch_Site="cross-site")[0] == 403
    assert ask(server, "/catalogue", Sec_Fetch_Site="same-origin")[0] == 200
    assert ask(server, "/catalogue", Origin="http://evil.example")[0] == 403
    assert ask(server, "/catalogue", Origin="null")[0] == 403
    assert ask(server, "/catalogue", Host="localhost:8", Origin="http://localhost:8")[0] == 200


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/episode?group=bballs%2Fval&number=99", b"0 to 5"),
        ("/episode?group=bballs%2Fval&number=0&number=1", b"given twice"),
        ("/episode?" + "&".join(f"a{n}=1" for n in range(11)), b"more than 10 parameters"),
        ("/episode?group=%3Cscript%3E&number=0", b"has no group"),
        ("/prediction?run=a&group=bballs%2Fval&number=0&index=0&start=0&dropped=0", b"there is no run"),
    ],
)
def test_a_mistake_is_answered_in_plain_words(server: ViewerServer, path: str, message: bytes) -> None:
    status, headers, content = ask(server, path)
    assert status == 400 and message in content
    assert headers["Content-Type"] == "text/plain; charset=utf-8"


def test_a_query_without_end_is_not_read(server: ViewerServer) -> None:
    assert ask(server, "/episode?group=" + "a" * 5000)[0] == 404


def test_an_address_that_is_none_is_refused_without_a_traceback(
    server: ViewerServer, capfd: pytest.CaptureFixture[str]
) -> None:
    with socket.create_connection(("127.0.0.1", server.server_address[1]), timeout=CLOCK_SECONDS) as wire:
        wire.sendall(b"GET http://[ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        answer = wire.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert "Traceback" not in capfd.readouterr().err


def test_clients_that_say_nothing_take_a_bounded_number_of_threads(store: Store) -> None:
    with ViewerServer(Answers(store)) as server, contextlib.ExitStack() as open_ones:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        before = threading.active_count()
        for _ in range(MOST_CONNECTIONS):
            address = "127.0.0.1", server.server_address[1]
            open_ones.enter_context(socket.create_connection(address, timeout=CLOCK_SECONDS))
        with socket.create_connection(("127.0.0.1", server.server_address[1]), timeout=CLOCK_SECONDS) as wire:
            assert wire.recv(1) == b""  # turned away
        assert threading.active_count() <= before + MOST_CONNECTIONS
        open_ones.close()
        while server._free._value < MOST_CONNECTIONS:
            time.sleep(0.01)
        assert ask(server, "/catalogue")[0] == 200
        server.shutdown()


def test_a_client_whose_request_trickles_in_is_let_go(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is never silent, and yet it says nothing."""
    monkeypatch.setattr(Handler, "timeout", 0.3)
    with ViewerServer(Answers(store)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        wire = socket.create_connection(("127.0.0.1", server.server_address[1]), timeout=CLOCK_SECONDS)
        with wire, pytest.raises(ConnectionError):
            for _ in range(10_000):
                wire.sendall(b"G")
                time.sleep(0.05)
        server.shutdown()
