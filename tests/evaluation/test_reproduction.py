from __future__ import annotations

import json
from pathlib import Path

import pytest

from s2rm_data.core.errors import DamagedStoreError, UsageError
from s2rm_data.core.registry import WORLDS
from s2rm_data.evaluation.reproduction import SEARCH_SEED, Job, Plan
from s2rm_data.evaluation.world_evaluation import evaluation_of

WORLDS_OF_THE_PAPER = {name: evaluation_of(WORLDS.load(name)).reproduction for name in ("bballs", "sc2")}
BALL_MODELS = WORLDS_OF_THE_PAPER["bballs"].models


def plan_for(folder: Path, **options) -> Plan:
    return Plan(folder=folder, worlds=WORLDS_OF_THE_PAPER, **options)


def option(job: Job, name: str) -> str:
    return job.arguments[job.arguments.index(name) + 1]


def finish(job: Job, loss: float) -> None:
    assert job.result is not None
    job.result.parent.mkdir(parents=True)
    job.result.write_text(json.dumps({"best_validation_loss": loss}))


def test_all_models_of_a_world_get_the_same_budget_and_the_same_search(tmp_path: Path) -> None:
    plan = plan_for(tmp_path)
    for task in ("bballs", "sc2"):
        for jobs in (plan.search_jobs(task), plan.training_jobs(task)):
            assert len({(option(job, "--steps"), option(job, "--preset")) for job in jobs}) == 1
        rates: dict[str, list[str]] = {}
        for job in plan.search_jobs(task):
            rates.setdefault(option(job, "--model") + "--set skip=true" * ("skip=true" in job.arguments), []).append(
                option(job, "--lr")
            )
        assert set(map(tuple, rates.values())) == {tuple(map(repr, plan.rates))}
    assert {option(job, "--model") for job in plan.training_jobs("bballs")} == set(BALL_MODELS)


def test_the_rate_with_the_lowest_validation_loss_is_taken_and_its_seed_not_used_again(tmp_path: Path) -> None:
    plan = plan_for(tmp_path)
    for job in plan.search_jobs("sc2"):
        finish(job, 1.0 if option(job, "--lr") != "0.003" else 0.5)
        assert option(job, "--seed") == str(SEARCH_SEED)
    for job in plan.training_jobs("sc2"):
        assert option(job, "--lr") == "0.003"
        assert option(job, "--seed") != str(SEARCH_SEED)


@pytest.mark.parametrize(
    ("losses", "taken"),
    [
        ((0.203, 0.200, 0.252), 1e-3),
        ((0.172, 0.147, 0.140), 6e-3),
        ((-0.99, -1.0, -0.9), 1e-3),
        ((5.0, 5.2, 5.2), 1e-3),
    ],
)
def test_of_rates_that_are_level_the_smallest_is_taken(tmp_path: Path, losses: tuple[float, ...], taken: float) -> None:
    plan = plan_for(tmp_path)
    for job in plan.search_jobs("sc2"):
        finish(job, losses[plan.rates.index(float(option(job, "--lr")))])
    assert {plan.chosen_rate("sc2", model) for model in plan.worlds["sc2"].models} == {taken}


def test_every_model_is_trained_once_before_any_is_trained_again(tmp_path: Path) -> None:
    seeds = [int(option(job, "--seed")) for job in plan_for(tmp_path).training_jobs("bballs")]
    assert seeds == sorted(seeds)
    assert seeds.count(0) == len(BALL_MODELS)
    assert seeds.count(2) == sum(n > 2 for n in BALL_MODELS.values())


def test_a_rate_that_diverged_is_not_taken(tmp_path: Path) -> None:
    plan = plan_for(tmp_path, rates=(1e-3, 1e-2))
    for job in plan.search_jobs("sc2"):
        if option(job, "--lr") == "0.01":
            job.result.parent.mkdir(parents=True)
            (job.result.parent / "diverged").touch()
        else:
            finish(job, 5.0)
    assert plan.chosen_rate("sc2", "lstm") == 1e-3


def test_the_search_is_told_as_a_table_with_what_was_taken(tmp_path: Path) -> None:
    plan = plan_for(tmp_path, rates=(1e-3, 3e-3))
    for job in plan.search_jobs("sc2"):
        finish(job, 0.25 if option(job, "--lr") == "0.003" else 0.5)
    lines = plan.search_markdown("sc2").splitlines()
    assert lines[:3] == [
        "| validation loss in the search | 0.001 | 0.003 |",
        "| --- | --- | --- |",
        "| S2GRU | 0.500 | **0.250** |",
    ]
    assert len(lines) == 2 + len(WORLDS_OF_THE_PAPER["sc2"].models)


def test_what_is_done_is_not_done_again(tmp_path: Path) -> None:
    plan = plan_for(tmp_path, size="smoke")
    job = plan.training_jobs("bballs")[0]
    assert not job.done
    finish(job, 1.0)
    assert plan.training_jobs("bballs")[0].done


def test_every_run_is_evaluated_whatever_it_scores(tmp_path: Path) -> None:
    plan = plan_for(tmp_path)
    words = plan.evaluation_job("bballs").arguments
    assert words.count("--run") == sum(BALL_MODELS.values()) == 17
    assert [title for title, _ in plan.stages()][:2] == ["data", "bballs: search of the learning rate"]


def test_the_data_commands_are_those_of_the_worlds_and_plug_ins_reach_every_command(tmp_path: Path) -> None:
    plan = plan_for(tmp_path, size="smoke", plugins=("mine",))
    assert [job.arguments[0] for job in plan.data_jobs()] == ["bballs", "sc2", "sc2"]
    jobs = [job for _, stage in plan.stages() for job in stage]
    assert all(option(job, "--plugin") == "mine" for job in jobs)


def test_a_size_that_a_world_does_not_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="bballs has no size 'huge'; it has laptop, smoke"):
        plan_for(tmp_path, size="huge")


@pytest.mark.parametrize("content", ["", "{", "[]", "7", '{"best_validation_loss": "x"}', "[" * 100_000])
def test_a_damaged_summary_of_the_search_is_named(content: str, tmp_path: Path) -> None:
    plan = plan_for(tmp_path)
    job = plan.search_jobs("sc2")[0]
    finish(job, 1.0)
    assert job.result is not None
    job.result.write_text(content)
    with pytest.raises(DamagedStoreError, match=r"summary.json is damaged; remove the folder .*search"):
        plan.training_jobs("sc2")
