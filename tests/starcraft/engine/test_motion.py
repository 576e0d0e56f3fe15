from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest
from sc2_duels import duel

from s2rm_data.starcraft.codes import Action, Order
from s2rm_data.starcraft.engine import Engine
from s2rm_data.starcraft.engine import layout as at
from s2rm_data.starcraft.scenarios import parse
from s2rm_data.starcraft.terrain_maps import terrain
from s2rm_data.starcraft.units import AIR, CONTACT_OVERLAP, MEDIVAC, UNIT_TYPES

STEPS = {Action.NORTH: (0, 1), Action.SOUTH: (0, -1), Action.EAST: (1, 0), Action.WEST: (-1, 0)}
CROWDED = ("3s5z", "1c3s5z", "MMM2", "corridor", "bane_vs_bane", "2c_vs_64zg", "6h_vs_8z", "so_many_baneling")


def test_a_step_covers_half_a_second_of_the_units_speed() -> None:
    walkers = [unit for unit in UNIT_TYPES.values() if unit.speed_per_second > 0 and not unit.is_healer]
    for unit, (action, direction) in product(walkers, STEPS.items()):
        engine = duel(f"1{unit.letters}_vs_1sc", (6.0, 16.0), (28.0, 16.0))
        engine.step([[action]])
        moved = engine.position[0, 0] - (6.0, 16.0)
        expected = np.array(direction) * unit.speed_per_second / 2
        assert moved == pytest.approx(expected, abs=1e-12), f"{action!r} of a {unit.name}"


def test_a_medivac_accelerates_at_the_rate_of_the_table() -> None:
    engine = duel("1m1mv_vs_1sc", (6.0, 10.0), (6.0, 16.0), (28.0, 16.0))
    engine.step([[Action.NO_OP, Action.EAST]])
    gain = MEDIVAC.acceleration / 256
    assert engine.position[0, 1, 0] == pytest.approx(6.0 + sum(gain * k for k in range(1, 9)), abs=1e-12)


def test_a_medivac_that_is_sent_on_at_every_step_brakes_for_its_goal_two_ahead() -> None:
    """Recorded in MMM2, in 6 of 6 undisturbed flights: 0.325, 0.9033 and 1.2105 in the first three steps."""
    engine = duel("1m1mv_vs_1sc", (6.0, 10.0), (6.0, 16.0), (28.0, 16.0))
    flown = []
    for _ in range(3):
        before = engine.position[0, 1, 0]
        engine.step([[Action.NO_OP, Action.EAST]])
        flown.append(float(engine.position[0, 1, 0] - before))
    assert flown == pytest.approx([0.3252, 0.9033, 1.2105], abs=2e-4)


def test_a_move_order_ends_two_units_away() -> None:
    engine = duel("1z_vs_1sc", (6.0, 16.0), (28.0, 16.0))
    engine.step([[Action.EAST]])
    engine.run_loops(30)
    assert engine.position[0, 0].tolist() == [8.0, 16.0]


def random_play(name: str, steps: int, battles: int) -> Iterator[Engine]:
    """Battles of random available actions; the same engine is handed out after every step."""
    engine = Engine(parse(name), np.arange(battles))
    draws = np.random.default_rng(0)
    for _ in range(steps):
        mask = engine.available()
        engine.step(np.argmax(mask * draws.random(mask.shape), axis=2))
        yield engine


@pytest.mark.parametrize("name", CROWDED)
def test_nobody_walks_through_units_of_the_own_plane_or_walls(name: str) -> None:
    """Overlaps of up to 0.03 are the game's: less than a hundredth of the recorded pairs show them."""
    ground = terrain(parse(name).terrain)
    for engine in random_play(name, 40, battles=4):
        for b, kind in enumerate(engine.kinds):
            plane = np.array([UNIT_TYPES[int(number)].plane for number in kind])
            radius = np.array([UNIT_TYPES[int(number)].radius for number in kind])
            apart = radius[:, None] + radius[None] - CONTACT_OVERLAP
            alive = engine.snapshot().health[b] > 0
            points = engine.position[b]
            distance = np.linalg.norm(points[:, None] - points[None], axis=-1)
            pairs = alive[:, None] & alive[None] & ~np.eye(len(kind), dtype=bool) & (plane[:, None] == plane[None])
            assert (distance[pairs] >= apart[pairs] - 0.03 - 1e-7).all()
            cells = np.floor(points[alive]).astype(int)
            assert ground.passable[plane[alive], cells[:, 0], cells[:, 1]].all()


