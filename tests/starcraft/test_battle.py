from __future__ import annotations

import numpy as np
import pytest

from s2rm_data.core.errors import UsageError
from s2rm_data.starcraft.battle import Battle
from s2rm_data.starcraft.codes import Action


def attack_or_stop(battle: Battle) -> list[int]:
    """The last enemy in reach, else stop; nothing for the dead."""
    last = [int(np.flatnonzero(mask)[-1]) for mask in battle.available_actions()]
    return [action if action == Action.NO_OP or action >= Action.ATTACK else Action.STOP for action in last]


def test_a_battle_is_played_from_start_to_end() -> None:
    battle = Battle("3s5z", seed=7)
    total = 0.0
    while not battle.done:
        total += battle.step(attack_or_stop(battle))
    assert battle.outcome in ("win", "loss", "draw", "limit")
    assert total > 0
    assert len(battle.state) == 16
    assert any(not unit.alive for unit in battle.state)


def test_the_same_seed_and_actions_make_the_same_battle_and_reset_the_next_one() -> None:
    def play(battle: Battle) -> np.ndarray:
        for _ in range(25):
            battle.step(attack_or_stop(battle))
        return battle.snapshot.position

    one, two = Battle("3s5z", seed=3), Battle("3s5z", seed=3)
    first = play(one)
    assert (first == play(two)).all()
    one.reset()
    assert one.episode == 1
    assert (first != play(one)).any()
    two.reset(0)
    assert (first == play(two)).all()


def test_a_unit_tells_what_it_is_and_does() -> None:
    battle = Battle("MMM")
    battle.step([1] * 10)
    enemy = battle.state[10]
    assert (enemy.side, enemy.type.name, enemy.order, enemy.target) == ("enemies", "marine", "attack_move", None)
    assert battle.state[9].type.name == "medivac"
    assert battle.state[9].energy == pytest.approx(50 + 0.5625 * 9 / 16)  # a step and the enemies' head start


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ([1] * 7, "7 actions came for 8 agents"),
        (
            [1] * 7 + [99],
            r"agent 7 \(zealot\) cannot do action 99 \(there are 0 to 13\) now; allowed are 1 \(stop\), 2 \(move",
        ),
        ([1, 0, 1, 1, 1, 1, 1, 1], r"agent 1 \(stalker\) cannot do action 0 \(no-op\) now; allowed are 1 \(stop\)"),
        ([1] * 7 + [6], r"agent 7 \(zealot\) cannot do action 6 \(attack enemy 0\) now"),
        ([1] * 7 + [-1], r"action -1 \(there are 0 to 13\)"),
        ([1] * 7 + [1.5], "not a whole number"),
        ([1] * 7 + [True], "not a whole number"),
    ],
)
def test_an_order_that_is_not_available_is_an_error_that_says_what_is(actions: list[int], message: str) -> None:
    battle = Battle("3s5z")
    with pytest.raises(UsageError, match=message):
        battle.step(actions)
    assert battle.steps == 0


@pytest.mark.parametrize("value", [-1, 1.5, True, "3"])
def test_seeds_and_episodes_are_whole_numbers(value: object) -> None:
    with pytest.raises(UsageError, match="seed is"):
        Battle("3m", seed=value)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="episode is"):
        Battle("3m").reset(value)  # type: ignore[arg-type]


def test_a_battle_says_what_it_is() -> None:
    battle = Battle("3m", seed=np.int64(4))  # type: ignore[arg-type]
    battle.step([1, 1, 1])
    assert repr(battle) == "<Battle 3m, seed 4, episode 0, step 1: running>"


def test_a_battle_that_is_over_takes_no_more_orders() -> None:
    battle = Battle("1z_vs_9z")
    while not battle.done:
        battle.step([1])
    with pytest.raises(UsageError, match=r"over \(loss\).*reset"):
        battle.step([0])


def test_a_dead_agent_can_only_do_nothing() -> None:
    battle = Battle("2z_vs_3z")
    while all(unit.alive for unit in battle.state[:2]):
        battle.step([1, 1])
    assert not battle.done
    dead = next(unit.slot for unit in battle.state[:2] if not unit.alive)
    with pytest.raises(UsageError, match=rf"agent {dead} .*allowed are 0 \(no-op\)$"):
        battle.step([1, 1])
