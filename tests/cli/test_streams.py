"""Standard streams that are closed, full or gone decide neither what a command does nor how it ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from patience import complete
from program import run
from toy import tree

from s2rm_data.starcraft.policies._network import save_network

SMALL = "bballs --balls 1 --train 6 --val 0 --test 0 --frames 5 --seed 3"


def shell(command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run `s2rm-data` through a shell, with the shell's redirections."""
    program = f"{sys.executable} -m s2rm_data"
    done = complete(["bash", "-c", command.replace("s2rm-data", program)], cwd=cwd, text=True)
    assert "Traceback" not in done.stderr, done.stderr
    return done


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("streams")
    assert shell(f"s2rm-data {SMALL}", path).returncode == 0
    return path / "data.zarr"


@pytest.mark.parametrize("redirection", [">&-", "2>&-", "2>/dev/full", "<&- >&- 2>&-", ">&- 2>/dev/full"])
def test_a_store_is_made_all_the_same(made: Path, tmp_path: Path, redirection: str) -> None:
    assert shell(f"s2rm-data {SMALL} --json {redirection}", tmp_path).returncode == 0
    assert tree(tmp_path / "data.zarr") == tree(made)


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full", ">&- 2>&-"])
@pytest.mark.parametrize(
    ("command", "status"), [("info missing.zarr", 2), ("info --nonsense", 2), ("bballs --balls 1 --radius 99", 2)]
)
def test_errors_keep_their_status(tmp_path: Path, redirection: str, command: str, status: int) -> None:
    assert shell(f"s2rm-data {command} {redirection}", tmp_path).returncode == status


def test_output_that_cannot_be_written_is_an_error(made: Path) -> None:
    done = shell(f"s2rm-data info {made} > /dev/full", made.parent)
    assert done.returncode == 6
    assert "No space left on device" in done.stderr


def test_a_reader_who_has_seen_enough_is_no_error(made: Path) -> None:
    done = shell(f"set -o pipefail; s2rm-data info {made} --json | head -c 5 > /dev/null", made.parent)
    assert done.returncode == 0 and done.stderr == ""


@pytest.mark.parametrize(("encoding", "shown"), [("utf-8:strict", b"\xff\xc3\xa9.zarr"), ("ascii:strict", b".zarr")])
def test_a_path_of_any_bytes_is_shown(made: Path, tmp_path: Path, encoding: str, shown: bytes) -> None:
    path = tmp_path / os.fsdecode(b"\xff\xc3\xa9.zarr")
    path.symlink_to(made)
    words = [sys.executable, "-m", "s2rm_data", "info", path]
    done = complete(words, env={**os.environ, "PYTHONIOENCODING": encoding})
    assert done.returncode == 0 and shown in done.stdout, done.stderr


def test_a_name_that_cannot_be_stored_is_one_message(tmp_path: Path) -> None:
    name = os.fsdecode(b"\xff.safetensors")
    save_network(tmp_path / name, [(np.zeros((9, 33)), np.zeros(9))], "3m")
    status, _, err = run("sc2", "--scenario", "3m", "--train", "2", "--val", "0", "--policy", name, cwd=tmp_path)
    assert status == 2
    assert "is not text (UTF-8), as it must be here; use another name" in err
