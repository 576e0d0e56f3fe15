"""A served engine laid out as StarCraft II, and games of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from s2rm_data.starcraft.api.client.process import Games
from s2rm_data.starcraft.api.server.install import install


@pytest.fixture(scope="session")
def game_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("game") / "sc2"
    install(folder)
    return folder


@pytest.fixture
def sc2path(game_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SC2PATH", str(game_folder))
    return game_folder


@pytest.fixture(scope="session")
def games(game_folder: Path) -> Iterator[Games]:
    """One process for many tests; it starts with the first episode."""
    with pytest.MonkeyPatch.context() as patch, Games() as running:
        patch.setenv("SC2PATH", str(game_folder))
        yield running
