"""Standard streams that are closed, full or gone decide neither what a command does nor how it ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from toy import tree

SMALL = "bballs --balls 1 --train 6 --val 0 --test 0 --frames 5 --seed 3"


def shell(command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run `s2rm-data` through a shell, with the shell's redirections."""
    program = f"{sys.executable} -m s2rm_data"
    done = subprocess.run(
        ["bash", "-c", command.replace("s2rm-data", program)], cwd=cwd, capture_output=True, text=True, timeout=120
    )
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
