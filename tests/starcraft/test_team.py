"""Policies, asked through a team with hand-made snapshots."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from s2rm_data.core.errors import UsageError
from s2rm_data.starcraft.codes import Action, Snapshot
from s2rm_data.starcraft.policies import POLICIES
from s2rm_data.starcraft.rollout import SIGHT, Team, members_of
from s2rm_data.starcraft.units import NUMBER_OF, UNIT_TYPES

MARINE, MARAUDER, MEDIVAC, STALKER, ZEALOT = (
    NUMBER_OF[name] for name in ("marine", "marauder", "medivac", "stalker", "zealot")
)
STARTS = np.array([[23.0, 16.0], [9.0, 16.0]])
SINGLE = sorted(set(POLICIES.names()) - {"mixed"})


def snapshot(agents: list[tuple[int, float, float]], enemies: list[tuple[int, float, float]]) -> Snapshot:
    """One battle of units (type, x, y) with full health and ready weapons."""
    units = agents + enemies
    types = np.array([unit[0] for unit in units], np.uint8)
    stats = [UNIT_TYPES[unit[0]] for unit in units]
    return Snapshot(
        agents=len(agents),
        unit_type=types,
        position=np.array([[unit[1:] for unit in units]], np.float32),
        health=np.array([[unit.health for unit in stats]], np.float32),
        shield=np.array([[unit.shield for unit in stats]], np.float32),
        energy=np.array([[unit.energy for unit in stats]], np.float32),
        cooldown_loops=np.zeros((1, len(units)), np.float32),
    )


def mask(view: Snapshot) -> NDArray[np.bool_]:
    """SMAC's mask on open ground: stop, four moves, enemies (for healers: friends) within 6."""
    B, U = view.health.shape
    N = view.agents
    available = np.zeros((B, N, Action.ATTACK + max(N, U - N)), np.bool_)
    for b, a in np.ndindex(B, N):
        if view.health[b, a] <= 0:
            available[b, a, Action.NO_OP] = True
            continue
        available[b, a, Action.STOP : Action.ATTACK] = True
        healer = view.unit_type[a] == MEDIVAC
        for index, unit in enumerate(range(N) if healer else range(N, U)):
            near = np.hypot(*(view.position[b, unit] - view.position[b, a])) <= 6
            friend_is_healer = healer and view.unit_type[unit] == MEDIVAC
            available[b, a, Action.ATTACK + index] = near and view.health[b, unit] > 0 and not friend_is_healer
    return available


def ask(policy: str, view: Snapshot, *, seed: int = 1, step: int = 0, epsilon: float = 0.0) -> list[int]:
    seeds = np.full(len(view.health), seed, np.uint64)
    team = Team(policy, epsilon=epsilon, seeds=seeds, agents=view.agents, starts=STARTS)
    running = np.ones(len(view.health), np.bool_)
    return team.act(view, mask(view), step=step, running=running)[0].tolist()


def scattered(seed: int) -> Snapshot:
    """Two armies of all types spread over a field larger than an agent's sight, some dead, hurt or cooling."""
    rng = np.random.default_rng(seed)
    kinds = rng.integers(1, 10, 14)
    places = rng.uniform(4, 28, (14, 2))
    units = [(int(kind), float(x), float(y)) for kind, (x, y) in zip(kinds, places, strict=True)]
    view = snapshot(units[:7], units[7:])
    view.health[:] *= rng.choice([0, 0.5, 1], view.health.shape)
    view.cooldown_loops[:] = rng.uniform(0, 20, view.health.shape)
    return view


def test_the_policies_of_the_issue_are_found_by_their_names() -> None:
    assert {"smac", "smac_restricted", "focus", "kite", "random", "mixed"} <= set(POLICIES.names())
    assert all(POLICIES.load(name).description for name in POLICIES.names())
    with pytest.raises(UsageError, match="did you mean 'focus'"):
        POLICIES.load("focsu")


@pytest.mark.parametrize("policy", SINGLE)
@pytest.mark.parametrize("epsilon", [0.0, 0.5])
def test_actions_keep_to_the_mask_or_aim_at_an_enemy_in_sight(policy: str, epsilon: float) -> None:
    for seed in range(40):
        view = scattered(seed)
        available = mask(view)
        for agent, action in enumerate(ask(policy, view, seed=seed, epsilon=epsilon)):
            allowed = available[0, agent, action]
            if not allowed and not POLICIES.load(policy).keeps_to_mask and action >= Action.ATTACK:
                target = view.agents + action - Action.ATTACK
                gap = view.position[0, target] - view.position[0, agent]
                allowed = view.health[0, target] > 0 and np.hypot(*gap) < SIGHT
            assert allowed, (seed, agent, action)


