"""Commands run as a user runs them, each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import forking

STARTED = [sys.executable, "-m", "s2rm_data"]


def start(*arguments: str, cwd: Path, **options: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*STARTED, *arguments],
        cwd=cwd,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,  # type: ignore[call-overload]
    )


def run(*arguments: str, cwd: Path, **options: object) -> tuple[int, str, str]:
    """Exit status, standard output, standard error; a traceback is never what a user should see.

    Without further options the process is forked, which saves it the imports.
    """
    command = [*(STARTED if options else forking.command("s2rm-data")), *arguments]
    done = subprocess.run(command, cwd=cwd, text=True, capture_output=True, timeout=300, check=False, **options)  # type: ignore[call-overload]
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout, done.stderr


def output_of(code: str, **environment: str) -> str:
    """What a program of Python prints; its warnings are not ours (the generator's integers overflow on purpose)."""
    command = [sys.executable, "-W", "ignore", "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | environment).stdout
