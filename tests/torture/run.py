"""The runner: cases of all attacks, for some minutes, from a seed; it continues where it was stopped.

Every attack has an aim. The next case is always of the attack of whose aim the largest part is missing, so that all
of them get there together; beyond the aims it goes on in the same way until the time is over. SIGINT and SIGTERM end
it at once: the case that they interrupt is not counted, and comes again when the runner is started again.

python tests/torture/run.py --minutes 60                 # all attacks
python tests/torture/run.py --attack kill --case 17      # one case again
python tests/torture/run.py --minutes 0                  # only the counts so far
python tests/torture/run.py --list
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from torture.at_work import kill_at_work, kill_slow, signals_at_work, signals_slow
from torture.cases import Finding, Workspace, generator
from torture.clients import clients
from torture.handed import cache_folder, config_file, parts, plugin, policy, replay_file, sweep
from torture.inputs import assignments, command_line
from torture.parts import kill_parts
from torture.processes import full_disk, kill, rivals, signals
from torture.services import bucket, viewer, wrong_actions
from torture.stores import damage, damage_run, hostile


@dataclass(frozen=True)
class Attack:
    """What one case does, what its blows are, and how many of them are aimed at (a case may hold several)."""

    case: Callable[..., int | None]
    blow: str
    aim: int


ATTACKS = {
    "damage": Attack(damage, "damages", 7000),
    "damage_run": Attack(damage_run, "damages", 2000),
    "parts": Attack(parts, "damages", 450),
    "cache_folder": Attack(cache_folder, "damages", 450),
    "bucket": Attack(bucket, "damages", 100),
    "hostile": Attack(hostile, "inputs", 2500),
    "command_line": Attack(command_line, "inputs", 4000),
    "assignments": Attack(assignments, "inputs", 1500),
    "config_file": Attack(config_file, "inputs", 1000),
    "policy": Attack(policy, "inputs", 200),
    "plugin": Attack(plugin, "inputs", 200),
    "replay_file": Attack(replay_file, "inputs", 200),
    "sweep": Attack(sweep, "inputs", 200),
    "wrong_actions": Attack(wrong_actions, "inputs", 100),
    "viewer": Attack(viewer, "inputs", 100),
    "kill_at_work": Attack(kill_at_work, "kills", 900),
    "kill_slow": Attack(kill_slow, "kills", 40),
    "kill": Attack(kill, "kills", 30),
    "kill_parts": Attack(kill_parts, "kills", 30),
    "signals_at_work": Attack(signals_at_work, "signals", 920),
    "signals_slow": Attack(signals_slow, "signals", 40),
    "signals": Attack(signals, "signals", 40),
    "full_disk": Attack(full_disk, "full disks", 15),
    "rivals": Attack(rivals, "rivals", 5),
    "clients": Attack(clients, "clients", 10),
}


class Stopped(BaseException):
    """A signal has come."""


def run_case(attack: str, seed: int, number: int, workspace: Workspace) -> tuple[str, int]:
    """What was found, empty if nothing was; and how many blows were dealt."""
    try:
        blows = ATTACKS[attack].case(generator(seed, attack, number), workspace)
    except Finding as finding:
        return str(finding), 1
    except Exception:  # noqa: BLE001 - whatever it is, it is what is looked for
        return traceback.format_exc(), 1
    return "", 1 if blows is None else blows


class Session:
    """Counts, findings and seconds of one seed, kept in a file after every case."""

    def __init__(self, path: Path, seed: int) -> None:
        self.path = path
        self.state: dict[str, Any] = {"seed": seed, "cases": {}, "blows": {}, "seconds": {}, "findings": []}
        if path.exists():
            self.state.update(json.loads(path.read_text()))

    def next_number(self, attack: str) -> int:
        return int(self.state["cases"].get(attack, 0))

    def reached(self, attack: str) -> float:
        """The part of an attack's aim that is reached."""
        return float(self.state["blows"].get(attack, 0)) / ATTACKS[attack].aim

    def record(self, attack: str, number: int, found: str, blows: int, seconds: float) -> None:
        self.state["cases"][attack] = number + 1
        for counts, more in ((self.state["blows"], blows), (self.state["seconds"], round(seconds, 3))):
            counts[attack] = counts.get(attack, 0) + more
        if found:
            self.state["findings"].append({"attack": attack, "case": number, "found": found})
        partial = self.path.with_suffix(".partial")
        partial.write_text(json.dumps(self.state, indent=1))
        partial.replace(self.path)

    def table(self) -> str:
        """Counts per attack and per kind of blow, and the findings as commands."""
        lines = [f"{'attack':<16}{'cases':>7}{'blows':>7}{'aim':>7}{'findings':>9}{'seconds':>9}{'per blow':>9}"]
        total: dict[str, list[int]] = {}
        for name, attack in ATTACKS.items():
            cases, blows, seconds = (self.state[of].get(name, 0) for of in ("cases", "blows", "seconds"))
            found = sum(finding["attack"] == name for finding in self.state["findings"])
            each = seconds / blows if blows else 0.0
            lines.append(f"{name:<16}{cases:>7}{blows:>7}{attack.aim:>7}{found:>9}{seconds:>9.0f}{each:>9.3f}")
            sums = total.setdefault(attack.blow, [0, 0])
            sums[0], sums[1] = sums[0] + blows, sums[1] + attack.aim
        lines += ["", *(f"{blow:<12}{dealt:>7} of {aim}" for blow, (dealt, aim) in total.items())]
        findings = self.state["findings"]
        lines += [f"minutes     {sum(self.state['seconds'].values()) / 60:>7.1f}", f"findings    {len(findings):>7}"]
        return "\n".join([*lines, *(_again(self.state["seed"], f["attack"], f["case"]) for f in findings)])