@pytest.mark.parametrize("policy", SINGLE)
def test_what_an_agent_cannot_see_does_not_change_its_action(policy: str) -> None:
    for seed in range(40):
        view, other = scattered(seed), scattered(seed)
        available = mask(view)
        rng = np.random.default_rng(seed)
        for agent in range(view.agents):
            unseen = np.hypot(*(view.position[0] - view.position[0, agent]).T) >= SIGHT
            count = int(unseen.sum())
            other = scattered(seed)
            other.position[0, unseen] = view.position[0, agent] + np.float32([9.0, 0.5]) * rng.choice(
                [-1, 1], (count, 1)
            )
            other.health[0, unseen] = rng.uniform(0, 100, count)
            other.shield[0, unseen] = rng.uniform(0, 100, count)
            other.cooldown_loops[0, unseen] = rng.uniform(0, 20, count)
            chosen = []
            for shown in (view, other):
                team = Team(policy, epsilon=0.1, seeds=np.uint64([seed]), agents=view.agents, starts=STARTS)
                chosen.append(team.act(shown, available, step=3, running=np.ones(1, np.bool_))[0, agent])
            assert chosen[0] == chosen[1]


@pytest.mark.parametrize("policy", POLICIES.names())
def test_the_dead_and_the_finished_do_nothing(policy: str) -> None:
    view = scattered(5)
    view.health[0, 2] = 0
    assert ask(policy, view)[2] == Action.NO_OP
    team = Team(policy, epsilon=0.0, seeds=np.uint64([1]), agents=view.agents, starts=STARTS)
    assert not team.act(view, mask(view), step=0, running=np.zeros(1, np.bool_)).any()


@pytest.mark.parametrize("policy", SINGLE)
def test_an_action_depends_on_seed_step_and_agent_but_not_on_the_batch(policy: str) -> None:
    views = [scattered(7) for _ in range(3)]
    batch = Snapshot(
        agents=views[0].agents,
        unit_type=views[0].unit_type,
        **{
            name: np.concatenate([getattr(view, name) for view in views])
            for name in ("position", "health", "shield", "energy", "cooldown_loops")
        },
    )
    seeds = np.array([11, 12, 13], np.uint64)
    team = Team(policy, epsilon=0.3, seeds=seeds, agents=batch.agents, starts=STARTS)
    actions = team.act(batch, mask(batch), step=4, running=np.ones(3, np.bool_))
    for row, view, seed in zip(actions.tolist(), views, seeds, strict=True):
        assert row == ask(policy, view, seed=int(seed), step=4, epsilon=0.3)


def test_random_takes_every_available_action_equally_often() -> None:
    view = snapshot([(STALKER, 16, 16)], [(ZEALOT, 18, 16), (ZEALOT, 28, 16)])
    counts = np.bincount([ask("random", view, step=step)[0] for step in range(3000)], minlength=8)
    assert counts[[Action.NO_OP, Action.ATTACK + 1]].sum() == 0  # the second enemy is out of reach
    assert abs(counts[1:7] - 500).max() < 5 * np.sqrt(3000 * (1 / 6) * (5 / 6))


def test_epsilon_is_the_share_of_random_actions() -> None:
    view = snapshot([(STALKER, 16, 16)], [(ZEALOT, 18, 16)])
    strayed = sum(ask("focus", view, step=step, epsilon=0.3)[0] != Action.ATTACK for step in range(2000)) / 2000
    expected = 0.3 * 5 / 6
    assert abs(strayed - expected) < 5 * np.sqrt(expected * (1 - expected) / 2000)


def test_smac_sticks_to_its_enemy_until_it_dies_and_free_form_attacks_at_any_distance_in_sight() -> None:
    view = snapshot([(STALKER, 10, 16)], [(ZEALOT, 18, 16), (ZEALOT, 18.5, 17)])
    for policy, first in (("smac", Action.ATTACK), ("smac_restricted", Action.EAST)):
        team = Team(policy, epsilon=0.0, seeds=np.uint64([1]), agents=1, starts=STARTS)
        running = np.ones(1, np.bool_)
        chosen = [team.act(view, mask(view), step=0, running=running)[0, 0]]
        swapped = snapshot([(STALKER, 13, 16)], [(ZEALOT, 18.5, 16), (ZEALOT, 16, 16)])
        chosen.append(team.act(swapped, mask(swapped), step=1, running=running)[0, 0])
        swapped.health[0, 1] = 0
        chosen.append(team.act(swapped, mask(swapped), step=2, running=running)[0, 0])
        assert chosen == [first, Action.ATTACK, Action.ATTACK + 1]


