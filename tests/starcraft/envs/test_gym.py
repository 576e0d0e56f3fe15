"""Gymnasium's checker, and the team as one player."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import vector as wrappers

from s2rm_data.core.errors import UsageError
from s2rm_data.starcraft.envs import vector_env

ID = "s2rm_data.starcraft.envs.gym:SMAC-v0"
AGENTS_ID = "s2rm_data.starcraft.envs.gym:SMAC-agents-v0"


def drawn(mask: Any, random: np.random.Generator) -> np.ndarray:
    return np.where(mask, random.random(np.shape(mask)), -1.0).argmax(axis=-1)


def play(envs: Any, steps: int = 100) -> list[Any]:
    """What `step` returned, in loops that know Gymnasium's interface alone; infos may be lists."""
    random, moments = np.random.default_rng(0), []
    _, info = envs.reset(seed=0)
    for _ in range(steps):
        masks = [one["action_mask"] for one in info] if isinstance(info, list) else info["action_mask"]
        moments.append(envs.step(drawn(masks, random)))
        info = moments[-1][-1]
    return moments


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


def ended(moments: list[Any]) -> int:
    return int(sum((terminated | truncated).sum() for _, _, terminated, truncated, _ in moments))


@pytest.mark.parametrize("mode", ["SameStep", "NextStep"])
@pytest.mark.filterwarnings("ignore:overflow encountered in cast")  # of infinite bounds, in Gymnasium's own spaces
@pytest.mark.filterwarnings("ignore:.*precision lowered")
def test_gymnasium_s_wrappers_take_many_battles(mode: str) -> None:
    wrapped = {
        "RecordEpisodeStatistics": wrappers.RecordEpisodeStatistics,
        "DictInfoToList": wrappers.DictInfoToList,
        "NormalizeReward": wrappers.NormalizeReward,
        "NormalizeObservation": wrappers.NormalizeObservation,
        "FlattenObservation": wrappers.FlattenObservation,
        "TransformObservation": lambda envs: wrappers.TransformObservation(envs, lambda seen: seen / 2),
    }
    played = 0
    for name, wrap in wrapped.items():
        if mode == "SameStep" and name.endswith("Observation"):
            continue  # which Gymnasium has for the other modes only
        envs = wrap(gymnasium.make_vec(ID, num_envs=6, map_name="3m", autoreset_mode=mode))
        moments = play(envs)
        assert envs.metadata["autoreset_mode"] == AutoresetMode(mode), name
        assert ended(moments) > 10, name
        played += 1
        if name == "RecordEpisodeStatistics":
            assert len(envs.return_queue) == ended(moments) and 10 < np.mean(envs.length_queue) < 60
    assert played == (3 if mode == "SameStep" else 6)


def test_what_ends_in_the_same_step_has_a_final_observation_and_info_as_gymnasium_gives_them() -> None:
    ours = play(gymnasium.make_vec(ID, num_envs=4, map_name="3m"))
    for observation, _, terminated, truncated, info in ours:
        over = terminated | truncated
        if not over.any():
            assert "final_obs" not in info and "final_info" not in info
            continue
        assert np.array_equal(info["_final_obs"], over) and np.array_equal(info["_final_info"], over)
        for row in range(4):
            if over[row]:
                assert info["final_obs"][row].shape == (3, 30)
                assert not np.array_equal(info["final_obs"][row], observation[row])
                assert info["final_info"]["dead_allies"][row] == 3 or info["final_info"]["battle_won"][row]
                assert info["final_info"]["state"][row].any()
            else:
                assert info["final_obs"][row] is None and not info["final_info"]["state"][row].any()
    assert ended(ours) > 5


def test_the_next_step_begins_the_new_battle_where_asked() -> None:
    """The same battles as in the same step, each with a step more, which brings nothing."""
    envs = gymnasium.make_vec(ID, num_envs=5, map_name="3m", autoreset_mode=AutoresetMode.NEXT_STEP)
    _, info = envs.reset(seed=2)
    random, over, begun = np.random.default_rng(1), np.zeros(5, dtype=bool), 0
    for _ in range(90):
        actions = drawn(info["action_mask"], random)
        actions[over] = 99  # which are ignored
        seen, reward, terminated, truncated, info = envs.step(actions)
        assert not reward[over].any() and not (terminated | truncated)[over].any() and "final_obs" not in info
        assert info["action_mask"][over][..., 1].all() and (info["battle"][over] > 0).all()
        begun += int(over.sum())
        over = terminated | truncated
    assert begun > 8 and seen.shape == (5, 3, 30)


