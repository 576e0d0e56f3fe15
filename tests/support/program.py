"""Commands run as a user runs them, each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from forking import Forked
from patience import complete, finish

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


def start_forked(*arguments: str, cwd: Path) -> Forked:
    """The same at once, where what is looked at is not the start."""
    return Forked("s2rm-data", *arguments, cwd=cwd)


def run(*arguments: str, cwd: Path, **options: object) -> tuple[int, str, str]:
    """Exit status, standard output, standard error; a traceback is never what a user should see.

    Without further options the process is forked, which saves it the imports.
    """
    if not options:
        return run_forked("s2rm-data", *arguments, cwd=cwd)
    done = complete([*STARTED, *arguments], cpu_seconds=300, cwd=cwd, text=True, **options)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout, done.stderr


def run_forked(*words: str, cwd: Path | None = None, **environment: str) -> tuple[int, str, str]:
    """The same for any of the programs."""
    process = Forked(*words, cwd=cwd, environment=environment)
    out, err = finish(process, cpu_seconds=300)
    assert "Traceback" not in err, err
    return process.wait(), out, err


def output_of(code: str, **environment: str) -> str:
    """What a program of Python prints; its warnings are not ours (the generator's integers overflow on purpose)."""
    command = [sys.executable, "-W", "ignore", "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | environment).stdout
