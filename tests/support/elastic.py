"""torchrun whose processes are forked, with torch imported, instead of started: the same agent, at a tenth of the time.

    KILL=1:5 torchrun --rdzv-backend c10d --nproc-per-node 2 --max-restarts 1 -m s2rm_data.cli.train --out run ...

`KILL` has process number 1 kill itself, as the kernel would, after its step number 5, the first time it is started.
"""

from __future__ import annotations

import dataclasses
import os
import secrets
import signal
import sys
from typing import Any, NoReturn

from forking import Forked
from patience import finish


def run(*words: str, restarts: int = 0, kill: str = "") -> tuple[int, str]:
    """Train with two processes; `words` are those of s2rm-train. Exit status and what was said on standard error."""
    own = ["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0", "--rdzv-id", secrets.token_hex(8)]
    own += ["--nproc-per-node", "2", "--max-restarts", str(restarts), "-m", "s2rm_data.cli.train"]
    process = Forked("torchrun", *own, *words, environment={"OMP_NUM_THREADS": "1", "KILL": kill})
    said = finish(process, cpu_seconds=300)[1]
    return process.wait(), said


def main() -> NoReturn:
    """What `torchrun` does with its words, but for the start of processes."""
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import elastic_launch
    from torch.distributed.run import config_from_args, parse_args

    arguments = parse_args(sys.argv[1:])
    config, _, _ = config_from_args(arguments)
    try:
        elastic_launch(dataclasses.replace(config, start_method="fork"), _work)(arguments.training_script_args)
    except ChildFailedError as error:
        sys.exit(f"{error}")
    sys.exit(0)


def _work(words: list[str]) -> None:
    """One process of the run."""
    from s2rm_data.cli import train

    rank, _, step = os.environ["KILL"].partition(":")
    if rank == os.environ["RANK"] and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        _kill_after(int(step))
    sys.argv = ["s2rm-train", *words]
    try:
        train.main()
    except SystemExit as leaving:
        if leaving.code:
            raise


def _kill_after(steps: int) -> None:
    from s2rm_data.training.stepper import Stepper

    step, done = Stepper.__call__, 0

    def call(self: Stepper, *arguments: Any) -> Any:
        nonlocal done
        found = step(self, *arguments)
        done += 1
        if done == steps:
            os.write(2, f"killed after {steps} steps\n".encode())
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    Stepper.__call__ = call  # type: ignore[method-assign]
