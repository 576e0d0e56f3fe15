"""The websocket: who gets in, what a frame may be, how a connection ends."""

import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest
import websocket
from patience import CLOCK_SECONDS, wait_until
from s2clientprotocol import sc2api_pb2 as api
from sc2_clients import Talker, serving

from s2rm_data.core.errors import ConflictError, UsageError
from s2rm_data.starcraft.api.server.serve import main, run


@contextmanager
def connected(port: int, path: str = "/sc2api", *, text: bool = False) -> Iterator[Talker]:
    wire = websocket.create_connection(f"ws://127.0.0.1:{port}{path}", timeout=CLOCK_SECONDS)

    def send(frame: bytes) -> bytes:
        wire.send(frame, websocket.ABNF.OPCODE_TEXT if text else websocket.ABNF.OPCODE_BINARY)
        opcode, reply = wire.recv_data()
        assert opcode == websocket.ABNF.OPCODE_BINARY
        return reply

    talker = Talker(send)
    talker.wire = wire  # type: ignore[attr-defined]
    try:
        yield talker
    finally:
        wire.close()


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with serving() as bound:
        yield bound


@pytest.mark.parametrize("text", [False, True])
def test_frames_may_be_text_or_binary_whatever_bytes_they_hold(port: int, text: bool) -> None:
    with connected(port, text=text) as talker:
        talker.play("3m", seed=0xFFFFFFFF)  # bytes that are no UTF-8
        assert len(talker.units()) == 6


def test_another_path_is_not_found(port: int) -> None:
    with pytest.raises(websocket.WebSocketBadStatusException, match="404"), connected(port, "/other"):
        pass


def test_every_client_has_a_game_of_its_own(port: int) -> None:
    with connected(port) as first, connected(port) as second:
        first.play("3m")
        second.play("2s3z")
        first.step(80)
        assert second.ask(observation=api.RequestObservation()).observation.observation.game_loop == 0
        assert (len(first.units()), len(second.units())) == (6, 10)


def test_garbage_is_answered_and_the_game_goes_on(port: int) -> None:
    with connected(port) as talker:
        talker.play("3m")
        assert api.Response.FromString(talker.send(b"\xff\xfe garbage")).error
        assert api.Response.FromString(talker.send(b"")).error
        assert len(talker.units()) == 6


def test_a_client_that_vanishes_leaves_the_server_to_others(port: int) -> None:
    with connected(port) as talker:
        talker.play("3m")
        wire = talker.wire.sock  # type: ignore[attr-defined]
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        wire.close()  # a reset in place of a goodbye
    with connected(port) as talker:
        assert len(talker.play("3m").units()) == 6


def test_a_connection_that_never_says_anything_disturbs_nobody(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)), connected(port) as talker:
        assert len(talker.play("3m").units()) == 6


def test_half_a_frame_disturbs_nobody(port: int) -> None:
    with connected(port) as half, connected(port) as talker:
        half.wire.sock.sendall(b"\x82\xfe\x01\x00\x00\x00")  # type: ignore[attr-defined]
        assert len(talker.play("3m").units()) == 6


def test_a_game_for_one_turns_a_second_client_away_and_ends_when_told_to_quit() -> None:
    with serving(single=True) as port:
        with connected(port) as talker:
            with pytest.raises(websocket.WebSocketBadStatusException, match="503"), connected(port):
                pass
            talker.play("3m")
        with connected_again(port) as talker:  # the first has gone, its game with it
            assert talker.ask(quit=api.RequestQuit()).status == api.Status.Value("quit")
        wait_until(lambda: not listens(port))


def listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=CLOCK_SECONDS).close()
    except OSError:
        return False
    return True


@contextmanager
def connected_again(port: int) -> Iterator[Talker]:
    """The server needs a moment to notice that the last client has gone."""
    for _ in range(100):
        try:
            with connected(port) as talker:
                yield talker
                return
        except websocket.WebSocketBadStatusException:
            time.sleep(0.05)
    pytest.fail("not let in")


def test_it_listens_on_loopback_only() -> None:
    with serving() as port:
        sockets = psutil.Process().net_connections("tcp")
    listening = [entry.laddr.ip for entry in sockets if entry.status == psutil.CONN_LISTEN and entry.laddr.port == port]
    assert listening == ["127.0.0.1"]


def test_a_port_that_is_taken_is_said_to_be() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConflictError, match=f"port {port} of 127.0.0.1 is taken"):
            run(host="127.0.0.1", port=port, single=False)


def test_an_address_that_is_not_ours_is_refused() -> None:
    with pytest.raises(UsageError, match=r"cannot listen on 192\.0\.2\.1"):
        run(host="192.0.2.1", port=0, single=False)


def test_the_launcher_needs_a_port() -> None:
    with pytest.raises(UsageError, match="-port is missing"):
        main(["-listen", "127.0.0.1", "-displayMode", "0", "-verbose"])
