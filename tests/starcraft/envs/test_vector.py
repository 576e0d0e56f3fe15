"""The vectorised environment: battles that do not depend on their neighbours, replaced when they end."""

from __future__ import annotations

import copy
import pickle
import sys
from typing import Any

import numba
import numpy as np
import pytest

from s2rm_data.core.errors import UsageError
from s2rm_data.starcraft.codes import Outcome
from s2rm_data.starcraft.envs import StarCraft2Env, VectorEnv, vector_env
from s2rm_data.starcraft.envs.battles import BattleBatch, EnvOptions


def drawn(available: np.ndarray, rows: np.ndarray, step: int) -> np.ndarray:
    """Random actions that depend on the environment's number and the step, not on how many there are."""
    keys = np.stack([np.random.default_rng([int(row), step]).random(available.shape[1:]) for row in rows])
    return (keys * available).argmax(axis=-1)


def play(envs: VectorEnv, steps: int) -> list[tuple[np.ndarray, ...]]:
    observation, info = envs.reset(seed=4)
    moments = [(observation, info["available"], info["state"])]
    for step in range(steps):
        actions = drawn(info["available"], np.arange(envs.count), step)
        observation, reward, terminated, truncated, info = envs.step(actions)
        moments.append((observation, info["available"], info["state"], reward, terminated, truncated))
    return moments


def test_observations_lie_in_their_space_with_every_option() -> None:
    more = {"obs_timestep_number": True, "obs_terrain_height": True, "obs_pathing_grid": True, "obs_last_action": True}
    looks = {"obs_own_pos": True, "conic_fov": True, "use_unit_ranges": True}
    for name in ("3m", "MMM2", "10gen_zerg_5_vs_5"):
        for options in ({}, more | looks, {"fully_observable": True}):
            envs = vector_env(name, 4, **options)
            moments = play(envs, 30)
            assert all(envs.observation_space.contains(moment[0]) for moment in moments), (name, options)


def test_an_environment_does_not_depend_on_how_many_there_are() -> None:
    few, many = play(vector_env("3m", 2), 90), play(vector_env("3m", 40), 90)
    for mine, other in zip(few, many, strict=True):
        assert all(np.array_equal(a, b[:2]) for a, b in zip(mine, other, strict=True))


def calls_of_a_step(count: int) -> int:
    """Python and C functions that one step of so many battles calls."""
    envs, calls = vector_env("3s5z", count), 0
    envs.reset(seed=0)
    actions = np.ones((count, 8), dtype=np.int64)
    envs.step(actions)

    def counted(*_: object) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(counted)
    envs.step(actions)
    sys.setprofile(None)
    return calls


def test_a_step_of_many_battles_runs_no_more_python_than_one_of_few() -> None:
    assert calls_of_a_step(4) == calls_of_a_step(200) < 500


def test_battles_that_end_are_replaced_at_once_and_told_apart() -> None:
    envs = vector_env("3m", 16)
    _, info = envs.reset(seed=0)
    ended = np.zeros(16, dtype=np.int64)
    for step in range(80):
        actions = drawn(info["available"], np.arange(16), step)
        observation, _, terminated, truncated, info = envs.step(actions)
        over = terminated | truncated
        ended += over
        assert not (terminated & truncated).any()
        assert info["available"][over][:, :, 1].all()  # new battles, everybody lives
        assert np.array_equal(info["episode"], ended)
        if over.any():
            assert np.array_equal(info["final_rows"], np.flatnonzero(over))
            assert info["final_observation"].shape == (over.sum(), 3, 30)
            lost_all = terminated & (info["dead_allies"] == 3)
            assert not info["final_observation"][np.isin(info["final_rows"], np.flatnonzero(lost_all))].any()
            assert observation[over].any(axis=(1, 2)).all()
        else:
            assert "final_rows" not in info
    assert ended.min() >= 1 and len(set(ended.tolist())) > 1


def test_it_says_what_loops_ask_of_an_environment() -> None:
    envs = vector_env("3m", 4)
    observation, _ = envs.reset(seed=0)
    assert envs.num_envs == 4 and envs.observation_space.contains(observation)
    assert envs.single_observation_space.contains(observation[0])
    assert envs.action_space.shape == (4, 3) and envs.single_action_space.nvec.tolist() == [9, 9, 9]
    images = vector_env("3m", 4, observation="polar", radial=4, angular=8)
    assert images.observation_space.contains(images.reset(seed=0)[0])
    envs.close()
    assert envs.step(np.ones((4, 3), dtype=np.int64))[1].shape == (4,)  # nothing was open


def test_some_battles_are_begun_anew() -> None:
    envs = vector_env("3m", 4)
    with pytest.raises(UsageError, match="some environments cannot be reset before all"):
        envs.reset(rows=[1])
    envs.reset(seed=0)
    envs.step(np.array([[4, 2, 3]] * 4))
    moved = envs.observe()
    after, info = envs.reset(rows=[1, 3])
    assert info["episode"].tolist() == [0, 1, 0, 1]
    assert np.array_equal(after[[0, 2]], moved[[0, 2]]) and not np.array_equal(after[[1, 3]], moved[[1, 3]])


def test_copies_and_pickles_play_on_as_the_original_does() -> None:
    for envs in (vector_env("10gen_zerg_5_vs_5", 3, conic_fov=True), vector_env("3m", 3, observation="polar")):
        _, info = envs.reset(seed=1)
        for step in range(20):
            *_, info = envs.step(drawn(info["available"], np.arange(3), step))
        others, moments = [envs, copy.deepcopy(envs), pickle.loads(pickle.dumps(envs))], []
        for other in others:
            told = info
            assert numba.typeof(other.battles.engine._shared) == numba.typeof(
                envs.battles.engine._shared
            )  # no compiling
            for step in range(40):
                _, reward, *_, told = other.step(drawn(told["available"], np.arange(3), step))
            moments.append((reward, told["state"], told["episode"]))
        for moment in moments[1:]:
            assert all(np.array_equal(a, b) for a, b in zip(moments[0], moment, strict=True)), envs.options.map_name


