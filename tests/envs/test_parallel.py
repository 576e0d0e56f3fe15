"""PettingZoo's own tests, and what its environment says of battles."""

from __future__ import annotations

import itertools
import os
import warnings
from typing import Any

import numpy as np
import pytest

from s2rm_data.envs import aec_env, parallel_env, vector_env
from s2rm_data.errors import UsageError

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # PettingZoo's tests import one of its own old names
    from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test, render_test


@pytest.mark.filterwarnings("ignore:Observation")  # PettingZoo warns of dictionaries and of values all equal
@pytest.mark.parametrize(
    "options", [{}, {"observation": "polar", "radial": 4, "angular": 8}], ids=["features", "polar"]
)
def test_pettingzoo_s_tests_pass(options: dict[str, Any]) -> None:
    parallel_api_test(parallel_env("3m", **options), num_cycles=120)
    api_test(aec_env("3m", **options), num_cycles=60)


def test_pettingzoo_s_seed_and_render_tests_pass() -> None:
    parallel_seed_test(lambda: parallel_env("3m", illegal_actions="stop"), num_cycles=40)
    os.environ["SDL_VIDEODRIVER"] = "dummy"
    render_test(lambda render_mode="rgb_array": aec_env("3m", render_mode=render_mode))


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


def test_wrong_use_is_refused() -> None:
    env = parallel_env("3m")
    with pytest.raises(UsageError, match=r"call reset\(\)"):
        env.step({})
    env.reset(seed=0)
    with pytest.raises(UsageError, match=r"actions came for \['marine_0'\]; the living agents are"):
        env.step({"marine_0": 1})
    with pytest.raises(UsageError, match=r"agent 1 \(marine\) cannot do action 8"):
        env.step({"marine_0": 1, "marine_1": 8, "marine_2": 1})
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
