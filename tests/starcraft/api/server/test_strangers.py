"""Clients that ask too much, say too little, or come from a web page: they are refused, and nobody else waits."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import websocket
from patience import CLOCK_SECONDS
from s2clientprotocol import common_pb2, debug_pb2, query_pb2, raw_pb2
from s2clientprotocol import sc2api_pb2 as api
from sc2_clients import Talker, serving

from s2rm_data.starcraft.api.server.requests import Client
from s2rm_data.starcraft.api.server.serve import MOST_FRAME_BYTES, is_open_to_others, is_welcome

LARGEST = "27m_vs_30m"


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with serving() as bound:
        yield bound


@contextmanager
def connected(port: int, **options: object) -> Iterator[tuple[Talker, websocket.WebSocket]]:
    wire = websocket.create_connection(f"ws://127.0.0.1:{port}/sc2api", timeout=CLOCK_SECONDS, **options)

    def send(frame: bytes) -> bytes:
        wire.send_binary(frame)
        return wire.recv()  # type: ignore[no-any-return]

    own = wire.sock
    try:
        yield Talker(send), wire
    finally:
        wire.close()
        own.close()  # also where the client thinks that the server has closed it


def test_a_long_step_of_one_client_lets_others_play(port: int) -> None:
    with connected(port) as (busy, wire), connected(port) as (other, _):
        busy.play(LARGEST)
        other.play("3m")
        order = []

        def wait_for_the_step() -> None:
            wire.recv()
            order.append("busy")

        wire.send_binary(api.Request(step=api.RequestStep(count=100_000)).SerializeToString())
        waiting = threading.Thread(target=wait_for_the_step)
        waiting.start()
        for _ in range(5):
            assert other.ask(ping=api.RequestPing()).ping.game_version
            assert not other.step(8).error
        order.append("other")
        waiting.join()
    assert order == ["other", "busy"]


def test_a_step_is_given_up_when_its_client_has_gone() -> None:
    client = Client()
    talker = Talker(client.answer)
    talker.play(LARGEST)
    client.cancel()
    response = talker.step(100_000)
    assert "step: stopped after 500 of 100000 loops" in response.error[0]
    assert response.status == api.Status.Value("in_game")
    assert talker.ask(observation=api.RequestObservation()).observation.observation.game_loop == 500


def test_loops_in_one_piece_or_in_many_are_the_same_battle() -> None:
    whole, parts = Talker().play("3m"), Talker().play("3m")
    whole.step(2_300)
    for _ in range(23):
        parts.step(100)
    assert [str(unit) for unit in whole.units()] == [str(unit) for unit in parts.units()]


def questions(count: int) -> query_pb2.RequestQuery:
    point = common_pb2.Point2D(x=1, y=1)
    return query_pb2.RequestQuery(pathing=[query_pb2.RequestQueryPathing(start_pos=point, end_pos=point)] * count)


def orders(actions: int, tags: int) -> api.RequestAction:
    command = raw_pb2.ActionRawUnitCommand(ability_id=16, unit_tags=[1] * tags)
    action = api.Action(action_raw=raw_pb2.ActionRaw(unit_command=command))
    return api.RequestAction(actions=[action] * actions)


def creating(commands: int, quantity: int) -> api.RequestDebug:
    unit = debug_pb2.DebugCreateUnit(unit_type=48, owner=1, pos=common_pb2.Point2D(x=9, y=9), quantity=quantity)
    return api.RequestDebug(debug=[debug_pb2.DebugCommand(create_unit=unit)] * commands)


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        ({"query": questions(200_000)}, "query: 200,000 questions in one request; at most 10,000"),
        ({"action": orders(20_000, 1)}, "action: 20,000 actions"),
        ({"action": orders(10, 10_000)}, "action: 100,000 units"),
        ({"debug": creating(1, 2**32 - 1)}, "debug: 4,294,967,295 units to create"),
        ({"debug": creating(900, 900)}, "debug: 810,000 units to create"),
        ({"debug": creating(2_000, 0)}, "debug: 2,000 commands"),
        ({"step": api.RequestStep(count=2**32 - 1)}, "step: count is 4294967295"),
    ],
    ids=["questions", "actions", "units", "quantity", "quantities", "commands", "loops"],
)
def test_a_request_for_too_much_is_refused_at_once(request_: dict[str, object], says: str) -> None:
    talker = Talker().play("3m")
    response = talker.ask(**request_)
    assert says in response.error[0]
    assert len(talker.units()) == 6


def test_a_frame_that_is_too_long_ends_the_connection_before_it_is_received(port: int) -> None:
    with connected(port) as (_, wire):
        wire.sock.sendall(b"\x82\xff" + (60 << 20).to_bytes(8, "big") + b"\0\0\0\0")  # the header of a frame of 60 MB
        opcode, data = wire.recv_data()
        assert opcode == websocket.ABNF.OPCODE_CLOSE
        assert int.from_bytes(data[:2], "big") == 1009
    assert MOST_FRAME_BYTES < 60 << 20


def test_no_more_clients_are_let_in_than_there_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("s2rm_data.starcraft.api.server.serve.MOST_CLIENTS", 2)
    with serving() as port, connected(port) as (first, _), connected(port) as (second, _):
        with pytest.raises(websocket.WebSocketBadStatusException, match="503"), connected(port):
            pass
        for talker in (first, second):
            assert talker.ask(ping=api.RequestPing()).ping.game_version


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "http://evil.example:5000", "null", "http://127.0.0.1:1", "x"]
)
def test_a_page_from_elsewhere_is_turned_away(port: int, origin: str) -> None:
    lines = [
        "GET /sc2api HTTP/1.1", f"Host: 127.0.0.1:{port}", "Upgrade: websocket", "Connection: Upgrade",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13", f"Origin: {origin}",
    ]  # fmt: skip
    with socket.create_connection(("127.0.0.1", port), timeout=CLOCK_SECONDS) as wire:
        wire.sendall("\r\n".join([*lines, "", ""]).encode())
        assert wire.recv(1000).startswith(b"HTTP/1.1 403")


def test_programs_are_let_in_with_and_without_an_origin(port: int) -> None:
    for options in ({"suppress_origin": True}, {}):
        with connected(port, **options) as (talker, _):
            assert talker.ask(ping=api.RequestPing()).ping.game_version


@pytest.mark.parametrize(
    ("origins", "hosts", "welcome"),
    [
        ([], ["127.0.0.1:5000"], True),
        (["http://127.0.0.1:5000"], ["127.0.0.1:5000"], True),
        (["http://localhost:5000"], ["localhost:5000"], True),
        (["http://[::1]:5000"], ["[::1]:5000"], True),
        (["http://192.0.2.7:5000"], ["192.0.2.7:5000"], True),
        (["http://rebound.example:5000"], ["rebound.example:5000"], False),
        (["http://127.0.0.1:8080"], ["127.0.0.1:5000"], False),
        (["http://127.0.0.1:5000", "http://evil.example"], ["127.0.0.1:5000"], False),
        (["http://[::1"], ["[::1"], False),
        (["null"], ["127.0.0.1:5000"], False),
    ],
)
def test_who_is_welcome(origins: list[str], hosts: list[str], welcome: bool) -> None:
    assert is_welcome(origins, hosts) is welcome


def test_which_addresses_are_open_to_others() -> None:
    assert [is_open_to_others(host) for host in ("127.0.0.1", "::1", "localhost")] == [False] * 3
    assert [is_open_to_others(host) for host in ("0.0.0.0", "::", "192.0.2.7", "example.org")] == [True] * 4