def _again(seed: int, attack: str, number: int) -> str:
    return f"python tests/torture/run.py --seed {seed} --attack {attack} --case {number}"


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
        for name, attack in ATTACKS.items():
            print(f"{name:<16}{attack.case.__doc__ or ''}")
        return 0
    work = given.work.absolute()
    workspace = Workspace(work / "workspace")
    chosen = given.attack or list(ATTACKS)
    if given.case is not None:
        return max(_one(name, given.seed, given.case, workspace) for name in chosen)
    with _alone(work):
        return _many(chosen, given.minutes, Session(work / f"seed-{given.seed}.json", given.seed), workspace)


def _one(attack: str, seed: int, number: int, workspace: Workspace) -> int:
    found, blows = run_case(attack, seed, number, workspace)
    print(f"{_again(seed, attack, number)}\n  {found or f'nothing found; blows: {blows}'}", flush=True)
    return int(bool(found))


@contextlib.contextmanager
def _alone(work: Path) -> Iterator[None]:
    """One runner per folder; what cases left there that were cut short is removed."""
    with (work / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit(f"another runner is at work in {work}; give this one a folder of its own with --work")
        for pattern in ("case-*", "copy-*", "*.making"):
            for left in (work / "workspace").glob(pattern):
                shutil.rmtree(left, ignore_errors=True)
        yield


def _many(chosen: list[str], minutes: float, session: Session, workspace: Workspace) -> int:
    stopped: list[int] = []
    runner = os.getpid()

    def stop(number: int, frame: object) -> None:
        if os.getpid() == runner:  # not what it has forked
            stopped.append(number)
            raise Stopped

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    seed, until = session.state["seed"], time.monotonic() + 60 * minutes
    try:
        with contextlib.suppress(Stopped):
            while time.monotonic() < until:
                attack = min(chosen, key=session.reached)
                number, began = session.next_number(attack), time.monotonic()
                found, blows = run_case(attack, seed, number, workspace)
                if stopped:  # and what was attacked has taken the signal for its own
                    break
                session.record(attack, number, found, blows, time.monotonic() - began)
                if found:
                    print(f"{_again(seed, attack, number)}\n  {found}", flush=True)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    print(session.table(), flush=True)
    return 130 if stopped else int(bool(session.state["findings"]))


if __name__ == "__main__":
    sys.exit(main())
