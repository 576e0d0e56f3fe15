"""PettingZoo's own tests, and what its environment says of battles."""

from __future__ import annotations

import itertools
import os
import warnings
from typing import Any

import numpy as np
import pytest

from s2rm_data.core.errors import UsageError
from s2rm_data.starcraft.envs import aec_env, parallel_env, vector_env

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # PettingZoo's tests import one of its own old names
    from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test, render_test, seed_test, state_test


# PettingZoo warns of dictionaries, of values all equal, and of states without bounds.
@pytest.mark.filterwarnings("ignore:Observation")
@pytest.mark.parametrize("illegal_actions", ["error", "stop"])
@pytest.mark.parametrize(
    "options",
    [{}, {"observation": "polar", "radial": 4, "angular": 8}, {"mask": "info"}, {"mask": "rllib"}],
    ids=["features", "polar", "info", "rllib"],
)
def test_pettingzoo_s_tests_pass(options: dict[str, Any], illegal_actions: str) -> None:
    given = options | {"illegal_actions": illegal_actions}
    if given != {"mask": "info", "illegal_actions": "error"}:  # this one looks for masks in observations only
        parallel_api_test(parallel_env("3m", **given), num_cycles=120)
    api_test(aec_env("3m", **given), num_cycles=60)
    seed_test(lambda: aec_env("3m", **given), num_cycles=10)
    max_cycles_test_of_smac(given)


def max_cycles_test_of_smac(given: dict[str, Any]) -> None:
    """PettingZoo's own makes environments with `max_cycles`; here the map has a limit."""
    env = parallel_env("2s_vs_1sc", **given)
    env.reset(seed=0)
    steps = 0
    while env.agents:
        *_, truncations, _ = env.step(dict.fromkeys(env.agents, 1))
        steps += 1
    assert steps == 300 and all(truncations.values())


@pytest.mark.filterwarnings("ignore:Observation", "ignore:Environment's m", "ignore:The .* state")
def test_pettingzoo_s_tests_without_masks_pass_where_illegal_actions_are_stops() -> None:
    for mask in ("obs", "info"):
        given = {"illegal_actions": "stop", "mask": mask}
        parallel_seed_test(lambda given=given: parallel_env("3m", **given), num_cycles=40)
        state_test(aec_env("3m", **given), parallel_env("3m", **given))
    with pytest.raises(UsageError, match="allowed are"):
        parallel_seed_test(lambda: parallel_env("3m"), num_cycles=40)


def test_pettingzoo_s_render_test_passes() -> None:
    os.environ["SDL_VIDEODRIVER"] = "dummy"
    for given in ({}, {"mask": "info", "illegal_actions": "stop"}):  # it finds masks in observations only
        render_test(lambda render_mode="rgb_array", given=given: aec_env("3m", **given, render_mode=render_mode))


def play(env: Any, seed: int) -> list[dict[str, Any]]:
    random, infos = np.random.default_rng(seed), []
    observations, _ = env.reset(seed=seed)
    while env.agents:
        actions = {name: int(random.choice(np.flatnonzero(observations[name]["action_mask"]))) for name in env.agents}
        observations, rewards, terminations, truncations, info = env.step(actions)
        assert len(set(rewards.values())) == 1  # the team's
        infos.append(info | {"ends": {name: terminations[name] or truncations[name] for name in rewards}})
    return infos


def test_agents_are_named_by_type_and_leave_when_they_die() -> None:
    env = parallel_env("2s3z")
    assert env.possible_agents == ["stalker_0", "stalker_1", "zealot_0", "zealot_1", "zealot_2"]
    steps = play(env, seed=0)
    assert any(1 <= len(step["ends"]) < 5 for step in steps)
    for before, after in itertools.pairwise(steps):
        assert [name for name in before["ends"] if not before["ends"][name]] == list(after["ends"])
    assert all(steps[-1]["ends"].values())


def test_its_battles_are_those_of_the_vector_environment() -> None:
    env, envs = parallel_env("3m"), vector_env("3m", 3)
    observations, _ = env.reset(seed=8)
    batch, info = envs.reset(seed=8)
    assert np.array_equal(batch[0], np.stack([observations[name]["observation"] for name in env.agents]))
    assert np.array_equal(info["state"][0], env.state())


