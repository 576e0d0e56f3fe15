"""The command `s2rm-reproduce`: the whole reproduction, resumable; says beforehand how long it takes."""

import contextlib
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from itertools import count, pairwise
from pathlib import Path
from typing import IO, NoReturn, TypeVar

import click

from s2rm_data.cli.options import TakesPlugins, completing, out_folder, program
from s2rm_data.cli.run import run
from s2rm_data.core.amounts import duration
from s2rm_data.core.errors import S2RMError, UsageError
from s2rm_data.core.machine import available_cores, child_environment
from s2rm_data.core.optional import needed
from s2rm_data.core.registry import WORLDS, plugins_loaded
from s2rm_data.core.signals import SAME_COMMAND, Interrupt
from s2rm_data.core.write import disk_errors, write_whole
from s2rm_data.evaluation.reproduction import DIVERGED, SIZES, Job, Plan

LOOK_SECONDS = 0.1  # between two looks at the flag of an interrupt
RELAY_SECONDS = 30.0  # between two lines of a program's progress
TRAINING_DIVERGED = 7  # exit status of s2rm-train
PROGRESS = re.compile(r"\d%, \d+ s left")
_TASK = "World to reproduce; may be repeated.  [default: all that have a reproduction]"
_STEPS = "Training steps of every model; a search has a quarter of them.  [default: those of the size]"
_RUNNING: set[subprocess.Popen[str]] = set()
Item = TypeVar("Item")
Result = TypeVar("Result")


@program("s2rm-reproduce", TakesPlugins)
@out_folder("reproduction", "Folder for data, runs and results.")
@click.option("--size", default="laptop", show_default=True, help="laptop, or smoke: a rehearsal of some minutes.")
@click.option("--task", "worlds", multiple=True, shell_complete=completing(WORLDS.names), help=_TASK)
@click.option("--steps", type=click.IntRange(1), default=None, help=_STEPS)
@click.option("-j", "--jobs", type=click.IntRange(1), default=None, help="Trainings at once.  [default: one per core]")
@click.option("--plan", "only_plan", is_flag=True, help="Say what would be done; make and train nothing.")
@click.option("-y", "--yes", is_flag=True, help="Do not wait before starting.")
def reproduce(
    out: Path, size: str, worlds: tuple[str, ...], steps: int | None, jobs: int | None, only_plan: bool, yes: bool
) -> None:
    """Make the data, train every model with equal budget and equal search, evaluate all of them.

    Interrupt it at any time; the same command resumes it. Results, reports and the search are in OUT/results.

    \b
    Examples:
      s2rm-reproduce --plan                # every command, in order
      s2rm-reproduce --size smoke -y       # a rehearsal of some minutes
      s2rm-reproduce --task bballs
    """
    plan = _plan(out, size, worlds, steps)
    side_by_side = jobs or available_cores()
    if only_plan:
        _show(plan)
        return
    out.mkdir(parents=True, exist_ok=True)
    for number, job in enumerate(jobs_of_data := plan.data_jobs(), 1):  # minutes, and the estimate needs them
        _say(f"data, {number} of {len(jobs_of_data)}: {job.name}")
        _side_by_side(lambda job: _run(job, out), [job], 1)
    seconds = _estimate(plan, side_by_side)
    _say(f"about {duration(seconds)} of training left, {side_by_side} at once; the evaluation comes after it")
    if not yes and sys.stdin.isatty():
        click.confirm("start?", abort=True)
    begun = time.monotonic()
    for title, stage in plan.stages():
        if not title.endswith("data"):
            _stage(title, stage, side_by_side, out)
    for world in plan.worlds if len(plan.rates) > 1 else ():
        write_whole(out / "results" / f"{world}-search.md", [plan.search_markdown(world).encode()])
    _say(f"done in {duration(time.monotonic() - begun)}: {out / 'results'}")


def _show(plan: Plan) -> None:
    """Every command in order. How long it takes is measured on the data, so it is told once these are there."""
    steps = 0
    for title, stage in plan.stages():
        for job in stage:
            click.echo(f"{title}{' (done)' * job.done}: s2rm-{job.program} {' '.join(job.arguments)}")
            steps += 0 if job.done or _diverged(job) else job.steps
    _say(f"{steps:,} training steps left; without --plan, the data are made first and the time is measured on them")


def _plan(out: Path, size: str, worlds: tuple[str, ...], steps: int | None) -> Plan:
    needed("torch", "train", "training and evaluating models")
    from s2rm_data.evaluation.world_evaluation import evaluation_of

    if size not in SIZES:
        raise UsageError(f"--size {size} is not known; the choices are {', '.join(SIZES)}")
    parts = {name: evaluation_of(WORLDS.load(name)).reproduction for name in worlds or WORLDS.names()}
    if without := [name for name in worlds if parts[name] is None]:
        having = [name for name in WORLDS.names() if evaluation_of(WORLDS.load(name)).reproduction]
        raise UsageError(f"the world {without[0]} has no reproduction; those that have one: {', '.join(having)}")
    having_one = {name: part for name, part in parts.items() if part}
    return Plan(folder=out, size=size, worlds=having_one, plugins=tuple(plugins_loaded()), training_steps=steps)


def _stage(title: str, stage: list[Job], side_by_side: int, folder: Path) -> None:
    waiting = [job for job in stage if not _is_current(job) and not _diverged(job)]
    _say(f"{title}: {len(waiting)} of {len(stage)} to do")
    numbers = count(1)

    def say_done(job: Job) -> None:
        _say(f"{title}: {next(numbers)} of {len(waiting)} done, {job.name}")

    _side_by_side(lambda job: _run(job, folder), waiting, side_by_side, say_done)


