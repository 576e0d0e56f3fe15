from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s2rm_data.errors import UsageError
from s2rm_data.generators.sc2.engine import DRAW, LOSS, RUNNING, WIN, Engine
from s2rm_data.generators.sc2.engine import layout as at
from s2rm_data.generators.sc2.scenarios import SMAC, Scenario, parse
from s2rm_data.generators.sc2.units import UNIT_TYPES

MIXED = ("3s5z", "1c3s5z", "MMM2", "bane_vs_bane", "6h_vs_8z", "2s_vs_1sc", "7s4z_vs_3c2h")


def play(engine: Engine, steps: int, seed: int = 0) -> None:
    """Random available actions, the same for every battle that looks the same."""
    draws = np.random.default_rng(seed)
    weights = draws.random((steps, engine.agents, engine.actions))
    for step in range(steps):
        engine.step(np.argmax(engine.available() * weights[step], axis=2))


def run_mirrored(engine: Engine) -> None:
    idle = np.zeros((len(engine.seeds), engine.agents))
    while not engine.done.all():
        engine.step(idle)


def test_both_sides_under_the_same_orders_win_equally_often() -> None:
    """The difference of wins is within 3.3 standard deviations of zero: one fair engine in a thousand fails."""
    engine = Engine(parse("3s5z"), np.arange(4000), mirror=True)
    run_mirrored(engine)
    wins, losses = (engine.outcome == WIN).sum(), (engine.outcome == LOSS).sum()
    assert wins + losses > 3900
    assert abs(int(wins) - int(losses)) < 3.3 * np.sqrt(wins + losses)


def test_a_battle_reflected_east_to_west_is_the_same_battle_reflected() -> None:
    scenario = parse("3s5z")
    straight = Engine(scenario, np.arange(50), mirror=True)
    reflected = Engine(scenario, np.arange(50), mirror=True)
    for row in (at.X, at.GOAL_X, at.FACE_X):
        reflected.f[:, row] *= -1
    run_mirrored(straight)
    run_mirrored(reflected)
    for row in (at.X, at.GOAL_X, at.FACE_X):
        reflected.f[:, row] *= -1
    assert (straight.outcome == reflected.outcome).all()
    assert (straight.f == reflected.f).all()


def test_swapping_the_sides_slots_changes_nothing_else() -> None:
    """Agents' and enemies' slots trade places, and with them positions, goals and update order."""
    scenario = parse("3s5z")
    plain = Engine(scenario, np.arange(200), mirror=True)
    swapped = Engine(scenario, np.arange(200), mirror=True)
    trade = np.roll(np.arange(16), 8)
    for rows in (at.X, at.Y, at.GOAL_X, at.GOAL_Y, at.FACE_X, at.FACE_Y):
        swapped.f[:, rows] = plain.f[:, rows][:, trade]
    swapped.i[:, at.QUEUE] = (plain.i[:, at.QUEUE] + 8) % 16
    assert (swapped.unit_type[trade] == plain.unit_type).all()
    run_mirrored(plain)
    run_mirrored(swapped)
    mirrored = np.array([RUNNING, LOSS, WIN, DRAW, 4])[swapped.outcome]
    assert (plain.outcome == mirrored).all()
    assert (plain.f == swapped.f[:, :, trade]).all()


@pytest.mark.parametrize("name", MIXED)
def test_hit_points_lost_equal_damage_dealt(name: str) -> None:
    engine = Engine(parse(name), np.arange(10))
    draws = np.random.default_rng(1)
    for _ in range(60):
        before = engine.f[:, at.HEALTH] + engine.f[:, at.SHIELD]
        running = ~engine.done
        mask = engine.available()
        weight = draws.random(mask.shape) + 2 * (np.arange(engine.actions) >= 6)  # attack whenever possible
        engine.step(np.argmax(mask * weight, axis=2))
        after = engine.f[:, at.HEALTH] + engine.f[:, at.SHIELD]
        lost = engine.damage_taken + engine.spent - engine.restored
        assert (before - after)[running] == pytest.approx(lost[running], abs=1e-9)
        assert engine.damage_dealt[running].sum(axis=1) == pytest.approx(engine.damage_taken[running].sum(axis=1))


@pytest.mark.parametrize("name", ["3s5z", "MMM", "bane_vs_bane"])
def test_a_battle_is_the_same_in_a_batch_of_any_size(name: str) -> None:
    seeds = np.arange(100, 107, dtype=np.uint64)
    together = Engine(parse(name), seeds)
    play(together, 40)
    for k, seed in enumerate(seeds):
        alone = Engine(parse(name), [seed])
        play(alone, 40)
        assert (alone.f[0] == together.f[k]).all()
        assert (alone.i[0] == together.i[k]).all()


