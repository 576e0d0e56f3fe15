"""SMAC's rules around the battle: masks, reward, end."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sc2_duels import duel

from s2rm_data.starcraft.codes import Action, Order, Outcome
from s2rm_data.starcraft.engine import Engine
from s2rm_data.starcraft.scenarios import parse
from s2rm_data.starcraft.terrain_maps import terrain
from s2rm_data.starcraft.units import UNIT_TYPES


def masks_by_the_book(engine: Engine) -> np.ndarray:
    """SMAC's rules, written once more, unit by unit."""
    grid = terrain(engine.scenario.terrain).pathing
    kinds = [UNIT_TYPES[int(number)] for number in engine.kinds[0]]
    masks = np.zeros((len(engine.seeds), engine.agents, engine.actions), dtype=bool)
    health, position = engine.snapshot().health, engine.position
    for b, agent in np.ndindex(masks.shape[:2]):
        if health[b, agent] == 0:
            masks[b, agent, Action.NO_OP] = True
            continue
        x, y = position[b, agent]
        masks[b, agent, Action.STOP] = True
        for action, (dx, dy) in enumerate(((0, 1), (0, -1), (1, 0), (-1, 0)), start=2):
            u, v = int(x + dx), int(y + dy)
            masks[b, agent, action] = 0 <= u < 32 and 0 <= v < 32 and grid[u, v]
        healer = kinds[agent].is_healer
        for k, target in enumerate(range(engine.agents) if healer else range(engine.agents, engine.units)):
            near = math.hypot(*(position[b, target] - (x, y))) <= 6
            shown = health[b, target] > 0 and not (healer and kinds[target].is_healer)
            masks[b, agent, Action.ATTACK + k] = near and shown
    return masks


@pytest.mark.parametrize("name", ["3s5z", "MMM2", "corridor", "2c_vs_64zg"])
def test_masks_are_smacs(name: str) -> None:
    engine = Engine(parse(name), np.arange(3))
    draws = np.random.default_rng(0)
    for _ in range(40):
        mask = engine.available()
        assert (mask == masks_by_the_book(engine)).all()
        engine.step(np.argmax(mask * draws.random(mask.shape), axis=2))
    assert engine.actions == Action.ATTACK + engine.scenario.enemy_count


def test_masks_round_toward_zero_at_the_maps_edge_as_smacs() -> None:
    engine = duel("2m_vs_1sc", (0.5, 16.0), (31.5, 16.0), (16.0, 20.0))
    assert engine.available()[0, :, [Action.EAST, Action.WEST]].tolist() == [[True, False], [True, True]]
    assert (engine.available() == masks_by_the_book(engine)).all()


def test_a_win_without_regeneration_brings_a_reward_of_twenty() -> None:
    engine = Engine(parse("8m"), np.arange(30), mirror=True)
    total = np.zeros(30)
    while not engine.done.all():
        engine.step(np.zeros((30, 8)))
        total += engine.reward
    won = engine.outcome == Outcome.WIN
    assert won.any()
    assert total[won] == pytest.approx(20.0)
    assert (total[engine.outcome == Outcome.LOSS] < 20 * (8 * 55) / (8 * 55 + 200) + 1e-9).all()


def test_reward_counts_damage_and_kills_of_one_step() -> None:
    engine = duel("1m_vs_2zg", (10.0, 16.0), (14.0, 16.0), (28.0, 23.0))
    engine.adjust(0, 1, health=5.0)
    engine.step([[Action.ATTACK]])
    most = 2 * 35 + 2 * 10 + 200
    assert engine.reward[0] == pytest.approx((5.0 + 10.0) * 20 / most)


def test_both_armies_dead_at_once_is_a_draw() -> None:
    engine = duel("1zg_vs_1b", (15.3, 16.0), (16.0, 16.0))
    engine.step([[Action.STOP]])
    assert engine.outcome[0] == Outcome.DRAW


def test_the_step_limit_ends_a_battle_without_a_winner() -> None:
    engine = duel("1z_vs_1sc", (4.0, 10.0), (28.0, 20.0))
    for _ in range(120):
        assert not engine.done[0]
        engine.step([[Action.STOP]])
    assert engine.outcome[0] == Outcome.LIMIT


def test_a_side_with_only_healers_left_has_lost() -> None:
    engine = Engine(parse("MMM"), [0])
    for slot in range(9):
        engine.kill(0, slot)
    assert engine.kinds[0, 9] == 3
    engine.step(np.zeros((1, 10)))
    assert engine.outcome[0] == Outcome.LOSS


def test_an_attack_on_what_the_weapon_cannot_hit_is_ignored() -> None:
    engine = duel("1mr_vs_1m1mv", (10.0, 16.0), (28.0, 22.0), (12.0, 16.0))
    engine.step([[Action.ATTACK + 1]])
    engine.step([[Action.ATTACK + 1]])
    assert engine.snapshot().health[0, 2] == 150
    assert engine.orders().kind[0, 0] == Order.IDLE


def test_an_attack_out_of_reach_chases_its_target() -> None:
    engine = duel("1z_vs_1sc", (10.0, 16.0), (20.0, 16.0))
    engine.step([[Action.ATTACK]])
    assert engine.position[0, 0, 0] == pytest.approx(10.0 + 2.25 / 2)


def test_orders_show_what_enemies_are_after() -> None:
    engine = Engine(parse("3s5z"), [0])
    orders = engine.orders()
    assert (orders.kind[0, 8:] == Order.ATTACK_MOVE).all()
    assert orders.point[0, 8:].mean(axis=0) == pytest.approx((9.0, 16.0), abs=1e-5)  # each has its place around it
    assert (orders.target[0, 8:] == -1).all()
    for _ in range(12):
        engine.step(np.ones((1, 8)))
    assert set(engine.orders().target[0, 8:]) <= set(range(-1, 8))
    assert (engine.orders().target[0, 8:] >= 0).any()


def test_facing_is_a_unit_vector() -> None:
    engine = Engine(parse("3s5z"), np.arange(4))
    for _ in range(20):
        engine.step(np.full((4, 8), 4))
    assert np.linalg.norm(engine.facing, axis=-1) == pytest.approx(1.0)
