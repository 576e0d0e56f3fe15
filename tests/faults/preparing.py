"""What is done once before the first case: imports, and what stands in for work that says nothing about files."""

from __future__ import annotations

import gc
import importlib
import sys
from pathlib import Path
from typing import Any

from forking import PRELOADED


def preload() -> None:
    for name in (
        *PRELOADED,
        "s2rm_data.cli.reproduce",
        "s2rm_data.cli.view",
        "tensorboard.summary.writer.record_writer",
    ):
        if name != "h5py":  # which only a process of its own imports
            importlib.import_module(name)
    draw_little()
    reproduce_a_little()
    gc.collect()
    gc.freeze()  # what was imported is not looked through for garbage


def draw_little() -> None:
    """Dots in place of the figures of a run, written as those are."""
    from undrawn import DOT

    from s2rm_data.core.write import write_whole
    from s2rm_data.training import journal

    def dot(*arguments: Any) -> None:
        write_whole(Path(arguments[-1]), [DOT])

    journal.draw_curves = journal._draw_rows = dot


def reproduce_a_little() -> None:
    """One small model of one world, and the programs that the reproduction starts run in this process."""
    from faults.cases import run_here
    from s2rm_data.cli import reproduce
    from s2rm_data.evaluation.reproduction import DataCommand, Plan, Reproduction, WorldSize

    words = ("--train", "4", "--val", "2", "--test", "1", "--frames", "8", "-j", "1")
    data = tuple(DataCommand(name=name, words=("--balls", name, *words)) for name in ("3",))
    part = Reproduction(models={"no_memory": 1}, sizes={"smoke": WorldSize(steps=1, data=data)})

    def plan(out: Path, size: str, *rest: Any) -> Plan:
        return Plan(folder=out, worlds={"bballs": part}, size=size, rates=(1e-3, 2e-3), training_steps=1)

    def heard(command: list[str], log: Any, relay: Any) -> tuple[int, str]:
        program = command[2].rpartition(".")[2]
        before, ended = sys.argv, run_here("data" if program == "s2rm_data" else program, command[3:])
        sys.argv = before
        log.write(ended.said)
        return ended.status, ended.said

    reproduce._plan, reproduce._heard = plan, heard  # type: ignore[assignment]
    reproduce._estimate = lambda plan, side_by_side: 0.0
