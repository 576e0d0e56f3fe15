"""`sc2-server` and `sc2 --backend`, in processes of their own as a user starts them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import websocket
from patience import CLOCK_SECONDS, finish
from program import run_forked
from s2clientprotocol import sc2api_pb2 as api

from s2rm_data.store import Store

SMALL = ["sc2", "--scenario", "3m", "--train", "3", "--val", "0"]


def start(*arguments: str, cwd: Path, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "s2rm_data", *arguments],
        cwd=cwd,
        env={**os.environ, **environment},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def run(*arguments: str, cwd: Path, **environment: str) -> tuple[int, str]:
    """Exit status and standard error, in which there is never a traceback."""
    status, _, err = run_forked("s2rm-data", *arguments, cwd=cwd, **environment)
    return status, err


@pytest.fixture(scope="module")
def game(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("installed")
    status, err = run("sc2-server", "install", "sc2", "--scenario", "7s4z_vs_3c", cwd=folder)
    assert status == 0, err
    assert f"SC2PATH={folder.resolve() / 'sc2'}" in err
    assert (folder / "sc2" / "Maps" / "SMAC_Maps" / "7s4z_vs_3c.SC2Map").exists()
    return folder / "sc2"


def test_the_game_and_the_engine_write_the_same_content(game: Path, tmp_path: Path) -> None:
    status, err = run(*SMALL, "-o", "game.zarr", cwd=tmp_path, SC2PATH=str(game))
    assert status == 0, err
    assert f"--backend starcraft2: the game in {game}" in err
    status, err = run(*SMALL, "-o", "engine.zarr", cwd=tmp_path, SC2PATH=str(tmp_path / "none"))
    assert status == 0, err
    assert "--backend engine: the embedded engine, although SC2PATH is set: no StarCraft II" in err
    stores = [Store(tmp_path / f"{name}.zarr")["sc2/3m/train"] for name in ("game", "engine")]
    assert stores[0].content_digest() == stores[1].content_digest()


def test_data_of_one_back_end_are_not_mixed_with_those_of_another(game: Path, tmp_path: Path) -> None:
    assert run(*SMALL, "--backend", "engine", cwd=tmp_path)[0] == 0
    status, err = run(*SMALL, "--backend", "starcraft2", "--shard-size", "200", cwd=tmp_path, SC2PATH=str(game))
    assert status == 5
    assert "backend: engine stored, starcraft2 asked for" in err


@pytest.mark.parametrize("folder", ["none", "."])
def test_no_game_is_one_message(folder: str, tmp_path: Path) -> None:
    status, err = run(*SMALL, "--backend", "starcraft2", cwd=tmp_path, SC2PATH=str(tmp_path / folder))
    assert status == 4
    assert "no StarCraft II: SC2PATH is" in err
    assert "s2rm-data sc2-server install DIR" in err
    assert not (tmp_path / "data.zarr").exists()


def test_a_folder_with_something_else_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    status, err = run("sc2-server", "install", "mine", cwd=tmp_path)
    assert status == 5
    assert "is left alone" in err


def test_a_taken_port_is_one_message(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        status, err = run("sc2-server", "run", "--port", port, cwd=tmp_path)
    assert status == 5
    assert f"port {port} of 127.0.0.1 is taken by another program; choose another --port" in err


def test_the_extra_is_named_when_it_is_missing(tmp_path: Path) -> None:
    (tmp_path / "websockets").mkdir()
    (tmp_path / "websockets" / "__init__.py").write_text("raise ModuleNotFoundError('gone', name='websockets')")
    status, err = run("sc2-server", "run", "--port", "0", cwd=tmp_path, PYTHONPATH=str(tmp_path))
    assert status == 4
    assert "pip install 's2rm-data[sc2]'" in err


def test_run_serves_until_it_is_interrupted(tmp_path: Path) -> None:
    process = start("sc2-server", "run", "--port", "0", cwd=tmp_path)
    assert process.stderr is not None
    address = process.stderr.readline().split()[-1]
    wire = websocket.create_connection(address, timeout=CLOCK_SECONDS)
    wire.send_binary(api.Request(ping=api.RequestPing(), id=3).SerializeToString())
    assert api.Response.FromString(wire.recv()).ping.game_version.startswith("s2rm-data")
    process.send_signal(signal.SIGINT)
    _, err = finish(process)
    wire.close()
    assert process.returncode == 130
    assert "Traceback" not in err
    assert "the server was stopped by a signal; 1 client sent away" in err
    assert "committed" not in err


def test_an_address_that_others_can_reach_is_warned_of(tmp_path: Path) -> None:
    process = start("sc2-server", "run", "--port", "0", "--listen", "0.0.0.0", cwd=tmp_path)
    assert process.stderr is not None
    assert "lets in everybody who can reach this machine" in process.stderr.readline()
    process.send_signal(signal.SIGTERM)
    finish(process)
    assert process.returncode == 130
