"""`s2rm-data sc2` as a user meets it; what it shares with `bballs` is tested there."""

from __future__ import annotations

import json
import random
import signal
import time
from pathlib import Path

import pytest
from program import run, start_forked
from toy import tree

from s2rm_data.starcraft.policies import POLICIES
from s2rm_data.store import Store

SMALL = ["sc2", "--scenario", "2s3z,1s2z", "--train", "12", "--val", "3", "--steps", "30", "--shard-size", "5"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    status, out, err = run(*SMALL, "--json", cwd=folder)
    assert status == 0, err
    assert json.loads(out)["made"] == 30
    return folder / "data.zarr"


def test_the_splits_are_those_asked_for(made: Path) -> None:
    store = Store(made)
    assert store.groups == ["sc2/1s2z/train", "sc2/1s2z/val", "sc2/2s3z/train", "sc2/2s3z/val"]
    assert len(store["sc2/2s3z/train"]) == 12
    assert store["sc2/2s3z/train"]["agent_position"].shape == (12, 30, 5, 2)


@pytest.mark.parametrize("options", [["-j", "1"], ["-j", "4", "-q"]])
def test_the_bytes_do_not_depend_on_the_number_of_workers(made: Path, tmp_path: Path, options: list[str]) -> None:
    assert run(*SMALL, *options, cwd=tmp_path)[0] == 0
    assert tree(tmp_path / "data.zarr") == tree(made)


def test_the_content_digest_does_not_depend_on_the_shard_size(made: Path, tmp_path: Path) -> None:
    assert run(*SMALL, "--shard-size", "100", cwd=tmp_path)[0] == 0
    for group in Store(made).groups:
        assert Store(tmp_path / "data.zarr")[group].content_digest() == Store(made)[group].content_digest()


def test_the_recorded_command_makes_the_split_again(made: Path, tmp_path: Path) -> None:
    words = Store(made)["sc2/1s2z/val"].attributes["command"].split()
    assert run(*words[1:], cwd=tmp_path)[0] == 0
    again = Store(tmp_path / "data.zarr")["sc2/1s2z/val"]
    assert again.content_digest() == Store(made)["sc2/1s2z/val"].content_digest()


def test_kills_leave_the_same_bytes_after_resuming(made: Path, tmp_path: Path) -> None:
    path, rng, killed = tmp_path / "data.zarr", random.Random(0), 0
    for _ in range(2):
        shards = len(list(path.rglob("seed/c.*")))
        process = start_forked(*SMALL, cwd=tmp_path)
        while process.poll() is None and len(list(path.rglob("seed/c.*"))) == shards:
            time.sleep(0.002)
        time.sleep(rng.random() * 0.02)
        process.kill()
        process.communicate()
        killed += process.returncode == -signal.SIGKILL
    assert killed >= 1
    assert run(*SMALL, cwd=tmp_path)[0] == 0
    assert tree(path) == tree(made)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ([], "name one, as in --scenario 3s5z, or take --preset paper"),
        (["--scenario", "3s5x"], "3s5z"),
        (["--scenario", ""], "scenario"),
        (["--scenario", "400z"], "fit"),
        (["--scenario", "3s5z", "--policy", "kit"], "did you mean 'kite'"),
        (["--scenario", "3s5z", "--epsilon", "1.5"], "from 0 to 1"),
        (["--scenario", "3s5z", "--steps", "0"], "1 to 1000"),
        (["--scenario", "3s5z", "--radial", "0"], "radial"),
        (["--scenario", "3s5z", "--angular", "-4"], "angular"),
        (["--scenario", "3s5z", "--radius", "nan"], "radius"),
        (["--scenario", "3s5z", "--preset", "paper"], "leave out either"),
        (["--scenario", "3s5z", "--backend", "game"], "--backend"),
        (["--scenario", "3s5z", "--train", "0", "--val", "0"], "nothing to make"),
        (["--scenario", "3s5z", "--workers", "0"], "allowed are 1 to 1024"),
    ],
)
def test_bad_options_get_one_message(tmp_path: Path, options: list[str], says: str) -> None:
    status, out, err = run("sc2", *options, cwd=tmp_path)
    assert (status, out) == (2, "")
    assert says in err
    assert list(tmp_path.iterdir()) == []


def test_other_settings_on_the_same_store_are_refused(made: Path) -> None:
    before = tree(made)
    for options in (["--seed", "1"], ["--policy", "kite"], ["--radial", "12"]):
        status, _, err = run(*SMALL, *options, cwd=made.parent)
        assert status == 5
        assert "with other settings" in err
        assert "layout of" not in err  # the option that differs says enough
    assert tree(made) == before


def test_balls_and_battles_share_a_store(made: Path) -> None:
    assert run("bballs", "--balls", "2", "--train", "4", "--val", "0", "--test", "0", cwd=made.parent)[0] == 0
    assert "bballs/train" in Store(made)
    assert run("verify", "data.zarr", cwd=made.parent)[0] == 0


def test_the_list_names_scenarios_and_policies(tmp_path: Path) -> None:
    status, out, _ = run("sc2", "--list", cwd=tmp_path)
    assert status == 0
    for name in ("3s5z", "MMM2", "2c_vs_64zg", "mixed", "kite"):
        assert name in out


def test_every_policy_is_listed_as_it_describes_itself(tmp_path: Path) -> None:
    listed = run("sc2", "--list", cwd=tmp_path)[1]
    for name in POLICIES.names():
        assert POLICIES.load(name).description in listed


def test_preview_draws_a_battle(made: Path, tmp_path: Path) -> None:
    from PIL import Image

    status, out, err = run("preview", str(made), "sc2/1s2z/val", "--rows", "2", cwd=tmp_path)
    assert status == 0, err
    gif_path, png_path = out.splitlines()
    with Image.open(tmp_path / gif_path) as gif, Image.open(tmp_path / png_path) as png:
        assert gif.n_frames == int(Store(made)["sc2/1s2z/val"]["length"][0])
        assert png.height > gif.height
    assert run("preview", str(made), "sc2/1s2z/val", "--agent", "7", cwd=tmp_path)[0] == 2