def test_golden_digest() -> None:
    """The same bits on every machine; a deliberate change of the rules changes it and the generator's version."""
    digest = hashlib.sha256()
    for name in ("3s5z", "1c3s5z", "MMM2", "bane_vs_bane", "corridor", "2c_vs_64zg", "2s_vs_1sc", "6h_vs_8z"):
        engine = Engine(parse(name), np.arange(4))
        play(engine, 40)
        digest.update(engine.f.tobytes() + engine.i.astype("<i8").tobytes())
    assert digest.hexdigest()[:16] == "1c70df07099fe2b2"


def test_other_seeds_make_other_battles() -> None:
    engine = Engine(parse("3s5z"), [1, 2])
    play(engine, 30)
    assert (engine.f[0] != engine.f[1]).any()


def test_battles_that_are_over_stay_as_they_ended() -> None:
    engine = Engine(parse("1z_vs_9z"), np.arange(5))
    while not engine.done.all():
        engine.step(np.ones((5, 1)))
    end, steps = engine.f.copy(), engine.step_count.copy()
    engine.step(np.ones((5, 1)))
    assert (engine.f == end).all()
    assert (engine.step_count == steps).all()
    assert (engine.reward == 0).all()
    assert (engine.outcome == LOSS).all()


def spelled_armies(enemy: bool) -> st.SearchStrategy[str]:
    letters = [unit.letters for unit in UNIT_TYPES.values() if enemy or unit.speed_per_second > 0]
    army = st.dictionaries(st.sampled_from(letters), st.integers(1, 4), min_size=1, max_size=3)
    fighting = army.filter(lambda units: set(units) != {"mv"})
    return fighting.map(lambda units: "".join(f"{count}{kind}" for kind, count in units.items()))


@settings(max_examples=60, deadline=None)
@given(ours=spelled_armies(enemy=False), theirs=spelled_armies(enemy=True), data=st.data())
def test_any_orders_in_any_scenario_keep_the_state_sound(ours: str, theirs: str, data: st.DataObject) -> None:
    engine = Engine(parse(f"{ours}_vs_{theirs}"), [data.draw(st.integers(0, 2**64 - 1))])
    seed = data.draw(st.integers(0, 2**32 - 1))
    draws = np.random.default_rng(seed)
    most = engine._table[engine.unit_type]
    dead = np.zeros(engine.units, dtype=bool)
    for _ in range(25):
        engine.step(draws.integers(-3, engine.actions + 4, (1, engine.agents)))
        f = engine.f[0]
        assert np.isfinite(f).all()
        assert (f[at.HEALTH] >= 0).all()
        assert not (dead & (f[at.HEALTH] > 0)).any()
        dead |= f[at.HEALTH] == 0
        assert (f[at.HEALTH] <= most[:, at.HEALTH_MAX]).all()
        assert (f[at.SHIELD] <= most[:, at.SHIELD_MAX]).all()
        assert (f[at.ENERGY] <= most[:, at.ENERGY_MAX]).all()
        assert (np.abs(f[[at.X, at.Y]]) <= 16).all()
        assert engine.available().any(axis=2).all()


@pytest.mark.parametrize("scenario", SMAC.values(), ids=lambda scenario: scenario.name)
def test_every_smac_map_is_played_to_an_end(scenario: Scenario) -> None:
    engine = Engine(scenario, [3])
    draws = np.random.default_rng(0)
    while not engine.done.all():
        mask = engine.available()
        engine.step(np.argmax(mask * draws.random(mask.shape), axis=2))
    assert engine.step_count[0] <= scenario.limit_steps


def test_actions_of_a_wrong_shape_are_a_clear_error() -> None:
    with pytest.raises(UsageError, match=r"shape \(2, 3\).*takes \(2, 8\)"):
        Engine(parse("3s5z"), [1, 2]).step(np.zeros((2, 3)))


def test_positions_of_a_wrong_shape_are_a_clear_error() -> None:
    with pytest.raises(UsageError, match=r"shape \(3, 2\); '3s5z' takes \(16, 2\)"):
        Engine(parse("3s5z"), [1], position=np.zeros((3, 2)))


def test_placing_a_unit_brings_it_back_fresh_and_killing_takes_it_out() -> None:
    engine = Engine(parse("3s5z"), [0])
    engine.kill(0, 5)
    engine.run_loops(8)
    assert engine.snapshot().health[0, 5] == 0
    engine.place(0, 5, (4.0, 20.0))
    engine.run_loops(8)
    assert engine.snapshot().health[0, 5] == 100
    assert engine.snapshot().position[0, 5].tolist() == [4.0, 20.0]
    assert sorted(engine.i[0, at.QUEUE, : engine.counters[0, 2]]) == list(range(16))
