"""Attacks on the command line and on configs: words and values that nobody would give."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import random
import string
from pathlib import Path
from typing import Any

import click

from s2rm_data.core.errors import S2RMError
from torture.cases import Finding, Workspace, bounded

WORDS = [
    "", " ", "-", "--", "0", "-1", "1", "3", "1-6", "6-1", "1,2", "1e9", "1e400", "nan", "inf", "-0.0", "9" * 30,
    "9" * 5000, "[" * 500, "{}", "null", "true", "a=b", "=", "../x", "/dev/null", "/etc/passwd", "~", "\x1b[2J", "é",
    "a" * 5000, "3s5z", "27m_vs_30m", "99z", "0m", "3m_vs_", "bballs/train", "toy/train", "toy/val", "--help",
    "toy.zarr", "toy.zarr", "toy.zarr", ".", "missing", "npz", "hdf5", "gif",
]  # fmt: skip


def word(rng: random.Random) -> str:
    if rng.random() < 0.2:
        return "".join(rng.choice(string.printable) for _ in range(rng.randint(0, 20))).lstrip("/~.")
    return rng.choice(WORDS)


@functools.cache
def _commands() -> list[tuple[list[str], click.Command]]:
    from s2rm_data.cli.data import data

    context = click.Context(data)
    # What serves or shows a window does not end by itself.
    names = [name for name in data.list_commands(context) if name not in ("sc2-server", "view")]
    return [([name], command) for name in names if (command := data.get_command(context, name))]


def command_line(rng: random.Random, workspace: Workspace) -> None:
    """A random command with random words: a message and a status, never another exception; nothing outside is made."""
    from s2rm_data.cli.data import data

    names, command = rng.choice(_commands())
    options = [name for parameter in command.params for name in parameter.opts if name.startswith("-")]
    drawn = [rng.choice(options) if options and rng.random() < 0.5 else word(rng) for _ in range(rng.randint(0, 6))]
    line = [*names, *(w for w in drawn if w not in ("--plugin", "-j", "--workers"))]
    if "--dry-run" in options:
        line.append("--dry-run")
    with workspace.borrowed(workspace.toy) as copy, _inside(copy.folder), bounded():
        _run(data, line)


@contextlib.contextmanager
def _inside(folder: Path) -> Any:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _run(command: click.Command, line: list[str]) -> None:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            command.main(args=line, prog_name="s2rm-data", standalone_mode=False)
        except (S2RMError, click.ClickException, click.Abort, SystemExit, OSError):
            return
        except Finding:
            raise
        except Exception as error:
            raise Finding(f"{type(error).__name__}: {error!s:.300} from {line!s:.500}") from error


def assignments(rng: random.Random, workspace: Workspace) -> None:
    """Random values for random fields of a run: a message, or a config."""
    from s2rm_data.training.config import parse_assignments, settable_names
    from s2rm_data.training.resolve import Overrides, resolve

    model = rng.choice(["s2gru", "s2rmc", "lstm", "rmc", "rims", "tto"])
    own, of_model = settable_names(model, "bballs")
    names = [*own, *of_model, word(rng)]
    texts = tuple(f"{rng.choice(names)}={word(rng)}" for _ in range(rng.randint(1, 4)))
    with bounded():
        try:
            fields = parse_assignments(texts)
            overrides = Overrides(task="bballs", model=model, preset="smoke", device="cpu", fields=fields)
            resolve(workspace.opened, overrides, lambda text: None)
        except S2RMError:
            return
        except Finding:
            raise
        except Exception as error:
            raise Finding(f"{type(error).__name__}: {error!s:.300} from {texts!s:.500}") from error
