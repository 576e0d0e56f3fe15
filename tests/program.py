"""Commands run as a user runs them, each in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def start(*arguments: str, cwd: Path, **options: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "s2rm_data", *arguments]
    return subprocess.Popen(
        command,
        cwd=cwd,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,  # type: ignore[call-overload]
    )


def run(*arguments: str, cwd: Path, **options: object) -> tuple[int, str, str]:
    """Exit status, standard output, standard error; a traceback is never what a user should see."""
    process = start(*arguments, cwd=cwd, **options)
    out, err = process.communicate(timeout=300)
    assert "Traceback" not in err, err
    return process.returncode, out, err
