"""A small fixed share of the torture, so that the suite notices when an attack or a defence stops working."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from torture.cases import Workspace
from torture.run import ATTACKS, Session, Stopped, _many, run_case

# Attack -> numbers of cases; of those that start programs, some whose programs are quick.
SHARE = {
    "damage": range(4),
    "hostile": range(15),
    "damage_run": range(8),
    "command_line": range(20),
    "assignments": range(15),
    "kill": (3,),
    "kill_at_work": (2, 3, 4, 7, 10),
    "kill_slow": (5,),
    "signals": (1, 2),
    "signals_at_work": (0, 2, 6),
    "signals_slow": (1,),
    "full_disk": (1,),
}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return Workspace(tmp_path_factory.mktemp("torture"))


@pytest.mark.costs(20)
@pytest.mark.parametrize("stride", [4, pytest.param(1, marks=pytest.mark.whole)])
@pytest.mark.parametrize("attack", list(ATTACKS))
def test_nothing_breaks(attack: str, stride: int, workspace: Workspace) -> None:
    for number in SHARE.get(attack, (0,))[::stride]:
        assert run_case(attack, 0, number, workspace)[0] == "", f"--seed 0 --attack {attack} --case {number}"


def test_an_attack_notices_what_breaks(workspace: Workspace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without the defence that it attacks, an attack finds something."""
    monkeypatch.setattr("torture.stores.verify", lambda path: type("Blind", (), {"problems": []})())
    assert any("unnoticed by verify" in run_case("damage", 0, number, workspace)[0] for number in range(3))


def test_the_next_case_is_of_the_attack_that_misses_most_of_its_aim(tmp_path: Path, monkeypatch, capsys) -> None:
    """And what was counted is found again, also after a signal, whose case is not counted."""
    ran: list[tuple[str, int]] = []

    def pretend(attack: str, seed: int, number: int, workspace: object) -> tuple[str, int]:
        ran.append((attack, number))
        if len(ran) == 8:
            os.kill(os.getpid(), signal.SIGTERM)
        return ("broken" if (attack, number) == ("kill", 1) else ""), ATTACKS[attack].aim // 10

    monkeypatch.setattr("torture.run.run_case", pretend)
    chosen = ["damage", "kill", "signals"]
    assert _many(chosen, 60, Session(tmp_path / "seed.json", 3), None) == 130
    assert ran[:7] == [*((name, 0) for name in chosen), *((name, 1) for name in chosen), ("damage", 2)]
    session = Session(tmp_path / "seed.json", 3)
    assert session.state["cases"] == {"damage": 3, "kill": 2, "signals": 2}  # ran[7] comes again
    table = capsys.readouterr().out
    assert "python tests/torture/run.py --seed 3 --attack kill --case 1\n  broken" in table
    assert any(line.split()[:4] == ["kill", "2", "6", "30"] for line in table.splitlines())
    assert min(chosen, key=session.reached) == "kill"
    assert issubclass(Stopped, BaseException) and not issubclass(Stopped, Exception)
