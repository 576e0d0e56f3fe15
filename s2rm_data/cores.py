"""How many processors this process may really use: affinity, the CPU quota of its container, OMP_NUM_THREADS.

Linux keeps a quota as processor time per period, in the files of a control group and of all groups above it:

    version 2   cpu.max                                 "150000 100000", or "max 100000" for none
    version 1   cpu.cfs_quota_us, cpu.cfs_period_us     -1 for none

/proc/self/cgroup names the process's groups. Inside a container the names may be those outside it, which are not
visible there; the container's own group is then the root of what is mounted.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

CGROUP_MOUNT = Path("/sys/fs/cgroup")
CGROUPS_OF_PROCESS = Path("/proc/self/cgroup")


def available_cores(mount: Path = CGROUP_MOUNT, cgroups: Path = CGROUPS_OF_PROCESS) -> int:
    """Processors by affinity and quota, at least 1. Of a quota such as 1.5 only whole processors count: a thread more
    would be stopped for a part of every period, and the others wait for it.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([cores, *(int(quota) for quota in _quotas(mount, cgroups))]))


def available_threads(processes: int = 1, mount: Path = CGROUP_MOUNT, cgroups: Path = CGROUPS_OF_PROCESS) -> int:
    """Threads for each of some processes on this machine; OMP_NUM_THREADS, which is meant per process, limits them."""
    cores = available_cores(mount, cgroups)
    asked = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()  # a list is for nested loops
    if asked.isdecimal() and int(asked) > 0:
        return min(int(asked), cores)
    return max(1, cores // processes)


def _quotas(mount: Path, cgroups: Path) -> Iterator[float]:
    for folder in _folders(mount, cgroups):
        for read in (_quota_2, _quota_1):
            try:
                quota = read(folder)
            except (OSError, ValueError, ZeroDivisionError):  # not there, or `max`
                continue
            if quota > 0:
                yield quota


def _quota_2(folder: Path) -> float:
    quota, period = (folder / "cpu.max").read_text().split()
    return int(quota) / int(period)


def _quota_1(folder: Path) -> float:
    return int((folder / "cpu.cfs_quota_us").read_text()) / int((folder / "cpu.cfs_period_us").read_text())


def _folders(mount: Path, cgroups: Path) -> Iterator[Path]:
    """The process's groups and those above them, wherever their controllers are mounted."""
    try:
        lines = cgroups.read_text().splitlines()
    except OSError:  # another system
        return
    for line in lines:
        _, controllers, name = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        mounted = (mount / controllers, mount / "cpu") if controllers else (mount, mount / "unified")
        inside = PurePosixPath(name.lstrip("/"))
        if ".." not in inside.parts:
            yield from (root / part for root in mounted for part in (inside, *inside.parents))
