"""Games that die, hang, talk nonsense or are not there: each ends in another try or in one clear message."""

from __future__ import annotations

import os
import signal
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from s2rm_data.core.errors import MissingComponentError, S2RMError
from s2rm_data.generators.sc2.making.battle_config import Sc2Config
from s2rm_data.generators.sc2.making.battle_source import play
from s2rm_data.generators.sc2.making.game_split import play_episode
from s2rm_data.starcraft.api.client import process
from s2rm_data.starcraft.api.client.battle import GameBattle
from s2rm_data.starcraft.api.client.process import Games, choose

CONFIG = Sc2Config(scenario="3m", policy="smac")
SEED = 11


def pids(games: Games) -> list[int]:
    return [game._process.pid for game in games._all]


def fail_in_step(number: int, times: int, act: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Do something to the game before step `number` of each of the first `times` tries; the list counts the tries."""
    steps, tries = [0], []
    begin, step = GameBattle.__init__, GameBattle.step

    def counted(self: GameBattle, *arguments: object) -> None:
        steps[0] = 0
        tries.append(1)
        begin(self, *arguments)  # type: ignore[arg-type]

    def disturbed(self: GameBattle, actions: object) -> None:
        steps[0] += 1
        if steps[0] == number and len(tries) <= times:
            act()
        step(self, actions)  # type: ignore[arg-type]

    monkeypatch.setattr(GameBattle, "__init__", counted)
    monkeypatch.setattr(GameBattle, "step", disturbed)
    return tries


@pytest.mark.usefixtures("sc2path")
@pytest.mark.parametrize(("fault", "seconds"), [(signal.SIGKILL, 60), (signal.SIGSTOP, 12)], ids=["killed", "stalled"])
def test_an_episode_is_played_again_from_its_seed_when_the_game_fails(
    fault: signal.Signals, seconds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Games(response_seconds=seconds) as games:
        tries = fail_in_step(7, 1, lambda: os.kill(pids(games)[0], fault), monkeypatch)
        record = play_episode(games, CONFIG, SEED)
        first = pids(games)
    assert len(tries) == 2
    assert len(first) == 1
    want = play(CONFIG, np.array([SEED], dtype=np.uint64))
    assert all(np.array_equal(record[name], want[name]) for name in want)


@pytest.mark.usefixtures("sc2path")
def test_after_three_tries_there_is_one_error_and_no_process_left(monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[int] = []

    with Games(response_seconds=60) as games:

        def kill() -> None:
            killed.extend(pids(games))
            os.kill(pids(games)[0], signal.SIGKILL)

        fail_in_step(3, 99, kill, monkeypatch)
        with pytest.raises(S2RMError, match=f"failed 3 times in the episode of seed {SEED}"):
            play_episode(games, CONFIG, SEED)
        assert not games._all
    assert len(set(killed)) == 3
    for pid in killed:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def fake_game(folder: Path, program: str) -> Path:
    """A folder whose game is a Python program of the test."""
    launcher = folder / "Versions" / "Base75689" / "SC2_x64"
    launcher.parent.mkdir(parents=True)
    (folder / "program.py").write_text(textwrap.dedent(program))
    launcher.write_text(f'#!/bin/sh\nexec {sys.executable} {folder}/program.py "$@"\n')
    launcher.chmod(0o755)
    return folder


GARBAGE = """
    import asyncio, sys
    from websockets.asyncio.server import serve
    async def play(connection):
        while True:
            await connection.recv(decode=False)
            await connection.send(b"\\xff\\xff this is no protobuf")
    async def main():
        async with serve(play, "127.0.0.1", int(sys.argv[sys.argv.index("-port") + 1])) as server:
            await server.serve_forever()
    asyncio.run(main())
"""


@pytest.mark.parametrize(
    ("program", "says"),
    [
        (GARBAGE, "failed 3 times"),
        ("raise SystemExit(1)", "failed 3 times"),
        ("import time; time.sleep(60)", "failed 3"),
    ],
    ids=["garbage", "dies at once", "never listens"],
)
def test_a_program_that_is_no_game_is_given_up(
    program: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SC2PATH", str(fake_game(tmp_path / "fake", program)))
    with Games(response_seconds=3) as games, pytest.raises(S2RMError, match=says):
        play_episode(games, CONFIG, SEED)


def test_a_launcher_that_cannot_run_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = fake_game(tmp_path / "fake", "")
    (folder / "Versions" / "Base75689" / "SC2_x64").chmod(0o644)
    monkeypatch.setenv("SC2PATH", str(folder))
    with Games() as games, pytest.raises(MissingComponentError, match=r"cannot be started: .*isn't executable"):
        play_episode(games, CONFIG, SEED)


def test_a_missing_map_says_where_to_get_it(sc2path: Path) -> None:
    path = sc2path / "Maps" / "SMAC_Maps" / "8m.SC2Map"
    content = path.read_bytes()
    path.unlink()
    try:
        with (
            Games() as games,
            pytest.raises(MissingComponentError, match=r"SMAC_Maps/8m\.SC2Map is not in .*oxwhirl/smac"),
        ):
            play_episode(games, Sc2Config(scenario="8m"), SEED)
    finally:
        path.write_bytes(content)


@pytest.mark.usefixtures("sc2path")
def test_a_map_that_the_game_refuses_is_no_reason_to_try_again(monkeypatch: pytest.MonkeyPatch) -> None:
    request = GameBattle._request

    def other(self: GameBattle, *arguments: object) -> object:
        asked = request(self, *arguments)  # type: ignore[arg-type]
        asked.local_map.map_path = "SMAC_Maps/3x.SC2Map"
        return asked

    monkeypatch.setattr(GameBattle, "_request", other)
    with Games() as games, pytest.raises(S2RMError, match=r"refuses the map SMAC_Maps/3x\.SC2Map: .*no scenario '3x'"):
        play_episode(games, CONFIG, SEED)


@pytest.mark.usefixtures("sc2path")
def test_a_worn_process_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "EPISODES_PER_PROCESS", 2)
    seen = []
    with Games() as games:
        for _ in range(3):
            with games.game() as game:
                seen.append(game._process.pid)
                game.episodes += 1
    assert seen[0] == seen[1] != seen[2]


def test_without_a_game_auto_takes_the_engine_and_starcraft2_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder, says in ((tmp_path / "none", "no such folder"), (tmp_path, "holds no Versions/Base")):
        monkeypatch.setenv("SC2PATH", str(folder))
        assert choose("auto").backend == "engine"
        assert "no StarCraft II" in choose("auto").why
        with pytest.raises(MissingComponentError, match=f"{says}.*sc2-server install"):
            choose("starcraft2")
    monkeypatch.delenv("SC2PATH")
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(MissingComponentError, match="SC2PATH is not set"):
        choose("starcraft2")


def test_with_a_game_auto_takes_it(sc2path: Path) -> None:
    choice = choose("auto")
    assert (choice.backend, choice.why) == ("starcraft2", f"the game in {sc2path}")
    assert choose("engine").backend == "engine"
