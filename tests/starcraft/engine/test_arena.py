"""Arenas: a battle of units that were put there one by one is the scenario's battle, whoever stood there before."""

import numpy as np
import pytest

from s2rm_data.starcraft.codes import Order
from s2rm_data.starcraft.engine import Engine
from s2rm_data.starcraft.engine.arena import Arena
from s2rm_data.starcraft.formation import CENTRE, formation
from s2rm_data.starcraft.scenarios import parse
from s2rm_data.starcraft.units import NUMBER_OF

SEED = 2**63 + 12345
FIELDS = ("position", "health", "shield", "energy", "cooldown_loops")


def put(arena: Arena, name: str) -> None:
    """The armies of a scenario, created one by one in the places the embedded engine gives them, enemies under way."""
    scenario, start = parse(name), formation(parse(name))
    for slot, (kind, place) in enumerate(zip(start.unit_type, start.position, strict=True)):
        agent = slot < scenario.agent_count
        x, y = place + CENTRE
        arena.add(int(kind), (float(x), float(y)), agent=agent, passive=agent)
    enemies = range(arena.units - scenario.enemy_count, arena.units)
    for slot in enemies:
        arena.order(0, slot, Order.ATTACK_MOVE, point=scenario.order_segment[0])


def same(engine: Engine, arena: Arena, slots: np.ndarray) -> bool:
    ours, theirs = engine.snapshot(), arena.snapshot()
    return all(np.array_equal(getattr(ours, f)[0], getattr(theirs, f)[0][slots]) for f in FIELDS)


@pytest.mark.parametrize("name", ["5s3z", "1c3s5z", "MMM2"])
def test_units_put_there_one_by_one_fight_the_scenarios_battle(name: str) -> None:
    start = formation(parse(name)).position + CENTRE
    engine = Engine(parse(name), [SEED], position=start)
    for slot in range(parse(name).agent_count, engine.units):
        engine.order(0, slot, Order.ATTACK_MOVE, point=parse(name).order_segment[0])
    arena = Arena(parse("3s5z"), SEED, head_start=False)
    old = arena.units
    put(arena, name)
    agents = parse(name).agent_count
    ours = np.arange(8, 8 + agents)
    slots = np.concatenate([ours, np.arange(8 + agents + 8, arena.units)])
    for slot in set(range(arena.units)) - set(slots.tolist()):
        arena.kill(0, slot)
    assert len(slots) == engine.units == arena.units - old
    for _ in range(400):
        engine.run_loops(1)
        arena.run_loops(1)
        assert same(engine, arena, slots)
    assert (arena.snapshot().health[0][slots] == 0).any()


def test_forgetting_the_dead_changes_nothing_for_the_living() -> None:
    kept, cleared = Arena(parse("3s5z"), SEED), Arena(parse("3s5z"), SEED)
    alive = np.arange(16)
    for _ in range(60):
        kept.run_loops(10)
        cleared.run_loops(10)
        alive = alive[cleared.forget_dead()]
        for field in FIELDS:
            assert np.array_equal(getattr(kept.snapshot(), field)[0][alive], getattr(cleared.snapshot(), field)[0])
    assert cleared.units < 16
    assert (cleared.agents, cleared.units) == ((alive < 8).sum(), len(alive))


def test_slots_move_and_references_follow() -> None:
    arena = Arena(parse("2m"), SEED)
    arena.order(0, 0, Order.ATTACK, target=3)
    order = arena.add(NUMBER_OF["zealot"], (5.0, 16.0), agent=True, passive=True)
    assert order == [0, 1, -1, 2, 3]
    assert (arena.agents, arena.units) == (3, 5)
    assert arena.orders().target[0, 0] == 4
    assert arena.passive.tolist() == [True, True, True, False, False]
    assert arena.snapshot().unit_type.tolist() == [1, 1, 5, 1, 1]


def test_who_aimed_at_a_forgotten_unit_stands_idle() -> None:
    arena = Arena(parse("2m"), SEED)
    arena.order(0, 0, Order.ATTACK, target=3)
    arena.run_loops(1)
    arena.kill(0, 3)
    arena.forget_dead()
    assert arena.orders().kind[0, 0] == Order.IDLE
    arena.run_loops(50)
    assert arena.units == 3
