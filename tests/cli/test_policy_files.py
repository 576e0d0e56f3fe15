"""A trained policy's file makes a store; nobody who uses the store needs it."""

from __future__ import annotations

import hashlib
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
from program import run, run_forked

from s2rm_data.starcraft.envs import save_policy
from s2rm_data.store import Store

NAME = "own agents.safetensors"
TINY = ["--preset", "smoke", "--steps", "2", "--set", "width=2", "--set", "threads=1"]
SMALL = ["--train", "6", "--val", "3", "--test", "2", "--steps", "12", "--radial", "8", "--angular", "16"]


def network(seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    random = np.random.default_rng(seed)
    return [(random.normal(size=(8, 33)), np.zeros(8)), (random.normal(size=(9, 8)), np.zeros(9))]


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file, in a folder where nobody works."""
    path = tmp_path_factory.mktemp("agents") / NAME
    save_policy(path, network(0), "3m")
    return path


@pytest.fixture(scope="module")
def made(policy: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    status, _, err = run("sc2", "--scenario", "3m", "--policy", str(policy), *SMALL, "-q", cwd=folder)
    assert status == 0, err
    return folder / "data.zarr"


@pytest.mark.parametrize(
    "words",
    [
        ["info", "data.zarr"],
        ["verify", "data.zarr"],
        ["stats", "data.zarr", "-o", "stats"],
        ["preview", "data.zarr", "sc2/3m/train", "-o", "preview.png"],
        ["view", "data.zarr", "--export", "page.html"],
        ["export", "data.zarr", "sc2/3m/train", "-n", "2"],
        ["card", "data.zarr", "-o", "card"],
        ["repair", "data.zarr", "sc2/3m/train"],  # of a store in which nothing is damaged
        ["rename", "data.zarr", "sc2/3m/train", "sc2/3m_agents/train"],
    ],
    ids=lambda words: words[0],
)
def test_a_store_is_looked_at_without_the_file(words: list[str], made: Path, tmp_path: Path) -> None:
    shutil.copytree(made, tmp_path / "data.zarr")
    status, _, err = run(*words, cwd=tmp_path)
    assert status == 0, err


def test_a_store_is_trained_on_and_evaluated_without_the_file(made: Path, tmp_path: Path) -> None:
    for words in (
        ["s2rm-train", "--store", str(made), "--task", "sc2", *TINY, "--out", "run", "-q"],
        ["s2rm-eval", "--run", "run", "--quick", "-o", "report", "-q"],
    ):
        status, _, err = run_forked(*words, cwd=tmp_path)
        assert status == 0, err
    assert (tmp_path / "report/results.json").is_file()


def test_repair_asks_for_the_file_that_played_and_takes_no_other(policy: Path, made: Path, tmp_path: Path) -> None:
    shutil.copytree(made, tmp_path / "data.zarr")
    group = Store(made)["sc2/3m/train"]
    damaged = next(p for p in (tmp_path / "data.zarr/sc2/3m/train/reward").rglob("*") if p.name.startswith("c"))
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[:-1])
    wanted = f"it was played by the policy file {NAME} (SHA-256 {hashlib.sha256(policy.read_bytes()).hexdigest()})"
    words = ["repair", "data.zarr", group.path, "-q"]

    status, _, err = run(*words, cwd=tmp_path)
    assert status == 2 and f"{wanted}, which is not in this folder" in err

    save_policy(tmp_path / NAME, network(1), "3m")
    other = hashlib.sha256((tmp_path / NAME).read_bytes()).hexdigest()
    status, _, err = run(*words, cwd=tmp_path)
    assert status == 2 and wanted in err and f"another one (SHA-256 {other})" in err

    shutil.copy(policy, tmp_path / NAME)
    status, _, err = run(*words, cwd=tmp_path)
    assert status == 0, err
    assert damaged.read_bytes() == whole


def test_the_recorded_command_makes_the_split_again(made: Path, tmp_path: Path) -> None:
    group = Store(made)["sc2/3m/val"]
    status, _, err = run(*shlex.split(group.attributes["command"])[1:], "-q", cwd=tmp_path)
    assert status == 0, err
    assert Store(tmp_path / "data.zarr")[group.path].content_digest() == group.content_digest()