def test_a_zealot_cannot_pass_a_closed_line_of_enemies() -> None:
    """Twenty-two spine crawlers close the band from wall to wall; a zealot walks against them for a minute."""
    wall = [(16.0, 8.01 + k * 0.7608) for k in range(22)]
    engine = duel("1z_vs_22sc", (8.0, 16.0), *wall)
    for slot in range(1, 23):
        engine.adjust(0, slot, cooldown_loops=1e6)
    engine.order(0, 0, Order.MOVE, point=(24.0, 16.0))
    engine.run_loops(16 * 60)
    assert engine.position[0, 0, 0] < 16


def test_a_colossus_walks_over_ground_units_and_zealots_do_not() -> None:
    zealots = [(16.0, 8.01 + k * 0.7608) for k in range(22)]
    for letters, passes in (("c", True), ("z", False)):
        engine = duel(f"1{letters}_vs_22sc", (8.0, 16.0), *zealots)
        for slot in range(1, 23):
            engine.adjust(0, slot, cooldown_loops=1e6)
        engine.order(0, 0, Order.MOVE, point=(24.0, 16.0))
        engine.run_loops(16 * 12)
        assert (engine.position[0, 0, 0] > 16) == passes


def test_zerglings_find_the_ramps_around_the_cliff() -> None:
    engine = Engine(parse("2c_vs_64zg"), [0])
    engine.adjust(0, 0, health=1e9)
    engine.adjust(0, 1, health=1e9)
    engine.run_loops(16 * 25)
    near = np.linalg.norm(engine.position[0, 2:] - 16, axis=-1) < 6
    assert near.sum() > 10


def test_zerglings_pass_the_choke_of_the_corridor() -> None:
    engine = Engine(parse("corridor"), [0])
    for agent in range(6):
        engine.kill(0, agent)
    engine.run_loops(16 * 25)
    distance = np.linalg.norm(engine.position[0, 6:] - (4.47, 4.3298), axis=-1)
    assert (distance < 5).all()


def test_a_moving_unit_shoves_an_idle_friend_aside() -> None:
    engine = duel("2z_vs_1sc", (6.0, 16.0), (8.0, 16.0), (28.0, 16.0))
    engine.order(0, 0, Order.MOVE, point=(10.0, 16.0))
    engine.run_loops(60)
    assert engine.position[0, 0, 0] == pytest.approx(10.0)
    assert engine.position[0, 1, 0] != 8.0


def test_nobody_pushes_whom_it_attacks_or_enemies_that_stand() -> None:
    engine = duel("2z_vs_1sc", (6.0, 16.0), (8.0, 16.0), (9.4, 16.0))
    engine.adjust(0, 2, cooldown_loops=1e6)
    engine.order(0, 1, Order.ATTACK, target=2)
    engine.order(0, 0, Order.MOVE, point=(14.0, 16.0))
    before = engine.position[0, 1:].copy()
    engine.run_loops(40)
    assert np.array_equal(engine.position[0, 1:], before)
    assert engine.position[0, 0, 0] > 9  # it has gone around them


def test_both_sides_take_any_order_to_any_point() -> None:
    engine = duel("1z_vs_1m", (4.0, 10.0), (28.0, 20.0))
    engine.order(0, 1, Order.MOVE, point=(28.0, 10.0))
    engine.order(0, 0, Order.ATTACK_MOVE, point=(28.0, 16.0))
    engine.run_loops(64)
    assert engine.position[0, 1, 1] == pytest.approx(20.0 - 4 * 2.25)
    assert engine.position[0, 0, 0] > 11


def test_fliers_cross_walls() -> None:
    assert MEDIVAC.plane == AIR
    engine = duel("1m1mv_vs_1sc", (6.0, 10.0), (6.0, 9.0), (28.0, 16.0))
    engine.order(0, 1, Order.MOVE, point=(6.0, 3.0))
    engine.run_loops(16 * 5)
    assert engine.position[0, 1, 1] == pytest.approx(3.0)


@pytest.mark.parametrize("name", CROWDED)
def test_who_is_beyond_touch_changes_no_step(name: str) -> None:
    """Units look at whom they may touch in a loop only; looking at everybody of their plane gives the same bits."""
    plain, thorough = Engine(parse(name), np.arange(4)), Engine(parse(name), np.arange(4), head_start=False)
    thorough._table = thorough._table.copy()
    touch = thorough._table[:, at.TOUCH_SQ : at.TOUCH_SQ + len(thorough._table)]
    touch[touch > 0.0] = 1e9
    thorough.run_loops(1)
    draws = np.random.default_rng(0)
    for _ in range(25):
        actions = np.argmax(plain.available() * draws.random((4, plain.agents, plain.actions)), axis=2)
        for engine in (plain, thorough):
            engine.step(actions)
        assert plain.state_bytes() == thorough.state_bytes()
