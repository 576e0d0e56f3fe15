"""A saved battle is played again, or refused with a reason."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from s2rm_data.core.errors import UsageError
from s2rm_data.starcraft.api.server.game import REPLAY_FORMAT
from s2rm_data.starcraft.api.server.saved import is_replay, read_replay

SAVED = {"format": REPLAY_FORMAT, "map": "3m", "seed": 1, "begin_loop": 0, "loop": 8, "first_tag": 1, "whole": True}


@pytest.mark.parametrize(
    "change",
    [{"seed": 1e400}, {"loop": []}, {"events": [{"what": "move", "goal": []}]}, {"events": "x"}, {"seed": None}],
)
def test_odd_values_are_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    path = tmp_path / "battle.json"
    path.write_text(json.dumps({**SAVED, "events": [], **change}))
    with pytest.raises(UsageError, match="cannot be read as a battle"):
        read_replay(path)


def test_deep_brackets_and_pipes_are_refused(tmp_path: Path) -> None:
    (tmp_path / "deep").write_text("[" * 100_000)
    os.mkfifo(tmp_path / "pipe")
    assert not is_replay(tmp_path / "pipe")
    for name in ("deep", "pipe"):
        with pytest.raises(UsageError, match="cannot be read"):
            read_replay(tmp_path / name)
