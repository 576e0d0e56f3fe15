"""How many processors this process may really use (affinity, quota, OMP_NUM_THREADS), and how much memory.

Linux keeps a container's limits in the files of a control group and of all groups above it:

    version 2   cpu.max                                 "150000 100000", or "max 100000" for none
                memory.max                              bytes, or "max"
    version 1   cpu.cfs_quota_us, cpu.cfs_period_us     -1 for none
                memory.limit_in_bytes

/proc/self/cgroup names the process's groups. Inside a container these may be names outside it, which are not visible
there; the container's own group is then the root of what is mounted."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

PACKAGE = Path(__file__).parent.parent.parent  # the folder that Python finds this package in
CGROUP_MOUNT = Path("/sys/fs/cgroup")
CGROUPS_OF_PROCESS = Path("/proc/self/cgroup")


def available_cores(mount: Path = CGROUP_MOUNT, cgroups: Path = CGROUPS_OF_PROCESS) -> int:
    """Processors by affinity and quota, at least 1. Of a quota such as 1.5 only whole ones count: a thread more would
    be stopped for a part of every period, and the others wait for it."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([cores, *(int(quota) for quota in _quotas(mount, cgroups))]))


def available_threads(processes: int = 1, mount: Path = CGROUP_MOUNT, cgroups: Path = CGROUPS_OF_PROCESS) -> int:
    """Threads for each of some processes on this machine; OMP_NUM_THREADS, which is meant per process, limits them."""
    cores = available_cores(mount, cgroups)
    asked = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()  # a list is for nested loops
    if asked.isdecimal() and int(asked) > 0:
        return min(int(asked), cores)
    return max(1, cores // processes)


def memory_nbytes(mount: Path = CGROUP_MOUNT, cgroups: Path = CGROUPS_OF_PROCESS) -> int:
    """What this process may take: the least of the machine's memory and what limits say."""
    import resource  # not on Windows

    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    soft = resource.getrlimit(resource.RLIMIT_AS)[0]
    limits += [soft] if soft != resource.RLIM_INFINITY else []
    for folder in _folders(mount, cgroups, "memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):
            with contextlib.suppress(OSError, ValueError):  # not there, or `max`
                limits.append(int((folder / name).read_text()))
    return min(limits)


def _quotas(mount: Path, cgroups: Path) -> Iterator[float]:
    for folder in _folders(mount, cgroups, "cpu"):
        for files in (("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us")):
            with contextlib.suppress(OSError, ValueError, ZeroDivisionError):  # not there, or `max`
                quota, period = " ".join((folder / name).read_text() for name in files).split()
                if (share := int(quota) / int(period)) > 0:
                    yield share


def _folders(mount: Path, cgroups: Path, controller: str) -> Iterator[Path]:
    """The process's groups of a controller, and those above them, wherever they are mounted."""
    try:
        lines = cgroups.read_text().splitlines()
    except OSError:  # another system
        return
    for line in lines:
        _, controllers, name = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        mounted = (mount / controllers, mount / controller) if controllers else (mount, mount / "unified")
        inside = PurePosixPath(name.lstrip("/"))
        if ".." not in inside.parts:
            yield from (root / part for root in mounted for part in (inside, *inside.parents))


def child_environment() -> dict[str, str]:
    """For a Python process that we start: it takes this package, and no code of the folder that it is started in."""
    paths = os.pathsep.join([str(PACKAGE), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": paths, "PYTHONSAFEPATH": "1"}
