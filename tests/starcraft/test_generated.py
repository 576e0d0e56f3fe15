"""SMACv2's scenarios: armies and places follow smacv2's definitions, and an episode is a function of its seed."""

from collections.abc import Sequence
from math import comb, factorial

import numpy as np
import pytest
from numpy.typing import NDArray

from s2rm_data.core.errors import UsageError
from s2rm_data.core.seeding import sequence_seeds
from s2rm_data.generators.sc2.making.battle_config import Sc2Config
from s2rm_data.generators.sc2.making.battle_source import Sc2Split
from s2rm_data.starcraft.codes import Action, Order, Outcome
from s2rm_data.starcraft.engine import Engine
from s2rm_data.starcraft.generated import RACES, Generated
from s2rm_data.starcraft.scenarios import parse
from s2rm_data.starcraft.units import NUMBER_OF, UNIT_TYPES, contact_distance

EPISODES = 4000
# Chi-square beyond which one in ten thousand samples lies, by degrees of freedom; the seeds are fixed.
MOST = {1: 15.1, 2: 18.4, 3: 21.1, 9: 33.7, 15: 44.3}


def draw(name: str, count: int = EPISODES) -> tuple[NDArray[np.uint8], NDArray[np.float64]]:
    generated = parse(name).generated
    assert generated is not None
    return generated.draw(sequence_seeds(1, name, 0, count))


def chi_square(counts: Sequence[int] | NDArray[np.int64], shares: Sequence[float]) -> float:
    expected = np.array(shares) * np.sum(counts)
    return float(np.sum((np.array(counts) - expected) ** 2 / expected))


def fits(counts: Sequence[int] | NDArray[np.int64], shares: Sequence[float]) -> bool:
    return chi_square(counts, shares) < MOST[len(shares) - 1]


@pytest.mark.parametrize("race", RACES)
def test_types_of_agents_are_drawn_by_weight(race: str) -> None:
    kinds, _ = draw(f"10gen_{race}_5_vs_5")
    weights = RACES[race].weights
    assert fits([int((kinds[:, :5] == NUMBER_OF[name]).sum()) for name in weights], list(weights.values()))


@pytest.mark.parametrize(("race", "never", "others"), [
    ("terran", "medivac", ("marine", "marauder")), ("zerg", "baneling", ("zergling", "hydralisk")),
])  # fmt: skip
def test_an_army_of_those_who_cannot_stand_alone_is_drawn_again(race: str, never: str, others: tuple[str, str]) -> None:
    kinds, _ = draw(f"10gen_{race}_1_vs_1")
    assert not (kinds == NUMBER_OF[never]).any()
    assert fits([int((kinds[:, 0] == NUMBER_OF[name]).sum()) for name in others], [0.5, 0.5])
    pairs = draw(f"10gen_{race}_2_vs_3")[0]
    assert (pairs[:, :2] != NUMBER_OF[never]).any(axis=1).all()
    assert (pairs[:, 4] != NUMBER_OF[never]).all()  # the one enemy more is an army of its own


def test_enemies_are_the_agents_army() -> None:
    for name, same in (("10gen_protoss_5_vs_5", 5), ("10gen_zerg_3_vs_6", 3), ("10gen_terran_6_vs_3", 3)):
        kinds, _ = draw(name, 300)
        agents = parse(name).agent_count
        for row in kinds:
            ours, theirs = row[:agents].tolist(), row[agents : agents + same].tolist()
            if same == agents:
                assert sorted(ours) == sorted(theirs)
            for kind in set(theirs):
                assert theirs.count(kind) <= ours.count(kind)


def test_places_are_reflected_or_surrounded_with_equal_chances() -> None:
    _, places = draw("10gen_protoss_1_vs_1")
    agent, enemy = places[:, 0], places[:, 1]
    surrounded = (agent == 16).all(axis=1)
    assert fits([int(surrounded.sum()), int((~surrounded).sum())], [0.5, 0.5])
    reflected = ~surrounded
    assert np.array_equal(enemy[reflected], agent[reflected] * [-1, 1] + [32, 0])
    x, y = agent[reflected].T
    assert fits(np.histogram(x, bins=10, range=(0, 15))[0], [0.1] * 10) and x.max() <= 15
    assert fits(np.histogram(y, bins=10, range=(0, 32))[0], [0.1] * 10)


def test_the_enemies_who_are_more_stand_anywhere_in_the_east() -> None:
    _, places = draw("10gen_protoss_1_vs_2")
    last = places[(places[:, 0] != 16).any(axis=1), 2]
    assert fits(np.histogram(last[:, 0], bins=10, range=(16, 32))[0], [0.1] * 10)


