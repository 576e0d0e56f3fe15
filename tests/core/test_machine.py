"""What the machine gives, told by the files that Linux keeps about it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from s2rm_data.core.machine import available_cores, available_threads, memory_nbytes

Files = dict[str, str]


@pytest.fixture(autouse=True)
def eight_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)), raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)


def machine(folder: Path, groups: str, files: Files) -> dict[str, Path]:
    """A tree as Linux mounts it, and the list of the process's groups."""
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        path = folder / "mount" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "groups").write_text(groups)
    return {"mount": folder / "mount", "cgroups": folder / "groups"}


@pytest.mark.parametrize(
    ("groups", "files", "cores"),
    [
        pytest.param("0::/\n", {"cpu.max": "100000 100000\n"}, 1, id="a container, version 2"),
        pytest.param("0::/\n", {"cpu.max": "350000 100000\n"}, 3, id="whole processors of a quota"),
        pytest.param("0::/\n", {"cpu.max": "20000 100000\n"}, 1, id="at least one"),
        pytest.param("0::/\n", {"cpu.max": "max 100000\n"}, 8, id="no quota"),
        pytest.param(
            "0::/a/b\n", {"a/b/cpu.max": "max 100000\n", "a/cpu.max": "200000 100000\n"}, 2, id="of a group above"
        ),
        pytest.param("0::/outside/it\n", {"cpu.max": "200000 100000\n"}, 2, id="a group that is not visible inside"),
        pytest.param(
            "4:memory:/\n3:cpu,cpuacct:/docker/x\n",
            {"cpu,cpuacct/docker/x/cpu.cfs_quota_us": "200000\n", "cpu,cpuacct/docker/x/cpu.cfs_period_us": "100000\n"},
            2,
            id="version 1",
        ),
        pytest.param(
            "3:cpu:/docker/x\n",
            {"cpu/cpu.cfs_quota_us": "50000\n", "cpu/cpu.cfs_period_us": "50000\n"},
            1,
            id="version 1, inside the container",
        ),
        pytest.param(
            "1:cpu:/\n", {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 8, id="version 1, none"
        ),
        pytest.param("2:cpuset:/\n0::/\n", {"cpuset/cpu.max": "100000 100000\n"}, 8, id="not of another controller"),
        pytest.param("0::/\n", {"cpu.max": "what\n"}, 8, id="a file that makes no sense"),
    ],
)
def test_the_quota_of_a_container_limits_the_cores(tmp_path: Path, groups: str, files: Files, cores: int) -> None:
    assert available_cores(**machine(tmp_path, groups, files)) == cores


def test_affinity_limits_the_cores_where_there_is_no_quota(tmp_path: Path) -> None:
    assert available_cores(tmp_path, tmp_path / "nothing") == 8


@pytest.mark.parametrize(
    ("asked", "processes", "threads"),
    [(None, 1, 8), (None, 3, 2), (None, 20, 1), ("3", 1, 3), ("3", 4, 3), ("64", 1, 8), ("2,1", 1, 2), ("0", 1, 8)],
)
def test_threads_are_as_asked_for_or_shared_by_the_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: str | None, processes: int, threads: int
) -> None:
    if asked:
        monkeypatch.setenv("OMP_NUM_THREADS", asked)
    assert available_threads(processes, tmp_path, tmp_path / "nothing") == threads


def test_memory_is_the_least_of_what_the_process_may_take(tmp_path: Path) -> None:
    two = machine(tmp_path, "0::/a/b\n", {"a/b/memory.max": "max\n", "a/memory.max": "30000000\n"})
    assert memory_nbytes(**two) == 30_000_000, "of a group above"
    one = machine(tmp_path / "1", "4:memory:/docker/x\n", {"memory/memory.limit_in_bytes": "20000000\n"})
    assert memory_nbytes(**one) == 20_000_000, "version 1, inside the container"
    none = machine(tmp_path / "2", "2:cpu:/\n0::/\n", {"cpu/memory.max": "10000000\n"})
    assert memory_nbytes(**none) > 10**8, "not of another controller"