def test_every_map_is_played_by_one_compiled_engine() -> None:
    """Two kinds of array, those of maps with ways around walls and of others, had Numba compile it twice."""
    for name in ("corridor", "2c_vs_64zg", "3s5z", "10gen_zerg_5_vs_5"):
        shared = (numba.typeof(vector_env(one, 1).battles.engine._shared) for one in (name, "3m"))
        assert len(set(shared)) == 1, name


def test_the_limit_truncates_and_does_not_terminate() -> None:
    envs = vector_env("2s_vs_1sc", 2, state=False)
    envs.reset()
    for _ in range(envs.limit):
        _, _, terminated, truncated, info = envs.step(np.ones((2, 2), dtype=np.int64))  # the enemy does not come
    assert truncated.all() and not terminated.any() and not info["battle_won"].any()
    assert "state" not in info and "final_state" not in info


def test_it_is_the_drop_in_class_many_times() -> None:
    """The same battle, put into both: the same observations, states, masks and rewards."""
    single = StarCraft2Env("MMM", seed=7)
    single.reset()
    batch = BattleBatch(EnvOptions(map_name="MMM"), 3)
    rows = np.arange(3)
    batch.begin(rows, batch.fresh([7, 7, 7], head_start=False), rows)
    for step in range(40):
        actions = drawn(batch.available[:1], np.zeros(1), step)
        reward, done, _ = single.step(actions[0])
        batch.step(np.repeat(actions, 3, axis=0))
        assert batch.reward.tolist() == [reward] * 3
        assert np.array_equal(batch.observe()[2], single.get_obs())
        assert np.array_equal(batch.state()[1], single.get_state())
        if done:
            break
    assert (batch.outcome == batch.outcome[0]).all() and batch.outcome[0] != Outcome.WIN


def test_polar_images_are_those_of_the_renderer_and_show_the_last_actions() -> None:
    envs = vector_env("3s5z", 2, observation="polar", radial=8, angular=16)
    observation, _ = envs.reset(seed=1)
    assert isinstance(observation, dict)
    assert observation["categories"].shape == (2, 8, 8, 16, 3)
    assert observation["hecs"].shape == (2, 8, 8, 16, 4) and observation["height"].shape == (2, 8, 8, 16)
    assert (observation["categories"][:, :, 0, 0, 0] == 1).all()  # each agent is in its own centre
    assert not observation["categories"][..., 2].any()  # nobody has acted
    observation, *_ = envs.step(np.full((2, 8), 4))
    assert (observation["categories"][:, :, 0, 0, 2] == 5).all()  # "east"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"count": 0}, "count is 0; it must be a whole number from 1"),
        ({"count": 2.5}, "count is 2.5"),
        ({"observation": "pixels"}, "observation is 'pixels'; it must be one of features, polar"),
        ({"obs_lastaction": True}, "no option 'obs_lastaction'; did you mean 'obs_last_action'"),
        ({"map_name": "3x"}, "no scenario '3x'"),
        ({"seed": -1}, "seed is -1"),
        ({"observation": "polar", "radial": 1}, "radial is 1"),
    ],
)
def test_what_cannot_be_is_refused_by_name(given: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        vector_env(**{"map_name": "3m", "count": 2, **given})


@pytest.mark.parametrize(
    ("actions", "said"),
    [
        (np.ones((2, 2), dtype=np.int64), r"actions have shape \(2, 2\); it must be \(2, 3\)"),
        ([[1, 1, 1], [1, 1]], "the rows of actions have different lengths"),
        (np.ones((2, 3)), "actions are of type float64; they must be whole numbers"),
        (np.array([[1, 1, 1], [1, 0, 1]]), r"battle 1, agent 1 \(marine\) cannot do action 0 \(no-op\) now"),
        (np.array([[1, 1, 1], [1, 1, 99]]), r"agent 2 \(marine\) cannot do action 99"),
    ],
)
def test_wrong_actions_are_refused_with_what_is_allowed(actions: Any, said: str) -> None:
    envs = vector_env("3m", 2)
    with pytest.raises(UsageError, match=r"before reset\(\)"):
        envs.step(actions)
    envs.reset()
    with pytest.raises(UsageError, match=said):
        envs.step(actions)


@pytest.mark.parametrize("images", [False, True])
def test_some_environments_are_picked_out_as_from_an_array(images: bool) -> None:
    envs = vector_env("3m", 4, observation="polar" if images else "features")
    seen, _ = envs.reset(seed=3)
    for rows in (slice(1, 3), [2, 0], -1, np.array([False, True, True, False])):
        numbers = np.atleast_1d(np.arange(4)[rows])
        some = envs.observe(rows)
        for whole, part in zip(seen.values(), some.values(), strict=True) if images else [(seen, some)]:
            assert np.array_equal(part, whole[numbers])


@pytest.mark.parametrize("rows", [4, [0, 9], "all", 0.5, [True, False], [], [[0, 1]]])
def test_environments_that_do_not_exist_are_refused(rows: object) -> None:
    envs = vector_env("3m", 4)
    envs.reset()
    with pytest.raises(UsageError, match="pick out no environments; there are 4"):
        envs.observe(rows)
