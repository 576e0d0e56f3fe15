"""Does training behave on a machine that it does not have to itself? Two checks, with the shipped command.

python benchmarks/load.py                   # both; exit status 1 if one fails
python benchmarks/load.py --steps 40 --task sc2

1. A busy machine. Processor time per step with one spinning process on each core may be at most twice that without.
2. What the process is given. Threads follow affinity, OMP_NUM_THREADS, and a CPU quota of a container; with a quota of
   one processor the command takes no more than one. The quota is that of the control group's files, laid over the real
   ones in a namespace of its own (`unshare`); where that is not allowed, this part is left out and the script says so.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from s2rm_data.generators.bballs.making.ball_source import plan as plan_balls
from s2rm_data.generators.sc2.making.battle_source import plan as plan_battles
from s2rm_data.making.run import generate

TRAIN = [sys.executable, "-m", "s2rm_data.cli.train"]
MOST_TIMES = 2.0  # processor time per step, busy against quiet
MOST_PROCESSORS = 1.1  # with a quota of one; a little more for the threads that load data
FEW_STEPS = 4


class Cost(NamedTuple):
    wall: float
    cpu: float


def spin(core: int) -> None:
    os.sched_setaffinity(0, {core})
    while True:
        pass


class Spinners:
    """One spinning process on each core while it is entered."""

    def __enter__(self) -> None:
        self._started = [
            multiprocessing.Process(target=spin, args=(core,), daemon=True) for core in os.sched_getaffinity(0)
        ]
        for process in self._started:
            process.start()

    def __exit__(self, *_: object) -> None:
        for process in self._started:
            process.kill()
            process.join()


def cost(command: list[str], environment: dict[str, str]) -> Cost:
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    wall, after = time.monotonic() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Cost(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


class Commands:
    def __init__(self, store: Path, task: str, folder: Path) -> None:
        self.folder, self.environment = folder, dict(os.environ)
        self.environment.pop("OMP_NUM_THREADS", None)
        self.words = ["--store", str(store), "--task", task, "--preset", "laptop", "--device", "cpu", "-q"]
        self.words += ["--set", "validate_every=1000000", "--set", "held_out_sequences=1"]
        self.words += ["--set", "validation_sequences=1"]

    def run(self, steps: int, prefix: list[str] | None = None, **environment: str) -> Cost:
        out = ["--out", str(self.folder / "run"), "--overwrite", "--steps", str(steps)]
        return cost([*(prefix or []), *TRAIN, *self.words, *out], {**self.environment, **environment})

    def per_step(self, steps: int, **environment: str) -> Cost:
        """Of the steps alone: what `steps` more of them cost."""
        few, many = self.run(FEW_STEPS, **environment), self.run(FEW_STEPS + steps, **environment)
        return Cost((many.wall - few.wall) / steps, (many.cpu - few.cpu) / steps)

    def threads(self, prefix: list[str] | None = None, **environment: str) -> int:
        command = [*(prefix or []), *TRAIN, *self.words, "--steps", "1", "--dry-run", "--json"]
        done = subprocess.run(
            command, check=True, env={**self.environment, **environment}, stdout=subprocess.PIPE, text=True
        )
        return int(json.loads(done.stdout)["config"]["threads"])


def with_quota_of_one(folder: Path) -> list[str] | None:
    """Words before a command that runs it where Linux's files tell of a quota of one processor; None if not allowed."""
    groups = folder / "cgroup"
    groups.mkdir()
    (groups / "cpu.max").write_text("100000 100000\n")
    (groups / "list").write_text("0::/\n")
    mounts = f"mount --bind {groups} /sys/fs/cgroup && mount --bind {groups}/list /proc/self/cgroup 2>/dev/null"
    words = ["unshare", "--map-root-user", "--mount", "sh", "-c", f'{mounts}; exec "$@"', "sh"]
    if shutil.which("unshare") is None:
        return None
    seen = subprocess.run([*words, "cat", "/sys/fs/cgroup/cpu.max"], capture_output=True, text=True, check=False)
    return words if seen.stdout == "100000 100000\n" else None


def check_busy(commands: Commands, steps: int) -> bool:
    quiet = commands.per_step(steps)
    with Spinners():
        busy = commands.per_step(steps)
        spinning = commands.per_step(max(steps // 4, 1), OMP_WAIT_POLICY="active")
    for name, found in {"as found": quiet, "busy": busy, "busy, waiting threads spin": spinning}.items():
        print(f"  {name:<28}{1e3 * found.cpu:7.0f} ms of processor time per step, {1e3 * found.wall:7.0f} ms wall")
    times = busy.cpu / quiet.cpu
    print(f"  {times:.2f} times the processor time per step (at most {MOST_TIMES:g})")
    return times <= MOST_TIMES


def check_given(commands: Commands, folder: Path, steps: int) -> bool:
    cores = len(os.sched_getaffinity(0))
    found = {"threads by default": (commands.threads(), None)}
    found["OMP_NUM_THREADS=1"] = commands.threads(OMP_NUM_THREADS="1"), 1
    found["affinity to one core"] = commands.threads(["taskset", "-c", str(min(os.sched_getaffinity(0)))]), 1
    prefix = with_quota_of_one(folder)
    if prefix is None:
        print("  left out: a quota needs `unshare` and the right to mount, which are not here")
    else:
        found["a quota of one processor"] = commands.threads(prefix), 1
    for name, (threads, _) in found.items():
        print(f"  {name:<28}{threads} of {cores} cores")
    right = all(expected in (None, threads) for threads, expected in found.values())
    if prefix is not None:
        used = commands.run(steps, prefix)
        print(
            f"  under that quota the command took {used.cpu / used.wall:.2f} processors (at most {MOST_PROCESSORS:g})"
        )
        right &= used.cpu / used.wall <= MOST_PROCESSORS
    return right


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", choices=("bballs", "sc2"), default="bballs")
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        balls = plan_balls(balls=[3], train=64, val=2, test=0)
        battles = plan_battles(scenario=["2s3z"], train=16, val=2)
        generate(balls if options.task == "bballs" else battles, folder / "data.zarr")
        commands = Commands(folder / "data.zarr", options.task, folder)
        print("a busy machine:")
        busy = check_busy(commands, options.steps)
        print("what the process is given:")
        given = check_given(commands, folder, options.steps)
    print("both checks hold" if busy and given else "a check failed")
    sys.exit(0 if busy and given else 1)


if __name__ == "__main__":
    main()