def test_actions_of_the_dead_are_ignored_whatever_they_are() -> None:
    env, other = parallel_env("2s3z"), parallel_env("2s3z")
    random, late = np.random.default_rng(0), 0
    observations, _ = env.reset(seed=1)
    other.reset(seed=1)
    while env.agents:
        masks = {name: observations[name]["action_mask"] for name in env.agents}
        actions = {name: int(random.choice(np.flatnonzero(mask))) for name, mask in masks.items()}
        dead = {name: value for name, value in zip(env.possible_agents, (None, 999, "x", -1, 1), strict=True)
                if name not in env.agents}  # fmt: skip
        observations, rewards, *_ = env.step(actions | dead)
        assert rewards == other.step(actions)[1] and set(observations) == set(actions)
        late += bool(dead)
    assert late > 3
    assert env.step({}) == ({}, {}, {}, {}, {})  # nobody is left
    with pytest.raises(UsageError, match=r"call reset\(\)"):
        env.step({"zealot_0": 1})


def test_at_the_limit_every_agent_is_truncated() -> None:
    """Also one that dies in that step: RLlib takes an episode for over if all are truncated, or all terminated."""
    env = parallel_env("3m")
    env.reset(seed=0)
    env._battles.limit = 1
    env._battles.engine.kill(0, 1)
    *_, terminations, truncations, _ = env.step(dict.fromkeys(env.agents, 1))
    assert all(truncations.values()) and [*terminations.values()] == [False, True, False] and not env.agents


def test_masks_are_where_they_are_asked_for() -> None:
    for mask, keys in (("obs", {"observation", "action_mask"}), ("rllib", {"observations", "action_mask"})):
        observations, infos = parallel_env("3m", mask=mask).reset(seed=0)
        assert all(set(seen) == keys for seen in observations.values())
        assert set(infos["marine_0"]) == {"battle_won", "dead_allies", "dead_enemies"}
    env = parallel_env("3m", mask="info")
    observations, infos = env.reset(seed=0)
    assert observations["marine_1"].shape == env.observation_space("marine_1").shape == (30,)
    assert infos["marine_1"]["action_mask"].tolist() == [0, 1, 1, 1, 1, 1, 0, 0, 0]
    infos = env.step(dict.fromkeys(env.agents, 1))[-1]
    assert infos["marine_0"] is not infos["marine_1"] and "action_mask" in infos["marine_0"]


def test_wrong_use_is_refused() -> None:
    env = parallel_env("3m")
    with pytest.raises(UsageError, match=r"call reset\(\)"):
        env.step({})
    env.reset(seed=0)
    with pytest.raises(UsageError, match=r"actions came for \['marine_0'\]; the living agents are"):
        env.step({"marine_0": 1})
    with pytest.raises(UsageError, match=r"agent 1 \(marine\) cannot do action 8"):
        env.step({"marine_0": 1, "marine_1": 8, "marine_2": 1})
    with pytest.raises(UsageError, match="there is no agent 'marine_7'; there are marine_0, marine_1, marine_2"):
        env.step({"marine_0": 1, "marine_1": 1, "marine_2": 1, "marine_7": 1})
    for action in ("stop", 1.5, None):
        with pytest.raises(UsageError, match=r"the action of marine_1 is .* a whole number below 9"):
            env.step({"marine_0": 1, "marine_1": action, "marine_2": 1})
    for actions in (None, [1, 1, 1], 1):
        with pytest.raises(UsageError, match="give a dictionary with an action for each of"):
            env.step(actions)
    for space in (env.action_space, env.observation_space):
        with pytest.raises(UsageError, match="there is no agent 'marine_3'; there are marine_0, marine_1, marine_2"):
            space("marine_3")
    with pytest.raises(UsageError, match="made without render_mode"):
        env.render()
    with pytest.raises(UsageError, match="the choices are human, rgb_array"):
        parallel_env("3m", render_mode="ansi")
    with pytest.raises(UsageError, match="seed is -1"):
        env.reset(seed=-1)
