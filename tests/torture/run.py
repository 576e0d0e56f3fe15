"""The runner: cases of all attacks in turn, for some minutes, from a seed; it continues where it stopped.

python tests/torture/run.py --minutes 60                 # all attacks
python tests/torture/run.py --attack kill --case 17      # one case again
python tests/torture/run.py --list
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from torture.at_work import kill_at_work, signals_at_work
from torture.cases import Finding, Workspace, generator
from torture.clients import clients
from torture.handed import cache_folder, config_file, parts, plugin, policy, replay_file, sweep
from torture.inputs import assignments, command_line
from torture.parts import kill_parts
from torture.processes import full_disk, kill, rivals, signals
from torture.services import bucket, viewer, wrong_actions
from torture.stores import damage, damage_run, hostile

# Attack -> function, and how many cases of it make one round.
ATTACKS: dict[str, tuple[Callable[..., int | None], int]] = {
    "damage": (damage, 10),
    "hostile": (hostile, 5),
    "damage_run": (damage_run, 5),
    "parts": (parts, 2),
    "cache_folder": (cache_folder, 2),
    "bucket": (bucket, 2),
    "config_file": (config_file, 5),
    "policy": (policy, 2),
    "plugin": (plugin, 2),
    "replay_file": (replay_file, 2),
    "sweep": (sweep, 2),
    "wrong_actions": (wrong_actions, 2),
    "viewer": (viewer, 1),
    "command_line": (command_line, 100),
    "assignments": (assignments, 50),
    "kill": (kill, 2),
    "kill_at_work": (kill_at_work, 12),
    "kill_parts": (kill_parts, 1),
    "signals": (signals, 3),
    "signals_at_work": (signals_at_work, 25),
    "full_disk": (full_disk, 1),
    "rivals": (rivals, 1),
    "clients": (clients, 1),
}


def run_case(attack: str, seed: int, number: int, workspace: Workspace) -> tuple[str, int]:
    """What was found, empty if nothing was; and how many blows were dealt (a case may hold several kills)."""
    try:
        blows = ATTACKS[attack][0](generator(seed, attack, number), workspace)
    except Finding as finding:
        return str(finding), 1
    except Exception:  # noqa: BLE001 - whatever it is, it is what is looked for
        return traceback.format_exc(), 1
    return "", 1 if blows is None else blows


class Session:
    """Counts and findings, kept in a file after every case."""

    def __init__(self, path: Path, seed: int) -> None:
        self.path = path
        self.state = {"seed": seed, "cases": {}, "blows": {}, "findings": []}
        if path.exists():
            saved = json.loads(path.read_text())
            self.state = {**self.state, **saved} if saved["seed"] == seed else self.state

    def next_number(self, attack: str) -> int:
        return int(self.state["cases"].get(attack, 0))  # type: ignore[union-attr]

    def record(self, attack: str, number: int, found: str, blows: int) -> None:
        self.state["cases"][attack] = number + 1  # type: ignore[index]
        dealt: dict[str, int] = self.state["blows"]  # type: ignore[assignment]
        dealt[attack] = dealt.get(attack, 0) + blows
        if found:
            self.state["findings"].append({"attack": attack, "case": number, "found": found})  # type: ignore[union-attr]
        self.path.write_text(json.dumps(self.state, indent=1))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--attack", action="append", choices=list(ATTACKS), help="only this one; may be repeated")
    parser.add_argument("--case", type=int, help="only this number of the attack")
    parser.add_argument("--work", type=Path, default=Path("torture"), help="folder for the workspace and the counts")
    parser.add_argument("--list", action="store_true", help="list the attacks")
    given = parser.parse_args()
    # A shell that starts this in the background has it ignore SIGINT, and so the programs that are to be interrupted.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if given.list:
        for name, (attack, _) in ATTACKS.items():
            print(f"{name:<14}{attack.__doc__ or ''}")
        return 0
    workspace = Workspace(given.work.absolute() / "workspace")
    chosen = given.attack or list(ATTACKS)
    if given.case is not None:
        return max(_one(name, given.seed, given.case, workspace) for name in chosen)
    return _many(chosen, given, workspace)


def _one(attack: str, seed: int, number: int, workspace: Workspace) -> int:
    found, _ = run_case(attack, seed, number, workspace)
    if found:
        print(f"python tests/torture/run.py --seed {seed} --attack {attack} --case {number}\n  {found}", flush=True)
    return int(bool(found))


def _many(chosen: list[str], given: argparse.Namespace, workspace: Workspace) -> int:
    session = Session(given.work.absolute() / "torture.json", given.seed)
    until = time.monotonic() + 60 * given.minutes
    while time.monotonic() < until:
        for attack in chosen:
            for _ in range(ATTACKS[attack][1]):
                if time.monotonic() >= until:
                    break
                number = session.next_number(attack)
                found, blows = run_case(attack, given.seed, number, workspace)
                session.record(attack, number, found, blows)
                if found:
                    command = f"python tests/torture/run.py --seed {given.seed} --attack {attack} --case {number}"
                    print(f"{command}\n  {found}", flush=True)
    print(f"cases {json.dumps(session.state['cases'])}\nblows {json.dumps(session.state['blows'])}")
    print(f"findings {len(session.state['findings'])}")
    return int(bool(session.state["findings"]))


if __name__ == "__main__":
    sys.exit(main())
