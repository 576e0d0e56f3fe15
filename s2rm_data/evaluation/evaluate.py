"""A whole evaluation: which groups, how many sequences of each, and everything measured on them.

The result is plain JSON (`Evaluation.results`) and the few arrays that are drawn.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import s2rm_data
from s2rm_data.errors import UsageError
from s2rm_data.evaluation import balls, battles
from s2rm_data.evaluation.enclaves import enclave_maps, enclave_scores
from s2rm_data.evaluation.examples import Choice, PolarExample, polar_example, why_not
from s2rm_data.evaluation.rollouts import RollOuts, roll_outs, spans
from s2rm_data.evaluation.runs import Run
from s2rm_data.loading import groups_of
from s2rm_data.progress import Progress
from s2rm_data.store import Group, Store

FORMAT = "s2rm-data results 1"
# Assumption: the paper's heat maps name no fractions; its StarCraft II tables go from 20% to 100% of the agents.
DROPPED_VIEWS = tuple(round(0.1 * n, 1) for n in range(10))
ACTIVE_PERCENT = tuple(range(20, 101, 10))  # tables tab:sc2_fmf1 to tab:sc2_loss


@dataclass(frozen=True, kw_only=True)
class EvalConfig:
    """Sequences of each group that are looked at; None is all of them.

    `sequences`: for the scores with all views. `dropped_sequences`: for those with views or agents dropped, which cost
    as much again for every fraction. `rollout_sequences`: for roll-outs. `episode`, `agent`, `step`: the polar images
    that are drawn; a `step` of None is the middle of the agent's life.
    """

    sequences: int | None = None
    dropped_sequences: int | None = 50
    rollout_sequences: int | None = 50
    dropped_views: tuple[float, ...] = DROPPED_VIEWS
    active_percent: tuple[int, ...] = ACTIVE_PERCENT
    episode: int = 0
    agent: int = 0
    step: int | None = None

    def __post_init__(self) -> None:
        for name in ("sequences", "dropped_sequences", "rollout_sequences"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UsageError(f"{name} is {value}; allowed are whole numbers from 1, or none for all")

    @classmethod
    def quick(cls, **options: Any) -> EvalConfig:
        """A first look, in about a minute a model."""
        small = {"sequences": 20, "dropped_sequences": 5, "rollout_sequences": 5}
        return cls(**{**small, "dropped_views": (0.0, 0.2, 0.5, 0.8), "active_percent": (20, 50, 80, 100), **options})


@dataclass(kw_only=True)
class Evaluation:
    results: dict[str, Any]
    runs: Sequence[Run]
    rollouts: dict[str, RollOuts] = field(default_factory=dict)  # by split: test_1, ...
    enclaves: dict[str, NDArray[np.float32]] = field(default_factory=dict)  # by run
    examples: dict[str, PolarExample] = field(default_factory=dict)  # by group


def evaluate(
    runs: Sequence[Run], store: Store, config: EvalConfig, *, device: torch.device, progress: Progress | None = None
) -> Evaluation:
    progress = progress or Progress()
    tasks = {task: [run for run in runs if run.task == task] for task in dict.fromkeys(run.task for run in runs)}
    plans = {task: _plan(store, task, chosen) for task, chosen in tasks.items()}
    drawn = _to_draw(plans["sc2"], config, device) if "sc2" in tasks else []
    progress.start(sum(_work(plan, len(tasks[task]), config) for task, plan in plans.items()), 0)
    made = Evaluation(results=_heading(runs, store, config), runs=runs)
    if "bballs" in tasks:
        _evaluate_balls(made, plans["bballs"], tasks["bballs"], config, device, progress)
    if "sc2" in tasks:
        _evaluate_battles(made, plans["sc2"], tasks["sc2"], config, device, progress)
        for group in drawn:
            made.examples[group.path] = polar_example(group, tasks["sc2"], _choice(config), device=device)
    made.enclaves = enclave_maps(runs)
    made.results["enclaves"] = {name: enclave_scores(maps) for name, maps in made.enclaves.items()}
    return made


def _heading(runs: Sequence[Run], store: Store, config: EvalConfig) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "package": f"s2rm-data {s2rm_data.__version__}",
        "store": str(store.path),
        "config": dataclasses.asdict(config),
        "runs": {run.name: run.describe() for run in runs},
    }


def _plan(store: Store, task: str, runs: Sequence[Run]) -> dict[str, list[Group]]:
    """The groups an evaluation needs, checked against the models. Balls: `test`; battles: `val` and `test`."""
    if task == "bballs":
        numbered = {path: re.fullmatch(r"bballs/test_(\d+)", path) for path in store.groups}
        found_tests = sorted((int(match[1]), path) for path, match in numbered.items() if match)
        if not found_tests:
            groups_of(store, task, "test_3")  # says what is missing and how to make it
        plan = {"test": [store[path] for _, path in found_tests]}
    else:
        found = groups_of(store, task, "val")
        known = [path for path in found if all(path in run.groups for run in runs)] or found
        tests = [path for path in store.groups if path.startswith("sc2/") and path.endswith("/test")]
        plan = {"val": [store[path] for path in known], "test": [store[path] for path in tests]}
    for run in runs:
        for group in (group for groups in plan.values() for group in groups):
            _check_shape(run, group)
    return plan


def _check_shape(run: Run, group: Group) -> None:
    config = group.settings["config"]
    if run.task == "bballs":
        found: tuple[Any, ...] = (float(config["size"]), float(config["size"]))
        expected, what = tuple(run.model.config.arena_size), "arenas of (width, height)"
    else:
        found, expected = (config["radial"], config["angular"]), tuple(run.model.config.image_size)
        what = "polar images of (radial, angular)"
    if found != expected:
        raise UsageError(
            f"{run.path} was trained on {what} {expected}, but {group.path} has {found}; evaluate it on a store made "
            "with the same options"
        )


def _choice(config: EvalConfig) -> Choice:
    return Choice(episode=config.episode, agent=config.agent, step=config.step)


def _to_draw(plan: dict[str, list[Group]], config: EvalConfig, device: torch.device) -> list[Group]:
    """Of the groups whose images are drawn those that have what was chosen; an error if none has."""
    candidates = [*plan["val"][:1], *plan["test"]]
    missing = [why_not(group, _choice(config), device) for group in candidates]
    if all(missing):
        raise UsageError("; ".join(dict.fromkeys(missing)))
    return [group for group, reason in zip(candidates, missing, strict=True) if not reason]


def _work(plan: dict[str, list[Group]], runs: int, config: EvalConfig) -> int:
    """Predicted sequences in all."""

    def total(groups: Sequence[Group], limit: int | None) -> int:
        return sum(len(group) if limit is None else min(limit, len(group)) for group in groups)

    if "val" in plan:
        shares = len(config.active_percent)
        return runs * (shares * total(plan["val"], config.dropped_sequences) + total(plan["test"], config.sequences))
    dropped = len(config.dropped_views) * total(plan["test"], config.dropped_sequences)
    return runs * (dropped + total(plan["test"], config.sequences) + total(plan["test"], config.rollout_sequences))


def _evaluate_balls(
    made: Evaluation,
    plan: dict[str, list[Group]],
    runs: Sequence[Run],
    config: EvalConfig,
    device: torch.device,
    progress: Progress,
) -> None:
    section: dict[str, Any] = {"one_step": {}, "dropped_views": {}, "rollouts": {}, "balls": {}, "sequences": {}}
    options: dict[str, Any] = {"device": device, "progress": progress}
    rolling = [run for run in runs if not run.model.needs_next_views]
    for group in plan["test"]:
        split = group.path.split("/")[-1]
        section["balls"][split] = group.settings["config"]["balls"]
        section["sequences"][split] = _count(group, config.sequences)
        section["one_step"][split] = balls.one_step(group, runs, (0.0,), limit=config.sequences, **options)[0.0]
        dropped = balls.one_step(group, runs, config.dropped_views, limit=config.dropped_sequences, **options)
        section["dropped_views"][split] = {f"{fraction:g}": scores for fraction, scores in dropped.items()}
        if rolling and spans(group["frames"].shape[1])[1]:
            rolled = roll_outs(group, rolling, limit=config.rollout_sequences, shown=1, **options)
            made.rollouts[split] = rolled
            section["rollouts"][split] = _rollout_json(rolled)
        progress.advance((len(runs) - len(rolling)) * _count(group, config.rollout_sequences))
    made.results["bballs"] = section


def _rollout_json(rolled: RollOuts) -> dict[str, Any]:
    return {
        "prompt_steps": rolled.prompt_steps,
        "sequences": rolled.sequences,
        "runs": {name: dataclasses.asdict(horizon) for name, horizon in rolled.runs.items()},
        "references": {name: dataclasses.asdict(horizon) for name, horizon in rolled.references.items()},
    }


def _evaluate_battles(
    made: Evaluation,
    plan: dict[str, list[Group]],
    runs: Sequence[Run],
    config: EvalConfig,
    device: torch.device,
    progress: Progress,
) -> None:
    options: dict[str, Any] = {"device": device, "progress": progress}
    fractions = [round(1 - percent / 100, 2) for percent in config.active_percent]
    robust = battles.one_step(plan["val"], runs, fractions, limit=config.dropped_sequences, **options)
    section: dict[str, Any] = {
        "val_groups": [group.path for group in plan["val"]],
        "episodes": {g.path: _count(g, config.dropped_sequences) for g in plan["val"]},
        "robustness": {str(p): robust[f] for p, f in zip(config.active_percent, fractions, strict=True)},
        "unseen": {},
    }
    for group in plan["test"]:
        scenario = group.settings["config"]["scenario"]
        section["unseen"][scenario] = battles.one_step([group], runs, (0.0,), limit=config.sequences, **options)[0.0]
        section["episodes"][group.path] = _count(group, config.sequences)
    made.results["sc2"] = section


def _count(group: Group, limit: int | None) -> int:
    return len(group) if limit is None else min(limit, len(group))
