from __future__ import annotations

import math

import pytest

from s2rm_data.training.config import TrainConfig
from s2rm_data.training.schedule import DivergedError, LossWatch, Schedule

PAPER = TrainConfig(task="bballs", model="s2gru", preset="paper")


def after(schedule: Schedule, losses: list[float]) -> Schedule:
    for loss in losses:
        schedule = schedule.after_validation(PAPER, loss)
    return schedule


def test_the_rate_is_halved_after_five_validations_without_enough_improvement() -> None:
    schedule = after(Schedule(), [1.0, 0.99999, 0.99999, 0.99999, 0.99999])
    assert schedule.lr(PAPER, 10, 100) == 3e-4
    assert after(schedule, [0.99999]).lr(PAPER, 10, 100) == 1.5e-4


def test_improving_by_more_than_the_threshold_starts_the_count_again() -> None:
    schedule = after(Schedule(), [1.0, 1.0, 1.0, 1.0, 1.0, 0.9998, 1.0, 1.0, 1.0, 1.0])
    assert schedule.cuts == 0
    assert after(schedule, [1.0]).cuts == 1


def test_a_cosine_falls_from_the_rate_to_its_floor_after_the_warm_up() -> None:
    config = TrainConfig(task="bballs", model="s2gru", preset="paper", schedule="cosine", warmup_steps=10, lr=1.0)
    rates = [Schedule().lr(config, step, 1000) for step in range(1000)]
    assert rates[0] == pytest.approx(0.1)
    assert max(rates) == pytest.approx(1.0, abs=1e-3)
    assert rates[-1] == pytest.approx(config.cosine_floor, abs=1e-4)
    assert rates[10:] == sorted(rates[10:], reverse=True)


@pytest.mark.parametrize("loss", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_stops_and_says_at_which_step(loss: float) -> None:
    with pytest.raises(DivergedError, match=r"at step 7.*Try a smaller rate \(--lr 0.0001\)"):
        LossWatch().after(loss, 7, PAPER)


def test_an_exploding_loss_stops_but_an_ordinary_one_does_not() -> None:
    watch = LossWatch()
    for step in range(200):
        watch = watch.after(0.3 if step % 2 else 0.1, step, PAPER)
    with pytest.raises(DivergedError, match="explodes"):
        for step in range(200, 300):
            watch = watch.after(100.0, step, PAPER)


def test_states_survive_json_exactly() -> None:
    for state in (Schedule(), Schedule(best=0.1 + 0.2, bad=3, cuts=1)):
        assert Schedule.from_json(state.to_json()) == state
    watch = LossWatch().after(1 / 3, 0, PAPER).after(0.1, 1, PAPER)
    assert LossWatch.from_json(watch.to_json()) == watch
    assert LossWatch.from_json(LossWatch().to_json()) == LossWatch()
