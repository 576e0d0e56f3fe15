from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s2rm_data.core.errors import UsageError
from s2rm_data.starcraft.codes import Order, Outcome
from s2rm_data.starcraft.engine import Engine
from s2rm_data.starcraft.engine import layout as at
from s2rm_data.starcraft.engine.arena import Arena
from s2rm_data.starcraft.formation import formation
from s2rm_data.starcraft.scenarios import SMAC, Scenario, parse
from s2rm_data.starcraft.units import UNIT_TYPES

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
    engine = Engine(parse("3s5z"), np.arange(4000), mirror=True, mirrored_formation=True)
    run_mirrored(engine)
    wins, losses = (engine.outcome == Outcome.WIN).sum(), (engine.outcome == Outcome.LOSS).sum()
    assert wins + losses > 3900
    assert abs(int(wins) - int(losses)) < 3.3 * np.sqrt(wins + losses)


def test_a_battle_reflected_east_to_west_is_the_same_battle_reflected() -> None:
    start = np.round(formation(parse("3s5z")).position * 64) / 64 + 16  # exact in binary, so that it reflects exactly
    straight = Engine(parse("3s5z"), np.arange(50), mirror=True, position=start)
    reflected = Engine(parse("3s5z"), np.arange(50), mirror=True, position=start * (-1, 1) + (32, 0))
    for battle, slot in np.ndindex(50, 16):
        there = (23.0, 16.0) if slot < 8 else (9.0, 16.0)
        straight.order(battle, slot, Order.ATTACK_MOVE, point=there)
        reflected.order(battle, slot, Order.ATTACK_MOVE, point=(32.0 - there[0], there[1]))
    run_mirrored(straight)
    run_mirrored(reflected)
    assert (straight.outcome == reflected.outcome).all()
    assert np.abs(straight.position - 16 - (reflected.position - 16) * (-1, 1)).max() < 1e-12
    assert (straight.snapshot().health == reflected.snapshot().health).all()


def army_first(seed: int, *, agents_west: bool) -> Arena:
    """3s5z under mirrored orders, the western army created first: as agents, or as enemies."""
    plain = Engine(parse("3s5z"), [seed], mirror=True, head_start=False, enemy_order="created")
    arena = Arena(parse("3s5z"), seed)
    for slot in range(16):
        arena.kill(0, slot)
    arena.forget_dead()
    for slot, (kind, (x, y)) in enumerate(zip(plain.unit_type, plain.position[0], strict=True)):
        arena.add(int(kind), (float(x), float(y)), agent=(slot < 8) == agents_west, passive=False)
    for slot in range(16):
        west = (slot < 8) == agents_west
        arena.order(0, slot, Order.ATTACK_MOVE, point=(23.0, 16.0) if west else (9.0, 16.0))
    return arena


def test_which_side_an_army_is_on_changes_nothing_else() -> None:
    """The armies trade their slots, and keep positions, goals and their turns."""
    trade = np.roll(np.arange(16), 8)
    for seed in range(60):
        plain, swapped = army_first(seed, agents_west=True), army_first(seed, agents_west=False)
        for _ in range(400):
            plain.run_loops(1)
            swapped.run_loops(1)
        assert (plain.position == swapped.position[:, trade]).all(), seed
        assert (plain.snapshot().health == swapped.snapshot().health[:, trade]).all(), seed
        assert (plain.snapshot().health == 0).any(), seed


def hit_points(engine: Engine) -> np.ndarray:
    return engine.floats[:, at.HEALTH] + engine.floats[:, at.SHIELD]  # unrounded, unlike a snapshot


@pytest.mark.parametrize("name", MIXED)
def test_hit_points_lost_equal_damage_dealt(name: str) -> None:
    engine = Engine(parse(name), np.arange(10))
    draws = np.random.default_rng(1)
    for _ in range(60):
        before = hit_points(engine)
        running = ~engine.done
        mask = engine.available()
        weight = draws.random(mask.shape) + 2 * (np.arange(engine.actions) >= 6)  # attack whenever possible
        engine.step(np.argmax(mask * weight, axis=2))
        lost = engine.damage_taken + engine.spent - engine.restored
        assert (before - hit_points(engine))[running] == pytest.approx(lost[running], abs=1e-9)
        assert engine.damage_dealt[running].sum(axis=1) == pytest.approx(engine.damage_taken[running].sum(axis=1))


