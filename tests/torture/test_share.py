"""A small fixed share of the torture, so that the suite notices when an attack or a defence stops working."""

from __future__ import annotations

from pathlib import Path

import pytest

from torture.cases import Workspace
from torture.run import ATTACKS, run_case

# Attack -> numbers of cases; of those that start programs, some whose programs are quick.
SHARE = {
    "damage": range(4),
    "hostile": range(15),
    "damage_run": range(8),
    "command_line": range(20),
    "assignments": range(15),
    "kill": (3,),
    "kill_at_work": (2, 3, 4, 7, 10),
    "signals": (1, 2),
    "signals_at_work": (0, 2, 6),
    "full_disk": (1,),
}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return Workspace(tmp_path_factory.mktemp("torture"))


@pytest.mark.parametrize("attack", list(ATTACKS))
def test_nothing_breaks(attack: str, workspace: Workspace) -> None:
    for number in SHARE.get(attack, (0,)):
        assert run_case(attack, 0, number, workspace)[0] == "", f"--seed 0 --attack {attack} --case {number}"


def test_an_attack_notices_what_breaks(workspace: Workspace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without the defence that it attacks, an attack finds something."""
    monkeypatch.setattr("torture.stores.verify", lambda path: type("Blind", (), {"problems": []})())
    assert any("unnoticed by verify" in run_case("damage", 0, number, workspace)[0] for number in range(3))
