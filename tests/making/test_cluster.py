"""Parts as tasks of a Dask cluster of worker processes."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from distributed.client import FutureCancelledError
from distributed.comm import CommClosedError
from patience import finish
from program import run, start
from toy import tree

from s2rm_data.core.errors import DiskError
from s2rm_data.making.cluster import _result

BALLS = ["bballs", "--balls", "3", "--train", "60", "--val", "4", "--test", "4", "--frames", "12", "--shard-size", "4"]


def launched(*words: str, cwd: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", *words], cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, list[subprocess.Popen[str]]]]:
    """The address of a scheduler, and its two workers, each a process without a nurse."""
    with contextlib.ExitStack() as stack:
        scheduler = launched(
            "distributed.cli.dask_scheduler", "--port", "0", "--host", "127.0.0.1", "--no-dashboard", cwd=tmp_path
        )
        stack.callback(_end, scheduler)
        address = next(m[1] for line in scheduler.stderr or () if (m := re.search(r"(tcp://127[^\s]+)", line)))
        options = ["--no-nanny", "--nthreads", "1", "--no-dashboard", "--local-directory", str(tmp_path)]
        workers = [launched("distributed.cli.dask_worker", address, *options, cwd=tmp_path) for _ in range(2)]
        for worker in workers:
            stack.callback(_end, worker)
        yield address, workers


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def test_a_cluster_makes_the_store_of_one_process_although_a_worker_is_killed(
    cluster: tuple[str, list[subprocess.Popen[str]]], tmp_path: Path
) -> None:
    address, workers = cluster
    maker = start(*BALLS, "--dask", address, "-o", "dask.zarr", cwd=tmp_path)
    parts = tmp_path / "dask.zarr" / "_parts"
    while maker.poll() is None and not list(parts.glob("0*.json")):
        time.sleep(0.01)
    workers[0].kill()
    _, err = finish(maker)
    assert maker.returncode == 0, err
    assert "Traceback" not in err
    assert run(*BALLS, "-q", "-o", "one.zarr", cwd=tmp_path)[0] == 0
    assert tree(tmp_path / "dask.zarr") == tree(tmp_path / "one.zarr")
    # What cannot be, with the same cluster: options of two kinds, and a scheduler that is not there.
    status, _, err = run(*BALLS, "--dask", address, "--part", "1/2", cwd=tmp_path)
    assert (status, "exclude each other" in err) == (2, True)


def test_without_dask_or_its_scheduler_it_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from s2rm_data.core.errors import MissingComponentError, UsageError
    from s2rm_data.making import cluster
    from s2rm_data.making.run import ShardSize

    job = cluster.Job(
        world="bballs",
        options={"balls": "3", "train": 2, "val": 0, "test": 0, "frames": 4},
        path=str(tmp_path / "x.zarr"),
        shard_size=ShardSize(),
    )
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 1)
    with pytest.raises(UsageError, match=r"no Dask scheduler answers at 'nonsense:1'"):
        cluster.generate_on_dask(job, "nonsense:1", workers=1)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingComponentError, match=r"--dask needs the package 'distributed'.*s2rm-data\[cluster\]"):
        cluster.generate_on_dask(job, "local", workers=1)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("error", [FutureCancelledError("key", "scheduler-connection-lost"), CommClosedError("in TCP")])
def test_a_lost_scheduler_is_one_message(error: Exception) -> None:
    def result() -> None:
        raise error

    with pytest.raises(DiskError, match=r"the connection to the Dask scheduler was lost before part 1/2 was made"):
        _result(SimpleNamespace(result=result), "1/2")