def test_nothing_begins_by_itself_where_that_is_asked() -> None:
    envs = gymnasium.make_vec(ID, num_envs=3, map_name="3m", autoreset_mode="Disabled")
    _, info = envs.reset(seed=0)
    random, over = np.random.default_rng(0), np.zeros(3, dtype=bool)
    while not over.any():
        _, _, terminated, truncated, info = envs.step(drawn(info["action_mask"], random))
        over = terminated | truncated
    with pytest.raises(UsageError, match=r"the battles of environments \[\d.*\] are over; begin others first: reset"):
        envs.step(np.ones((3, 3), dtype=np.int64))
    seen, info = envs.reset(options={"reset_mask": over})
    assert np.array_equal(info["battle"], over.astype(int)) and envs.observation_space.contains(seen)
    envs.step(drawn(info["action_mask"], random))
    with pytest.raises(UsageError, match="autoreset_mode is 'Later'; it must be one of NextStep, SameStep, Disabled"):
        gymnasium.make_vec(ID, num_envs=3, autoreset_mode="Later")
    with pytest.raises(UsageError, match="a seed and rows"):
        envs.reset(seed=1, options={"reset_mask": over})


def test_masks_are_in_the_observation_where_asked() -> None:
    for name, key in (("obs", "observation"), ("rllib", "observations")):
        env, envs = gymnasium.make(ID, map_name="3m", mask=name), gymnasium.make_vec(ID, 4, map_name="3m", mask=name)
        for made, shape in ((env, (3, 9)), (envs, (4, 3, 9))):
            seen, info = made.reset(seed=0)
            assert set(seen) == {key, "action_mask"} and made.observation_space.contains(seen), name
            assert seen["action_mask"].shape == shape and "action_mask" not in info, name
        final = []
        for _ in range(60):
            *_, info = envs.step(8 - envs.unwrapped.action_masks().reshape(4, 3, 9)[..., ::-1].argmax(axis=-1))
            final += [one for one in info.get("final_obs", ()) if one is not None]
        assert final and all(envs.single_observation_space.contains(one) for one in final), name
    with pytest.raises(UsageError, match="mask is 'no'; it must be one of obs, info, rllib"):
        gymnasium.make(ID, mask="no")


def test_action_masks_are_what_maskable_ppo_asks_for() -> None:
    env, envs = gymnasium.make(ID, map_name="3m"), gymnasium.make_vec(ID, 2, map_name="3m")
    for made, shape in ((env, (27,)), (envs, (2, 27))):
        _, info = made.reset(seed=0)
        masks = made.unwrapped.action_masks()
        assert masks.dtype == bool and masks.shape == shape
        assert np.array_equal(masks.ravel(), info["action_mask"].ravel() > 0)


def test_agents_can_be_told_apart() -> None:
    env = gymnasium.make(AGENTS_ID, map_name="2s3z")
    seen, _ = env.reset(seed=0)
    assert len(env.action_space) == len(seen) == env.unwrapped.n_agents == 5
    done, steps = False, 0
    while not done:
        seen, reward, terminated, truncated, info = env.step(env.action_space.sample())
        assert env.observation_space.contains(seen) and isinstance(reward, float)
        done, steps = terminated or truncated, steps + 1
    assert steps > 10 and info["dead_allies"] >= 0
    check_env(gymnasium.make(AGENTS_ID, map_name="3m", render_mode="rgb_array").unwrapped)
    polar = gymnasium.make(AGENTS_ID, map_name="3m", observation="polar", radial=4, angular=8)
    assert polar.observation_space.contains(polar.reset(seed=0)[0])


def test_every_scenario_has_an_id_for_programs_that_take_nothing_else() -> None:
    for name in ("3m", "10gen_zerg_5_vs_5"):
        env = gymnasium.make(f"s2rm_data.starcraft.envs.gym:SMAC/{name}-v0")
        agents = gymnasium.make(f"SMAC-agents/{name}-v0")
        assert env.unwrapped.n_agents == agents.unwrapped.n_agents == len(agents.action_space), name
        assert gymnasium.make_vec(f"SMAC/{name}-v0", num_envs=2).num_envs == 2, name


def test_many_battles_are_drawn() -> None:
    envs = gymnasium.make_vec(ID, num_envs=2, map_name="3m", render_mode="rgb_array")
    envs.reset(seed=0)
    frames = envs.render()
    assert len(frames) == 2 and frames[0].shape[-1] == 3
    envs.close()
    with pytest.raises(UsageError, match="made without render_mode"):
        gymnasium.make_vec(ID, num_envs=2, map_name="3m").render()
