"""Which back end `--backend auto` takes, and why."""

from __future__ import annotations

import os
from dataclasses import dataclass

from s2rm_data.errors import MissingComponentError
from s2rm_data.generators.sc2.api.client.process import game_folder
from s2rm_data.generators.sc2.api.packages import require_pysc2

ENGINE, STARCRAFT2, AUTO = "engine", "starcraft2", "auto"


@dataclass(frozen=True, kw_only=True)
class Choice:
    backend: str
    why: str


def choose(asked: str) -> Choice:
    """The back end to use. `starcraft2` without a game or its packages is an error; `auto` then takes the engine."""
    if asked == ENGINE:
        return Choice(backend=ENGINE, why="as asked")
    try:
        folder = game_folder()
    except MissingComponentError as missing:
        if asked == STARCRAFT2:
            raise
        if "SC2PATH" in os.environ:  # who sets it wants the game: say what is wrong with it
            return Choice(backend=ENGINE, why=f"the embedded engine, although SC2PATH is set: {missing}")
        return Choice(backend=ENGINE, why="the embedded engine, since there is no StarCraft II (SC2PATH)")
    try:
        require_pysc2()
    except MissingComponentError as missing:
        if asked == STARCRAFT2:
            raise
        return Choice(backend=ENGINE, why=f"the embedded engine, although there is a game in {folder}: {missing}")
    return Choice(backend=STARCRAFT2, why="as asked" if asked == STARCRAFT2 else f"the game in {folder}")
