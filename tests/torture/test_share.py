"""A small fixed share of the torture, so that the suite notices when an attack or a defence stops working."""

from __future__ import annotations

from pathlib import Path

import pytest

from torture.cases import Workspace
from torture.run import ATTACKS, run_case

SHARE = {"damage": 4, "hostile": 15, "damage_run": 8, "command_line": 20, "assignments": 15, "signals": 2}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return Workspace(tmp_path_factory.mktemp("torture"))


@pytest.mark.parametrize("attack", list(ATTACKS))
def test_nothing_breaks(attack: str, workspace: Workspace) -> None:
    for number in range(SHARE.get(attack, 1)):
        assert run_case(attack, 0, number, workspace)[0] == "", f"--seed 0 --attack {attack} --case {number}"


def test_an_attack_notices_what_breaks(workspace: Workspace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without the defence that it attacks, an attack finds something."""
    monkeypatch.setattr("torture.stores.verify", lambda path: type("Blind", (), {"problems": []})())
    assert any("unnoticed by verify" in run_case("damage", 0, number, workspace)[0] for number in range(3))
