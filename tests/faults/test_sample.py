"""A fixed share of the faults, so that the suite notices when a command or the search for its faults breaks."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).with_name("run.py")
SHARE = (
    "bballs, new store", "merge", "rename", "remove", "export gif, overwrite", "train, overwrite", "rename, bucket",
    "remove, bucket",
)  # fmt: skip

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or not shutil.which("cc"), reason="faults need Linux and a C compiler"
)


def run(work: Path, *words: str) -> tuple[int, str]:
    done = subprocess.run([sys.executable, RUN, "--work", work, *words], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.costs(60)
def test_no_fault_of_the_share_breaks_a_command(tmp_path: Path) -> None:
    chosen = (word for name in SHARE for word in ("--command", name))
    status, said = run(tmp_path, "--minutes", "all", "--most", "20", *chosen)
    assert status == 0, said
    counts = {name: int(count) for name, count in re.findall(r"^(\S.*?) {2,}(\d+)", said, re.MULTILINE)}
    assert all(counts[name] > 10 for name in SHARE), said


@pytest.mark.costs(15)
def test_a_fault_that_breaks_a_command_is_found(tmp_path: Path) -> None:
    """A remove that commits before it writes down what it is about to remove leaves files for ever."""
    hook = tmp_path / "hook"
    hook.mkdir()
    (hook / "sitecustomize.py").write_text(
        "import s2rm_data.store.intent as intent\nintent.Intent.begin = lambda self, place: None\n"
    )
    work = {"PYTHONPATH": str(hook)}
    words = [sys.executable, RUN, "--work", tmp_path, "--minutes", "all", "--most", "120", "--command", "remove"]
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, **work})
    assert done.returncode == 1 and "is left over" in done.stdout, done.stdout + done.stderr