def _side_by_side(
    work: Callable[[Item], Result],
    items: Iterable[Item],
    most: int,
    done: Callable[[Result], None] = lambda result: None,
) -> list[Result]:
    """Work that starts programs, `most` at once; the results in order, each told to `done` as soon as it is there."""
    pool = ThreadPoolExecutor(most)
    futures = [pool.submit(work, item) for item in items]
    waiting = set(futures)
    with Interrupt(SAME_COMMAND) as interrupt:
        try:
            while waiting and not interrupt.asked:
                finished, waiting = wait(waiting, LOOK_SECONDS, FIRST_COMPLETED)
                for future in finished:
                    done(future.result())
        finally:  # interrupted, or one has failed: start no more, and let those that run save what they have
            pool.shutdown(wait=False, cancel_futures=True)
            told: set[subprocess.Popen[str]] = set()
            while not all(future.done() for future in futures):
                for child in _RUNNING - told:  # also one that was being started; a second signal would end it at once
                    child.terminate()
                    told.add(child)
                wait(futures, LOOK_SECONDS)
    return [future.result() for future in futures]


def _is_current(job: Job) -> bool:
    """Done, and an evaluation not older than any of its runs."""
    if not job.done or job.result is None:
        return False
    runs = [Path(word) / "summary.json" for flag, word in pairwise(job.arguments) if flag == "--run"]
    return all(job.result.stat().st_mtime >= run.stat().st_mtime for run in runs if run.exists())


def _diverged(job: Job) -> bool:
    return job.result is not None and (job.result.parent / DIVERGED).exists()


def _run(job: Job, folder: Path) -> Job:
    module = "s2rm_data" if job.program == "data" else f"s2rm_data.cli.{job.program}"
    path = folder / "reproduce.log"
    with disk_errors(path), path.open("a", buffering=1) as log:
        status, said = _heard([sys.executable, "-m", module, *job.arguments], log, job.name)
    if status == TRAINING_DIVERGED and job.result is not None:
        write_whole(job.result.parent / DIVERGED, [said.encode()])  # a result, too: reported, not repeated
    elif status:
        last = said.strip().rpartition("\n")[2][-500:]
        raise S2RMError(f"{job.name} ended with exit status {status}: {last} ({path} has all that it said)")
    return job


@contextlib.contextmanager
def _started(command: list[str], stdout: IO[str] | int) -> Iterator[subprocess.Popen[str]]:
    """A program, which is among the running ones until it ends.

    It has a session of its own: Ctrl-C reaches it through us alone, once, and it saves before it stops.
    """
    try:
        child = subprocess.Popen(
            command, stdout=stdout, stderr=subprocess.PIPE, errors="replace", start_new_session=True,
            env=child_environment(),
        )  # fmt: skip
    except OSError as error:  # not of the log, as it would seem
        raise S2RMError(f"cannot start {command[0]}: {error.strerror}") from error
    _RUNNING.add(child)
    with child:
        try:
            yield child
        except BaseException:  # nobody listens to it any more
            child.terminate()
            raise
        finally:
            _RUNNING.discard(child)


def _heard(command: list[str], log: IO[str], name: str) -> tuple[int, str]:
    """Exit status of a program and what it said on standard error; that goes to the log, its progress to the user."""
    said, told = [], time.monotonic()
    with _started(command, log) as child:
        assert child.stderr
        for line in child.stderr:
            said.append(line)
            log.write(line)
            if PROGRESS.search(line) and time.monotonic() - told >= RELAY_SECONDS:
                told = time.monotonic()
                _say(f"{name}: {line.strip().partition(': ')[2]}")
        return child.wait(), "".join(said)


def _estimate(plan: Plan, side_by_side: int) -> float:
    """Seconds of training that are left, validations included, from a few timed steps of every model.
    As many processes are timed at once as will train at once: two threads of one core are not two cores."""
    total = 0.0
    for world in plan.worlds:
        searches = plan.search_jobs(world) if len(plan.rates) > 1 else []
        left = [job for job in (*searches, *plan.training_jobs(world)) if not job.done and not _diverged(job)]
        for model in dict.fromkeys(_model_of(job) for job in left):
            own = [job for job in left if _model_of(job) == model]
            steps = sum(job.steps for job in own)
            seconds = steps * _seconds_per_step(own[0], min(side_by_side, len(left)))
            runs = "1 run" if len(own) == 1 else f"{len(own)} runs"
            _say(f"{world} {model}: {runs}, {steps:,} steps: {duration(seconds)}")
            total += seconds
    return total / side_by_side


def _model_of(job: Job) -> str:
    return job.arguments[job.arguments.index("--model") + 1]


def _seconds_per_step(job: Job, side_by_side: int) -> float:
    """The mean over `side_by_side` processes that time the same model at the same time."""
    words = [word for word in job.arguments if word not in ("--resume", "-q")]
    where = words.index("--out")
    command = [sys.executable, "-m", "s2rm_data.cli.train", *words[:where], *words[where + 2 :], "--dry-run", "--json"]
    timed = _side_by_side(lambda _: _timed(command, job.name), range(side_by_side), side_by_side)
    return sum(timed) / side_by_side


def _timed(command: list[str], name: str) -> float:
    with _started(command, subprocess.PIPE) as child:
        out, err = child.communicate()
    if child.returncode:
        raise S2RMError(f"cannot time {name}: {err.strip()[-500:]}")
    found = json.loads(out)
    return float(found["seconds"]) / int(found["steps"])


def _say(text: str) -> None:
    click.echo(f"s2rm-reproduce: {text}", err=True)


def main() -> NoReturn:
    run(reproduce, "s2rm-reproduce")


if __name__ == "__main__":
    main()
