"""A folder that clients take for StarCraft II: a launcher where the game would be, and a file for every map."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

from s2rm_data.core.errors import ConflictError, DiskError
from s2rm_data.starcraft import scenarios
from s2rm_data.starcraft.api.server.game import BATTLE_SUFFIX, FLAT_MAP

BUILD = 75689  # pysc2 and python-sc2 take the highest Base number; this one is 4.10.0, whose data the engine follows
MARK = "s2rm-data map"
_MARKER = "s2rm-data.json"

_LAUNCHER = """#!/bin/sh
# Started by pysc2, SMAC or python-sc2 as if it were StarCraft II; serves the s2rm-data engine instead.
unset PYTHONPATH PYTHONHOME PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION_VERSION
exec {python} -P -m s2rm_data.starcraft.api.server.serve "$@"
"""


def install(folder: Path, extra_scenarios: tuple[str, ...] = ()) -> list[Path]:
    """Lay out `folder`; the files written. Refuses a folder that holds anything but an earlier layout of its own."""
    names = [*scenarios.names(), *(name for name in extra_scenarios if scenarios.parse(name))]
    _check_place(folder)
    files = {
        folder / _MARKER: json.dumps({"made_by": "s2rm-data sc2-server install", "build": BUILD}) + "\n",
        folder / "Versions" / f"Base{BUILD}" / "SC2_x64": _LAUNCHER.format(python=shlex.quote(sys.executable)),
    }
    files[folder / "Maps" / "SMAC_Maps" / f"{FLAT_MAP}.SC2Map"] = f"{MARK}: {FLAT_MAP}\n"
    for name in dict.fromkeys(names):
        files[folder / "Maps" / "SMAC_Maps" / f"{name}.SC2Map"] = f"{MARK}: {name}\n"
        files[folder / "Maps" / "Battles" / f"{name}{BATTLE_SUFFIX}.SC2Map"] = f"{MARK}: {name}{BATTLE_SUFFIX}\n"
    try:
        for path, text in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        (folder / "Versions" / f"Base{BUILD}" / "SC2_x64").chmod(0o755)
        (folder / "Replays").mkdir(exist_ok=True)
    except OSError as error:
        raise DiskError(f"{error.filename or folder}: {error.strerror}") from None
    return list(files)


def _check_place(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise ConflictError(f"{folder} is a file; give a folder that does not exist yet")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / _MARKER).exists():
        raise ConflictError(
            f"{folder} holds something else, perhaps a StarCraft II, and is left alone; "
            "give a folder that does not exist yet"
        )


def placeholder_name(data: bytes) -> str:
    """The map's name in the content of a file laid out by `install`; empty for anything else."""
    mark, _, name = data[:200].decode("ascii", "replace").partition(": ")
    return name.strip() if mark == MARK else ""
