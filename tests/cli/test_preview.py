"""`s2rm-data preview`: options that worlds add. What it draws: test_data.py, test_sc2.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from s2rm_data.cli.data import data
from s2rm_data.core.errors import UsageError
from s2rm_data.store import Store


def preview(*arguments: str) -> str:
    return CliRunner().invoke(data, ["preview", *arguments], catch_exceptions=False).output


def test_the_help_says_which_world_an_option_is_of() -> None:
    shown = " ".join(preview("--help").split())
    assert "--seed NUMBER bballs: Seed of the crops' positions. [default: 0]" in shown
    assert "--agent NUMBER sc2: Whose polar images to draw. [default: who lives longest]" in shown


def test_an_option_of_another_world_is_refused(store: Store, tmp_path: Path) -> None:
    out = ("-o", str(tmp_path / "previews"))
    with pytest.raises(UsageError, match="--agent is an option of sc2, not of bballs, which has of its own: --seed"):
        preview(str(store.path), "bballs/val", "--agent", "1", *out)
    with pytest.raises(UsageError, match="--seed is an option of bballs, not of sc2"):
        preview(str(store.path), "sc2/1s2z/val", "--seed", "1", *out)
    with pytest.raises(UsageError, match="agent is 'x': it must be a whole number"):
        preview(str(store.path), "sc2/1s2z/val", "--agent", "x", *out)
    assert list(tmp_path.iterdir()) == []


def test_another_seed_looks_elsewhere(store: Store, tmp_path: Path) -> None:
    for seed in ("0", "1"):
        preview(str(store.path), "bballs/val", "--rows", "1", "--seed", seed, "-o", str(tmp_path / seed))
    pictures = [(tmp_path / seed / "bballs-val-0.png").read_bytes() for seed in ("0", "1")]
    assert pictures[0] != pictures[1]