@pytest.mark.parametrize("name", ["3s5z", "MMM", "bane_vs_bane"])
def test_a_battle_is_the_same_in_a_batch_of_any_size(name: str) -> None:
    seeds = np.arange(100, 107, dtype=np.uint64)
    together = Engine(parse(name), seeds)
    play(together, 40)
    for k, seed in enumerate(seeds):
        alone = Engine(parse(name), [seed])
        play(alone, 40)
        assert alone.state_bytes() == together.state_bytes(k)


def test_golden_digest() -> None:
    """The same bits on every machine; a deliberate change of the rules changes it and the generator's version."""
    digest = hashlib.sha256()
    for name in ("3s5z", "1c3s5z", "MMM2", "bane_vs_bane", "corridor", "2c_vs_64zg", "2s_vs_1sc", "6h_vs_8z"):
        engine = Engine(parse(name), np.arange(4))
        play(engine, 40)
        digest.update(engine.state_bytes())
    assert digest.hexdigest()[:16] == "a84b86f08784f9b5"


def test_other_seeds_make_other_battles() -> None:
    engine = Engine(parse("3s5z"), [1, 2])
    play(engine, 30)
    assert (engine.position[0] != engine.position[1]).any()


def test_enemies_are_numbered_at_random_in_every_battle_or_as_they_are_created() -> None:
    """The same battles, but for the enemies' slots; every numbering is drawn by the battle's own seed."""
    seeds = np.arange(200)
    for name in ("8m", "MMM2", "10gen_zerg_5_vs_6"):
        drawn, created = (
            Engine(parse(name), seeds, head_start=False, enemy_order=order) for order in ("random", "created")
        )
        n, E = drawn.agents, drawn.units - drawn.agents
        there = [np.concatenate([one.position, one.kinds[..., None]], axis=-1) for one in (created, drawn)]
        assert (there[0][:, :n] == there[1][:, :n]).all(), name
        same = (there[0][:, n:, None] == there[1][:, None, n:]).all(axis=-1)  # (B, E, E)
        assert (same.sum(axis=1) == 1).all() and (same.sum(axis=2) == 1).all(), name
        assert (np.bincount(same.argmax(axis=2)[:, 0], minlength=E) > 200 / E / 3).all(), name
        alone = Engine(parse(name), [17], head_start=False)
        assert alone.state_bytes() == drawn.state_bytes(17), name
    with pytest.raises(UsageError, match="enemy_order is 'tags'"):
        Engine(parse("8m"), [0], enemy_order="tags")


def test_battles_that_are_over_stay_as_they_ended() -> None:
    engine = Engine(parse("1z_vs_9z"), np.arange(5))
    while not engine.done.all():
        engine.step(np.ones((5, 1)))
    end, steps = engine.state_bytes(), engine.step_count.copy()
    engine.step(np.ones((5, 1)))
    assert engine.state_bytes() == end
    assert (engine.step_count == steps).all()
    assert (engine.reward == 0).all()
    assert (engine.outcome == Outcome.LOSS).all()


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
    kinds = [UNIT_TYPES[int(number)] for number in engine.kinds[0]]
    most = {name: [getattr(kind, name) for kind in kinds] for name in ("shield", "energy_max")}
    most["health"] = [kind.most_health(enemy=slot >= engine.agents) for slot, kind in enumerate(kinds)]
    dead = np.zeros(engine.units, dtype=bool)
    for _ in range(25):
        engine.step(draws.integers(-3, engine.actions + 4, (1, engine.agents)))
        now = engine.snapshot()
        assert all(np.isfinite(values).all() for values in (now.position, now.health, now.shield, now.energy))
        assert (now.health >= 0).all()
        assert not (dead & (now.health[0] > 0)).any()
        dead |= now.health[0] == 0
        assert (now.health[0] <= most["health"]).all()
        assert (now.shield[0] <= most["shield"]).all()
        assert (now.energy[0] <= most["energy_max"]).all()
        assert ((now.position >= 0) & (now.position <= 32)).all()
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
    engine.order(0, 5, Order.MOVE, point=(6.0, 20.0))
    engine.run_loops(8)  # it takes one turn per loop, as everybody else
    assert engine.position[0, 5].tolist() == [4.0 + 2.25 / 2, 20.0]
