"""The runner: every fault of every command, or as many as fit into some minutes: a few of each command in turn, spread
over all of its calls. It continues where it was stopped; --fresh begins anew, as after a change to the program.

python tests/faults/run.py --minutes 10
python tests/faults/run.py --minutes all
python tests/faults/run.py --minutes 0                              # only the counts so far
python tests/faults/run.py --command rename --fault kill@17         # one case again
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import shutil
import sys
import time
import traceback
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
os.environ.setdefault("OMP_NUM_THREADS", "1")

from faults.bucket_cases import BUCKET_COMMANDS, BucketBench
from faults.cases import Bench, Command, Fault, Finding, prepare_process
from faults.commands import COMMANDS, make
from faults.preparing import preload
from faults.shim import again_with_shim

ALL = {**COMMANDS, **BUCKET_COMMANDS}
TURN = 20  # faults of a command before it is the next one's turn


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", default="20", help="of the clock, or `all`: until every fault was tried")
    parser.add_argument("--command", action="append", choices=list(ALL), help="only this one; may be repeated")
    parser.add_argument("--fault", help="only this one, such as kill@17")
    parser.add_argument("--most", type=int, default=10**9, help="faults of each command")
    parser.add_argument("--fresh", action="store_true", help="forget what was counted")
    parser.add_argument("--starts", action="store_true", help="commands as processes of their own, not in this one")
    parser.add_argument("--runner", default="0", help="name of one of several that share the work, for other commands")
    parser.add_argument("--work", type=Path, default=Path("faults"), help="folder for the sandbox and the counts")
    given = parser.parse_args()
    work = given.work.absolute()
    again_with_shim(work)
    chosen = given.command or list(ALL)
    if given.fresh:
        for name in chosen:
            _path(work, name).unlink(missing_ok=True)
    if given.minutes != "0" or given.fault:
        minutes = float("inf") if given.minutes == "all" else float(given.minutes)
        Runner(work, given.runner, starts=given.starts).run(
            [ALL[name] for name in chosen], minutes, given.most, given.fault
        )
    states = {name: _state(work, name) for name in ALL}
    print(table(states), flush=True)
    return int(any(state["findings"] for state in states.values()))


class Runner:
    def __init__(self, work: Path, name: str = "0", *, starts: bool = False) -> None:
        prepare_process()
        preload()
        self.work, folder = work, work / f"runner-{name}"
        shutil.rmtree(folder, ignore_errors=True)  # templates of an earlier version
        self.disk, self.bucket = Bench(folder, make, starts=starts), BucketBench(folder / "bucket")

    def bench(self, command: Command) -> Any:
        return self.bucket if command.name in BUCKET_COMMANDS else self.disk

    def run(self, commands: list[Command], minutes: float, most: int, only: str | None = None) -> int:
        """Returns how many findings there were."""
        until, findings = time.monotonic() + 60 * minutes, 0
        waiting: dict[str, list[Fault]] = {}
        while len(waiting) < len(commands) or any(waiting.values()):
            for command in commands:
                if time.monotonic() > until:
                    return findings
                if command.name not in waiting:
                    waiting[command.name] = self._waiting(command, most, only)
                turn, waiting[command.name] = waiting[command.name][:TURN], waiting[command.name][TURN:]
                findings += self._turn(command, turn, until, len(waiting[command.name]), repeats=bool(only))
        return findings

    def _waiting(self, command: Command, most: int, only: str | None) -> list[Fault]:
        """By chance, but the same each time."""
        state = _state(self.work, command.name)
        try:
            faults = self.bench(command).faults(command)
            state["findings"].pop("undisturbed", None)
        except Exception as error:  # noqa: BLE001
            faults = []
            state["findings"]["undisturbed"] = f"{error}"
            print(f"{command.name}: {error}", flush=True)
        state["possible"] = len(faults)
        _save(self.work, command.name, state)
        if only:
            return [fault for fault in faults if str(fault) == only]
        faults.sort(key=lambda fault: hashlib.sha256(str(fault).encode()).digest())
        return [fault for fault in faults[:most] if str(fault) not in state["done"]]

    def _turn(self, command: Command, faults: list[Fault], until: float, left: int, *, repeats: bool) -> int:
        state, began, findings = _state(self.work, command.name), _computed(), 0
        for fault in faults:
            if time.monotonic() > until:  # the turn is not finished
                break
            found, ending = self._case(command, fault)
            state["done"][str(fault)] = ending
            state["findings"].pop(str(fault), None)
            if found:
                findings += 1
                state["findings"][str(fault)] = found
            if found or repeats:
                print(f"--command {command.name!r} --fault {fault}\n  {found or ending}", flush=True)
        state["seconds"] += _computed() - began
        _save(self.work, command.name, state)
        if faults:
            print(f"{command.name}: {len(state['done'])} done, {left} left", flush=True)
        return findings

    def _case(self, command: Command, fault: Fault) -> tuple[str, str]:
        """What was found, empty if nothing was; and how the command ended."""
        try:
            return "", self.bench(command).case(command, fault)
        except Finding as finding:
            return str(finding), "finding"
        except Exception:  # noqa: BLE001 - whatever it is, it is what is looked for
            return traceback.format_exc()[-3000:], "finding"


def _computed() -> float:
    """Seconds of the processor, of this process and of those that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _path(work: Path, name: str) -> Path:
    return work / "counts" / f"{name.replace(' ', '_').replace(',', '')}.json"


def _state(work: Path, name: str) -> dict[str, Any]:
    path, empty = _path(work, name), {"done": {}, "findings": {}, "seconds": 0.0, "possible": 0}
    return json.loads(path.read_text()) if path.exists() else empty


def _save(work: Path, name: str, state: dict[str, Any]) -> None:
    path = _path(work, name)
    path.parent.mkdir(exist_ok=True)
    path.with_suffix(".partial").write_text(json.dumps(state))
    path.with_suffix(".partial").replace(path)


def table(states: dict[str, dict[str, Any]]) -> str:
    lines = [
        f"{'command':<28}{'faults':>8}{'possible':>10}{'kills':>8}{'errors':>8}{'done':>8}{'findings':>10}{'seconds':>9}"
    ]
    total = [0.0] * 7
    for name, state in states.items():
        endings = [ending for ending in state["done"].values() if ending != "not met"]
        kills, done = endings.count("killed"), endings.count("done")
        errors = len(endings) - kills - done - endings.count("finding")
        row = [len(endings), state["possible"], kills, errors, done, len(state["findings"]), state["seconds"]]
        total = [a + b for a, b in zip(total, row, strict=True)]
        lines.append(_row(name, row))
    return "\n".join([*lines, _row("in all", total)])


def _row(name: str, row: list[float]) -> str:
    widths = (8, 10, 8, 8, 8, 10, 9)
    return f"{name:<28}" + "".join(f"{number:>{width},.0f}" for number, width in zip(row, widths, strict=True))


if __name__ == "__main__":
    sys.exit(main())
