"""Gymnasium's checker, and the team as one player."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from s2rm_data.envs import vector_env
from s2rm_data.errors import UsageError

ID = "s2rm_data.envs.gym:SMAC-v0"


@pytest.mark.parametrize(
    "options", [{}, {"observation": "polar", "radial": 4, "angular": 8}], ids=["features", "polar"]
)
def test_gymnasium_s_checker_passes(options: dict[str, object]) -> None:
    env = gymnasium.make(ID, map_name="3m", illegal_actions="stop", render_mode="rgb_array", **options)
    check_env(env.unwrapped)


def test_a_battle_is_played_by_masks() -> None:
    env = gymnasium.make(ID, map_name="3m")
    _, info = env.reset(seed=3)
    done = False
    while not done:
        actions = info["action_mask"].shape[1] - 1 - info["action_mask"][:, ::-1].argmax(axis=1)
        observation, reward, terminated, truncated, info = env.step(actions)
        done = terminated or truncated
    assert observation.shape == (3, 30) and info["state"].shape == (48,) and isinstance(reward, float)
    with pytest.raises(UsageError, match=r"call reset\(\)"):
        env.unwrapped.step(actions)


def test_actions_that_the_masks_forbid_are_an_error_unless_asked_otherwise() -> None:
    env = gymnasium.make(ID, map_name="3m")
    env.reset(seed=0)
    with pytest.raises(UsageError, match=r"agent 0 \(marine\) cannot do action 8"):
        env.step(np.array([8, 8, 8]))
    lenient, stopped = (gymnasium.make(ID, map_name="3m", illegal_actions="stop") for _ in range(2))
    lenient.reset(seed=0)
    stopped.reset(seed=0)
    assert np.array_equal(lenient.step(np.array([8, 0, 8]))[0], stopped.step(np.array([1, 1, 1]))[0])
    with pytest.raises(UsageError, match="illegal_actions is 'ignore'; it must be one of error, stop"):
        gymnasium.make(ID, illegal_actions="ignore")


def test_many_at_once_are_the_vector_environment() -> None:
    envs, own = gymnasium.make_vec(ID, num_envs=4, map_name="3m"), vector_env("3m", 4)
    observation, info = envs.reset(seed=5)
    other, _ = own.reset(seed=5)
    assert np.array_equal(observation, other) and envs.observation_space.contains(observation)
    actions = np.ones((4, 3), dtype=np.int64)
    assert envs.action_space.contains(actions)
    for mine, theirs in zip(envs.step(actions)[:4], own.step(actions)[:4], strict=True):
        assert np.array_equal(mine, theirs)
    assert info["action_mask"].shape == (4, 3, 9)