def test_surrounding_enemies_stand_in_groups_on_diagonals() -> None:
    _, places = draw("10gen_protoss_1_vs_4", 2 * EPISODES)
    places = places[(places[:, 0] == 16).all(axis=1)]
    first = places[:, 1]
    corner = 2 * (first[:, 0] > 16) + (first[:, 1] > 16)
    assert fits(np.bincount(corner, minlength=4), [0.25] * 4)
    along = (16 - np.abs(first - 16)).T  # from its corner inwards, both coordinates alike
    assert np.allclose(along[0], along[1], atol=1e-3) and along.max() < 14.01
    assert fits(np.histogram(along[0], bins=10, range=(0, 14))[0], [0.1] * 10)
    corners = 2 * (places[:, 1:, 0] > 16) + (places[:, 1:, 1] > 16)
    groups = [len(set(row)) for row in corners.tolist()]
    onto = {1: 1, 2: 7, 3: 6, 4: 1}  # ways to part four enemies into that many groups
    chances = [sum(comb(g, k) * factorial(k) * onto[k] / g**4 for g in range(k, 5)) / 4 for k in (1, 2, 3, 4)]
    assert fits(np.bincount(groups, minlength=5)[1:], chances)


def test_nobody_stands_on_another_and_agents_are_in_smacs_order() -> None:
    names = {number: unit.name for number, unit in UNIT_TYPES.items()}
    for name in ("10gen_terran_10_vs_10", "10gen_protoss_20_vs_23"):
        for kinds, places in zip(*draw(name, 40), strict=True):
            for u in range(len(kinds)):
                for v in range(u):
                    apart = contact_distance(UNIT_TYPES[kinds[u]], UNIT_TYPES[kinds[v]])
                    assert np.hypot(*(places[u] - places[v])) >= apart - 1e-9
            agents = parse(name).agent_count
            order = [(names[k], *place) for k, place in zip(kinds[:agents], places[:agents].tolist(), strict=True)]
            assert order == sorted(order)
            assert ((places >= 0) & (places < 32)).all()


def test_an_episode_is_a_function_of_its_seed() -> None:
    seeds = sequence_seeds(0, "x", 0, 20)
    generated = Generated(race="zerg", agents=4, enemies=5)
    kinds, places = generated.draw(seeds)
    for row, seed in enumerate(seeds):
        one = generated.draw(np.array([seed]))
        assert np.array_equal(one[0][0], kinds[row]) and np.array_equal(one[1][0], places[row])
    config = Sc2Config(scenario="10gen_terran_3_vs_4", steps=30, radial=4, angular=8)
    split = Sc2Split(config=config, seed=0, split="train", count=6)
    whole = split.produce(0, 6)
    assert len({tuple(row) for row in whole["unit_type"].tolist()}) > 1
    for name, values in split.produce(2, 5).items():
        assert np.array_equal(values, whole[name][2:5]), name
    lent: dict[str, list[np.ndarray]] = {name: [] for name in whole}
    for part in split.lend(0, 6):
        for name, values in part.arrays.items():
            lent[name].append(values.copy())
    for name, values in whole.items():
        assert np.array_equal(np.concatenate(lent[name]), values), name


def test_idle_enemies_attack_the_nearest_agent_and_somebody_wins() -> None:
    engine = Engine(parse("10gen_protoss_5_vs_5"), sequence_seeds(0, "x", 0, 30))
    start = engine.snapshot().position
    engine.step(np.full((30, 5), Action.STOP))
    orders = engine.orders()
    apart = np.hypot(*np.moveaxis(start[:, 5:, None] - start[:, None, :5], -1, 0))  # (30, enemies, agents)
    attack = orders.kind[:, 5:] == Order.ATTACK
    assert attack.all() and np.array_equal(orders.target[:, 5:], apart.argmin(axis=2))
    total = engine.reward.copy()
    while not engine.done.all():
        engine.step(np.full((30, 5), Action.STOP))
        assert (engine.reward >= 0).all()
        total += engine.reward
    assert (engine.outcome == Outcome.LOSS).all() and (total < 20).all()


def test_masks_allow_targets_within_each_types_own_range() -> None:
    engine = Engine(parse("10gen_terran_5_vs_5"), sequence_seeds(0, "x", 0, 60))
    ranges = {"marine": 5.0, "marauder": 6.0, "medivac": 4.0}
    seen = set()
    for _ in range(12):
        masks, now = engine.available(), engine.snapshot()
        for b, agent in np.argwhere(now.health[:, :5] > 0):
            kind = UNIT_TYPES[engine.kinds[b, agent]]
            for k in range(5):
                target = k if kind.is_healer else 5 + k
                reached = np.hypot(*(engine.position[b, target] - engine.position[b, agent])) <= ranges[kind.name]
                flies = kind.is_healer and UNIT_TYPES[engine.kinds[b, target]].is_healer
                assert masks[b, agent, Action.ATTACK + k] == (reached and not flies and now.health[b, target] > 0)
                seen.add((kind.name, bool(reached)))
        engine.step(np.full((60, 5), Action.STOP))
    assert len(seen) == 6


@pytest.mark.parametrize(("name", "words"), [
    ("10gen_human_5_vs_5", "no race 'human'"),
    ("10gen_protos_5_vs_5", "did you mean 'protoss'"),
    ("10gen_protoss", "10gen_RACE_N_vs_M"),
    ("10gen_protoss_0_vs_5", "0 agents; allowed are 1 to 50"),
    ("10gen_zerg_5_vs_51", "51 enemies; allowed are 1 to 50"),
])  # fmt: skip
def test_a_wrong_name_says_how_it_is_spelled(name: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        parse(name)
