from __future__ import annotations

import json
from pathlib import Path

from s2rm_data.evaluation.reproduce import BALL_MODELS, SEARCH_SEED, SIZES, Job, Plan


def option(job: Job, name: str) -> str:
    return job.arguments[job.arguments.index(name) + 1]


def finish(job: Job, loss: float) -> None:
    assert job.result is not None
    job.result.parent.mkdir(parents=True)
    job.result.write_text(json.dumps({"best_validation_loss": loss}))


def test_all_models_of_a_task_get_the_same_budget_and_the_same_search(tmp_path: Path) -> None:
    plan = Plan(folder=tmp_path)
    for task in ("bballs", "sc2"):
        for jobs in (plan.search_jobs(task), plan.training_jobs(task)):
            assert len({(option(job, "--steps"), option(job, "--preset")) for job in jobs}) == 1
        rates: dict[str, list[str]] = {}
        for job in plan.search_jobs(task):
            rates.setdefault(option(job, "--model"), []).append(option(job, "--lr"))
        assert set(map(tuple, rates.values())) == {tuple(map(repr, plan.rates))}
    assert {option(job, "--model") for job in plan.training_jobs("bballs")} == set(BALL_MODELS)


def test_the_rate_with_the_lowest_validation_loss_is_taken_and_its_seed_not_used_again(tmp_path: Path) -> None:
    plan = Plan(folder=tmp_path)
    for job in plan.search_jobs("sc2"):
        finish(job, 1.0 if option(job, "--lr") != "0.003" else 0.5)
        assert option(job, "--seed") == str(SEARCH_SEED)
    for job in plan.training_jobs("sc2"):
        assert option(job, "--lr") == "0.003"
        assert option(job, "--seed") != str(SEARCH_SEED)


def test_every_model_is_trained_once_before_any_is_trained_again(tmp_path: Path) -> None:
    seeds = [int(option(job, "--seed")) for job in Plan(folder=tmp_path).training_jobs("bballs")]
    assert seeds == sorted(seeds)
    assert seeds.count(0) == len(BALL_MODELS)
    assert seeds.count(2) == sum(n > 2 for n in BALL_MODELS.values())


def test_a_rate_that_diverged_is_not_taken(tmp_path: Path) -> None:
    plan = Plan(folder=tmp_path, rates=(1e-3, 1e-2))
    for job in plan.search_jobs("sc2"):
        if option(job, "--lr") == "0.01":
            job.result.parent.mkdir(parents=True)
            (job.result.parent / "diverged").touch()
        else:
            finish(job, 5.0)
    assert plan.chosen_rate("sc2", "lstm") == 1e-3


def test_what_is_done_is_not_done_again(tmp_path: Path) -> None:
    plan = Plan(folder=tmp_path, size=SIZES["smoke"])
    job = plan.training_jobs("bballs")[0]
    assert not job.done
    finish(job, 1.0)
    assert plan.training_jobs("bballs")[0].done


def test_every_run_is_evaluated_whatever_it_scores(tmp_path: Path) -> None:
    plan = Plan(folder=tmp_path)
    words = plan.evaluation_job("bballs").arguments
    assert words.count("--run") == sum(BALL_MODELS.values()) == 14
    assert [title for title, _ in plan.stages()][:2] == ["data", "bballs: search of the learning rate"]
