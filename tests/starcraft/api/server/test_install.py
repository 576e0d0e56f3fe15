"""The folder that clients take for StarCraft II."""

import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import psutil
import pytest
import websocket
from patience import CLOCK_SECONDS, wait_until
from s2clientprotocol import sc2api_pb2 as api
from sc2_clients import Talker

from s2rm_data.core.errors import ConflictError, UsageError
from s2rm_data.starcraft import scenarios
from s2rm_data.starcraft.api.server.install import install, placeholder_name


def test_every_scenario_has_a_map_that_goes_on_and_one_that_ends(tmp_path: Path) -> None:
    install(tmp_path / "sc2", ("7s4z_vs_3c",))
    for name in (*scenarios.names(), "7s4z_vs_3c"):
        path = tmp_path / "sc2" / "Maps" / "SMAC_Maps" / f"{name}.SC2Map"
        assert placeholder_name(path.read_bytes()) == name
        assert (tmp_path / "sc2" / "Maps" / "Battles" / f"{name}_battle.SC2Map").exists()
    assert placeholder_name(b"MPQ\x1b") == ""


def test_a_folder_may_be_laid_out_again_but_nothing_else_is_touched(tmp_path: Path) -> None:
    install(tmp_path / "sc2")
    install(tmp_path / "sc2")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "StarCraft II.exe").touch()
    with pytest.raises(ConflictError, match="is left alone"):
        install(tmp_path / "other")
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["StarCraft II.exe"]
    with pytest.raises(ConflictError, match="is a file"):
        install(tmp_path / "other" / "StarCraft II.exe")


def test_a_scenario_that_cannot_be_spelled_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no scenario '3q'"):
        install(tmp_path / "sc2", ("3q",))
    assert not (tmp_path / "sc2").exists()


def launch(folder: Path, **environment: str) -> tuple[subprocess.Popen[bytes], int]:
    """The launcher, started as pysc2 starts the game; unknown arguments are the game's own."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (launcher,) = folder.glob("Versions/Base*/SC2_x64")
    arguments = ["-listen", "127.0.0.1", "-port", str(port), "-dataDir", f"{folder}/", "-tempDir", "x/", "-verbose"]
    return subprocess.Popen([str(launcher), *arguments], env={**os.environ, **environment}), port


def connect(port: int) -> websocket.WebSocket:
    until = time.monotonic() + CLOCK_SECONDS
    while True:
        try:
            return websocket.create_connection(f"ws://127.0.0.1:{port}/sc2api", timeout=CLOCK_SECONDS)
        except OSError:
            assert time.monotonic() < until
            time.sleep(0.05)


def talker_of(wire: websocket.WebSocket) -> Talker:
    def send(frame: bytes) -> bytes:
        wire.send_binary(frame)
        return wire.recv()

    return Talker(send)


def test_the_launcher_serves_whatever_python_settings_it_inherits_and_quits(tmp_path: Path) -> None:
    install(tmp_path / "sc2")
    (tmp_path / "numpy").mkdir()
    (tmp_path / "numpy" / "__init__.py").write_text("raise ImportError('somebody else')")
    process, port = launch(tmp_path / "sc2", PYTHONPATH=str(tmp_path), PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION="python")
    wire = connect(port)
    talker = talker_of(wire).play("3m")
    assert len(talker.units()) == 6
    talker.ask(quit=api.RequestQuit())
    assert process.wait(30) == 0
    wire.close()


def test_many_games_leave_memory_and_open_files_as_they_were(tmp_path: Path) -> None:
    install(tmp_path / "sc2")
    process, port = launch(tmp_path / "sc2")
    try:
        sizes = []
        for number in range(12):
            wire = connect_free(port)
            talker = talker_of(wire).play("3s5z", seed=number)
            for _ in range(40):
                talker.step(8)
                talker.units()
            talker.debug(kill_unit={"tag": [unit.tag for unit in talker.units()]})
            talker.step(8)
            wire.close()
            server = psutil.Process(process.pid)
            sizes.append((server.memory_info().rss, server.num_fds()))
        nbytes, files = zip(*sizes, strict=True)
        assert min(nbytes[-4:]) <= max(nbytes[:4]) + (16 << 20)  # up and down; test_requests.py traces what is held
        assert min(files[-4:]) <= max(files[:4])
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def connect_free(port: int) -> websocket.WebSocket:
    """The server takes one client at a time and needs a moment to notice that the last has gone."""
    for _ in range(100):
        try:
            return connect(port)
        except websocket.WebSocketBadStatusException:
            time.sleep(0.02)
    raise AssertionError("not let in")


def test_a_server_whose_client_was_killed_does_not_stay_behind(tmp_path: Path) -> None:
    install(tmp_path / "sc2")
    (launcher,) = (tmp_path / "sc2").glob("Versions/Base*/SC2_x64")
    parent = subprocess.Popen(
        ["sh", "-c", f"{launcher} -listen 127.0.0.1 -port 0 & echo $!; wait"], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    server = psutil.Process(int(parent.stdout.readline()))
    wait_until(lambda: server.net_connections("tcp"))
    parent.kill()
    parent.wait()
    parent.stdout.close()
    server.wait(CLOCK_SECONDS)