def test_focus_attacks_the_weakest_in_reach_not_the_nearest() -> None:
    view = snapshot([(STALKER, 10, 16)], [(ZEALOT, 12, 16), (ZEALOT, 15, 16), (ZEALOT, 17, 16)])
    view.health[0, 2:] = [30, 5]
    assert ask("focus", view) == [Action.ATTACK + 1]  # the third is weaker still, but out of reach
    view = snapshot([(ZEALOT, 10, 16)], [(ZEALOT, 11, 16), (ZEALOT, 14, 16)])
    view.health[0, 2] = 5
    assert ask("focus", view) == [Action.ATTACK]  # a zealot reaches the first only


@pytest.mark.parametrize(
    ("kind", "cooldown", "action"),
    [(STALKER, 20, Action.WEST), (STALKER, 3, Action.ATTACK), (ZEALOT, 20, Action.ATTACK)],
)
def test_kite_steps_back_only_with_a_ranged_weapon_that_cools(kind: int, cooldown: float, action: int) -> None:
    view = snapshot([(kind, 10, 16)], [(ZEALOT, 13, 16.5)])
    view.cooldown_loops[0, 0] = cooldown
    assert ask("kite", view) == [action]


def test_marauders_leave_medivacs_alone_and_medivacs_heal_the_nearest_hurt_friend() -> None:
    view = snapshot([(MARAUDER, 10, 16), (MARINE, 11, 17), (MEDIVAC, 9, 16)], [(MEDIVAC, 12, 16), (ZEALOT, 14, 16)])
    view.health[0, 1] -= 20
    for policy in ("smac", "smac_restricted", "focus", "kite"):
        assert ask(policy, view)[0] == Action.ATTACK + 1
        assert ask(policy, view)[2] == Action.ATTACK + 1


@pytest.mark.parametrize("policy", ["smac", "smac_restricted", "focus", "kite"])
def test_agents_who_see_no_enemy_search_the_enemy_start_then_turn_back(policy: str) -> None:
    team = Team(policy, epsilon=0.0, seeds=np.uint64([1]), agents=1, starts=STARTS)
    moves = []
    for step, x in enumerate([9.0, 15.0, 21.5, 19.0, 10.0, 12.0]):
        view = snapshot([(STALKER, x, 16)], [(ZEALOT, 16, 31)])
        moves.append(team.act(view, mask(view), step=step, running=np.ones(1, np.bool_))[0, 0])
    assert moves == [Action.EAST, Action.EAST, Action.WEST, Action.WEST, Action.EAST, Action.EAST]


def test_a_blocked_way_is_walked_along_the_other_axis() -> None:
    view = snapshot([(ZEALOT, 9, 16)], [(ZEALOT, 16, 18)])
    available = mask(view)
    available[0, 0, Action.EAST] = False
    team = Team("smac_restricted", epsilon=0.0, seeds=np.uint64([1]), agents=1, starts=STARTS)
    assert team.act(view, available, step=0, running=np.ones(1, np.bool_)).tolist() == [[Action.NORTH]]


def test_mixed_draws_every_member_about_equally_often_from_the_seed() -> None:
    seeds = np.arange(1000, dtype=np.uint64)
    team = Team("mixed", epsilon=0.0, seeds=seeds, agents=1, starts=STARTS)
    counts = np.bincount(team.policy, minlength=len(members_of("mixed")))
    assert team.names == members_of("mixed") and len(counts) == 5
    assert abs(counts - 200).max() < 5 * np.sqrt(1000 * 0.2 * 0.8)
    again = Team("mixed", epsilon=0.0, seeds=seeds[500:], agents=1, starts=STARTS)
    assert np.array_equal(again.policy, team.policy[500:])


_CACHE_PROBE = """
from s2rm_data.starcraft.policies import POLICIES, _view
_view.act.get_compile_result(_view._ACT)  # which is compiled, or read, when it is asked for
functions = [_view.act, *(POLICIES.load(name).choose for name in POLICIES.names() if POLICIES.load(name).choose)]
counts = [(f.stats.cache_hits.values(), f.stats.cache_misses.values()) for f in functions]
print(sum(sum(hits) for hits, _ in counts), sum(sum(misses) for _, misses in counts))
"""


def test_a_second_process_compiles_no_policy_again() -> None:
    def probe() -> list[int]:
        run: Any = subprocess.run([sys.executable, "-c", _CACHE_PROBE], capture_output=True, text=True, check=True)
        return [int(word) for word in run.stdout.split()]

    probe()
    hits, misses = probe()
    assert hits == len(SINGLE) + 1 and misses == 0
