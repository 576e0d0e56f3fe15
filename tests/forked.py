"""Trainings in processes of their own that start at once: forked from one that has imported everything.

Importing PyTorch and what training needs of it takes eight seconds of processor time, and the tests that kill processes
start dozens of them. `python forked.py` reads commands from its standard input, one JSON document per line, runs each
and answers with its exit status. The processes are real ones: they are killed by SIGKILL, and those that share a batch
are started, watched and restarted by the agent of torchrun, which also takes functions instead of programs.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any


class Forker:
    """Starts trainings; one at a time."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def start(self, *arguments: str, processes: int = 1, restarts: int = 0) -> None:
        assert self._process.stdin
        for rank in range(processes):
            _pid_file(arguments, rank).unlink(missing_ok=True)
        self._process.stdin.write(json.dumps([arguments, processes, restarts]) + "\n")
        self._process.stdin.flush()

    def wait(self) -> int:
        """The exit status of what was started; of one that was killed, the number of the signal, negative."""
        assert self._process.stdout
        answer = self._process.stdout.readline()
        assert answer, "the process that forks has ended"
        return int(answer)

    def run(self, *arguments: str, processes: int = 1, restarts: int = 0) -> int:
        self.start(*arguments, processes=processes, restarts=restarts)
        return self.wait()


@contextlib.contextmanager
def forker() -> Iterator[Forker]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process = subprocess.Popen([sys.executable, __file__], env=environment, **pipes)
    try:
        yield Forker(process)
    finally:
        process.stdin.close()  # type: ignore[union-attr]
        process.wait(timeout=60)


def pid_of(out: Path, rank: int = 0) -> int | None:
    """The process number `rank` of those that train in a folder, once it has begun."""
    with contextlib.suppress(OSError, ValueError):
        return int(_pid_file(["--out", str(out)], rank).read_text())
    return None


def _pid_file(arguments: Sequence[str], rank: int) -> Path:
    out = Path(arguments[list(arguments).index("--out") + 1])
    return out.with_name(f"{out.name}.pid-{rank}")


def _train(arguments: Sequence[str]) -> None:
    """One process of a training, from its command line to its end."""
    from s2rm_data.cli.train import main

    _pid_file(arguments, int(os.environ.get("RANK", "0"))).write_text(str(os.getpid()))
    sys.argv = ["s2rm-train", *arguments]
    try:
        main()
    except SystemExit as ended:
        if ended.code:
            os._exit(int(ended.code))


def _fork(arguments: Sequence[str], processes: int, restarts: int) -> int:
    child = os.fork()
    if child == 0:
        os.dup2(2, 1)  # the pipe is for answers
        if processes == 1:
            _train(arguments)
        else:
            _launch(arguments, processes, restarts)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _launch(arguments: Sequence[str], processes: int, restarts: int) -> None:
    """What `torchrun --standalone --nproc-per-node PROCESSES --max-restarts RESTARTS` does, without new programs."""
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=processes,
        run_id=uuid.uuid4().hex,
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        max_restarts=restarts,
        start_method="fork",
    )
    elastic_launch(config, _train)(list(arguments))


def _import_everything() -> None:
    from PIL import Image

    from s2rm_data.registry import WORLDS

    Image.preinit()
    for name in ("bballs", "sc2"):
        WORLDS.load(name).learning()


if __name__ == "__main__":
    _import_everything()
    for line in sys.stdin:
        sys.stdout.write(f"{_fork(*json.loads(line))}\n")
        sys.stdout.flush()
