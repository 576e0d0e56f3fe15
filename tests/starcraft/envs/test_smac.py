"""The drop-in class gives what SMAC's own class gives: in recorded episodes, and live where it is installed."""

from __future__ import annotations

import importlib.util
import inspect
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from smac_episodes import FILE, SEED, cases, play, smac_env

from s2rm_data.core.errors import UsageError
from s2rm_data.generators.sc2.making.recorder import Recorder
from s2rm_data.starcraft.api.server.saved import play_again, read_replay
from s2rm_data.starcraft.codes import Outcome
from s2rm_data.starcraft.envs import StarCraft2Env
from s2rm_data.store import Store

CASES = {case: rest for case, *rest in cases()}


def has_smac() -> bool:
    try:
        return importlib.util.find_spec("smac.env") is not None
    except ModuleNotFoundError:
        return False


needs_smac = pytest.mark.skipif(
    not has_smac(),
    reason="SMAC is not installed (pip install --no-deps git+https://github.com/oxwhirl/smac); "
    "the drop-in class was compared with recorded episodes only",
)


@pytest.fixture(scope="module")
def recorded() -> dict[str, np.ndarray]:
    with np.load(FILE) as file:
        return dict(file)


@pytest.mark.parametrize("case", CASES)
def test_recorded_episodes_of_smac_are_repeated(case: str, recorded: dict[str, np.ndarray]) -> None:
    """All 23 maps and all options; the random actions come from the masks, so a wrong mask shows in everything."""
    name, options, episodes, kept = CASES[case]
    ours = play(StarCraft2Env(name, seed=SEED, **options), episodes, kept)
    for key in ("action", "mask", "end"):
        theirs = recorded[f"{case}/{key}"]
        assert np.array_equal(ours[key], theirs), f"{key} of {case}; new rules? python tests/support/smac_episodes.py"
    assert np.allclose(ours["reward"], recorded[f"{case}/reward"], rtol=1e-6, atol=1e-6)
    for key in ("obs", "state"):
        assert ours[key].shape == recorded[f"{case}/{key}"].shape
        assert np.abs(ours[key].astype(np.int64) - recorded[f"{case}/{key}"]).max() <= 1  # a rounding
    assert json.loads(str(ours["described"])) == json.loads(str(recorded[f"{case}/described"]))


@needs_smac
@pytest.mark.parametrize("case", CASES)
def test_every_step_is_that_of_smac_s_own_class(case: str) -> None:
    name, options, episodes, _ = CASES[case]
    ours, theirs = StarCraft2Env(name, seed=SEED, **options), smac_env(name, options)
    random = np.random.default_rng(6)
    for _ in range(episodes):
        assert_same(ours.reset(), theirs.reset())
        done = False
        while not done:
            masks = theirs.get_avail_actions()
            assert ours.get_avail_actions() == masks
            actions = [int(random.choice(np.flatnonzero(row))) for row in masks]
            ours_chose, theirs_chose = list(actions), list(actions)
            reward, done, info = theirs.step(theirs_chose)
            assert ours.step(ours_chose) == (pytest.approx(reward, rel=1e-6, abs=1e-6), done, info)
            alive = ~np.array(masks, dtype=bool)[:, 0]  # SMAC has the dead choose from where it last saw them
            assert np.array_equal(np.array(ours_chose)[alive], np.array(theirs_chose)[alive])
            assert_same((ours.get_obs(), ours.get_state()), (theirs.get_obs(), theirs.get_state()))
    for part, values in theirs.get_state_dict().items():
        assert np.allclose(ours.get_state_dict()[part], values, atol=1e-6)
    assert np.array_equal(ours.get_visibility_matrix(), theirs.get_visibility_matrix())
    assert ours.get_unit_types() == theirs.get_unit_types()
    assert ours.get_env_info() == theirs.get_env_info()
    assert ours.get_stats() == theirs.get_stats()
    assert ours.max_reward == pytest.approx(theirs.max_reward)


def assert_same(ours: Any, theirs: Any) -> None:
    for mine, other in zip(ours, theirs, strict=True):
        assert np.allclose(np.array(mine), np.array(other), rtol=1e-6, atol=1e-6)
        assert np.array(mine).dtype == np.array(other).dtype


@needs_smac
def test_arguments_methods_and_attributes_are_those_of_smac_s_class() -> None:
    theirs = smac_env("3s5z", {})
    theirs.reset()
    env = StarCraft2Env("3s5z", seed=SEED)
    env.reset()
    ours_takes, theirs_takes = inspect.signature(StarCraft2Env).parameters, inspect.signature(type(theirs)).parameters
    taken = [(n, p.default) for n, p in ours_takes.items() if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    assert taken == [(n, p.default) for n, p in theirs_takes.items()]  # SMACv2's are keywords only
    public = {name for name in dir(theirs) if not name.startswith("_")}
    missing = {name for name in public if not hasattr(env, name)}
    assert missing == OF_THE_GAME_ALONE
    for name in ("n_agents", "n_enemies", "n_actions", "episode_limit", "map_type", "unit_type_bits", "stalker_id"):
        assert getattr(env, name) == getattr(theirs, name)


# What talks to StarCraft II, and how SMAC's class keeps its books.
OF_THE_GAME_ALONE = {
    "get_agent_action", "get_agent_action_heuristic", "init_units", "update_units", "only_medivac_left",
    "reward_battle", "previous_ally_units", "previous_enemy_units", "last_stats", "renderer", "win_counted",
    "defeat_counted",
}  # fmt: skip


@pytest.fixture
def env() -> StarCraft2Env:
    return StarCraft2Env("3m", seed=1)


def test_the_same_seed_gives_the_same_episodes_and_another_seed_others() -> None:
    first, again, other = (play(StarCraft2Env("3m", seed=seed), 2, 3)["obs"] for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert first.shape != other.shape or not np.array_equal(first, other)


def test_observations_with_the_time_are_float64_as_smac_s_are() -> None:
    for timed, kind in ((True, np.float64), (False, np.float32)):
        observations, state = StarCraft2Env("3m", seed=1, obs_timestep_number=timed).reset()
        assert (observations[0].dtype, state.dtype) == (kind, np.float32)


def test_without_a_seed_every_game_is_another() -> None:
    states = [StarCraft2Env("2s3z").reset()[1].tobytes() for _ in range(8)]
    assert len(set(states)) > 1
    assert StarCraft2Env("3m").seed() is None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"map_name": "3n"}, "no scenario '3n'"),
        ({"map_name": 3}, "map_name is 3"),
        ({"difficulty": "3"}, "only StarCraft II itself"),
        ({"game_version": "4.10"}, "only StarCraft II itself"),
        ({"step_mul": 0}, "step_mul is 0; it must be a whole number from 1"),
        ({"move_amount": -1}, "move_amount is -1"),
        ({"move_amount": 1.5, "obs_pathing_grid": True}, "a whole number with obs_pathing_grid"),
        ({"obs_last_action": "yes"}, "obs_last_action is 'yes'; it must be true or false"),
        ({"reward_scale_rate": 0}, "reward_scale_rate is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"obs_all_helth": True}, "no option 'obs_all_helth'; did you mean 'obs_all_health'"),
        ({"heuristics_ai": True}, "did you mean 'heuristic_ai'"),
    ],
)
def test_what_cannot_be_is_refused_by_name(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        StarCraft2Env(**options)


@pytest.mark.parametrize(
    ("actions", "said"),
    [
        ([1, 1], "2 actions came for 3 agents"),
        ([1, 1, 0], r"agent 2 \(marine\) cannot do action 0 \(no-op\) now; allowed are 1 \(stop\), 2 \(move north\)"),
        ([1, 1, 6], r"agent 2 \(marine\) cannot do action 6 \(attack enemy 0\)"),
        ([1, 1, 9], r"agent 2 \(marine\) cannot do action 9 \(there are 0 to 8\)"),
        ([1, 1, -1], "cannot do action -1"),
        ([1, 1, "stop"], "give a list of 3 whole numbers"),
        ([1, 1, 1.5], "give a list of 3 whole numbers"),
        (None, "give a list of 3 whole numbers"),
    ],
)
def test_wrong_actions_are_refused_with_what_is_allowed(env: StarCraft2Env, actions: Any, said: str) -> None:
    env.reset()
    with pytest.raises(UsageError, match=said):
        env.step(actions)
    env.step([1, 1, 1])


@pytest.mark.parametrize("number", [3, -1, "marine", None])
def test_agents_that_do_not_exist_are_named(env: StarCraft2Env, number: Any) -> None:
    env.reset()
    methods = env.get_obs_agent, env.get_avail_agent_actions, env.unit_sight_range, env.get_unit_by_id
    for method in methods:
        with pytest.raises(UsageError, match=r"there is no agent .*; agents have the numbers 0 to 2"):
            method(number)
        method(np.int64(2))


def test_the_heuristic_takes_actions_and_replaces_them() -> None:
    env = StarCraft2Env("3m", seed=1, heuristic_ai=True)
    env.reset()
    actions = [1, 1, 1]
    env.step(actions)
    assert min(actions) >= 6 and (env.last_action.argmax(axis=1) == 1).all()
    with pytest.raises(UsageError, match=r"actions are \[1, 1, 99\]; there are 0 to 8"):
        env.step([1, 1, 99])


def test_a_battle_has_to_be_begun_and_not_over(env: StarCraft2Env) -> None:
    for method in (env.get_obs, env.get_state, env.get_avail_actions, lambda: env.step([1, 1, 1])):
        with pytest.raises(UsageError, match=r"call reset\(\) first"):
            method()
    env.reset()
    done = False
    while not done:
        _, done, info = env.step([max(1 - int(mask[0]), 0) for mask in env.get_avail_actions()])
    assert not info["battle_won"] and info["dead_allies"] == 3
    with pytest.raises(UsageError, match=r"the episode is over; call reset\(\)"):
        env.step([0, 0, 0])
    env.reset()
    env.step([1, 1, 1])


def test_units_are_told_with_the_names_of_the_api(env: StarCraft2Env) -> None:
    env.reset()
    marine, enemy = env.get_unit_by_id(0), env.enemies[0]
    assert (marine.health, marine.health_max, marine.unit_type) == (45, 45, env.marine_id)
    assert marine.pos.x < enemy.pos.x and marine.owner == 1 and enemy.owner == 2
    assert len({unit.tag for unit in [*env.agents.values(), *env.enemies.values()]}) == 6
    with pytest.raises(AttributeError, match="talks to StarCraft II"):
        env.get_agent_action(0, 1)
    with pytest.raises(AttributeError, match="no attribute 'obs_all'"):
        env.obs_all  # noqa: B018


def test_frames_show_the_battle(env: StarCraft2Env) -> None:
    env.reset()
    first = env.render("rgb_array")
    env.step([2, 2, 2])
    second = env.render("rgb_array")
    assert first is not None and second is not None
    assert first.shape == second.shape and first.shape[1:] == (600, 3) and first.dtype == np.uint8
    assert (first != second).any()
    with pytest.raises(UsageError, match="it was 'rgb_array' before"):
        env.render("human")
    with pytest.raises(UsageError, match="the choices are human, rgb_array"):
        StarCraft2Env.render(reset("3m"), "ansi")


def test_the_recorder_stores_what_is_played_in_it(tmp_path: Path) -> None:
    returns = []
    with Recorder(StarCraft2Env("3m", seed=2), tmp_path / "data.zarr", episodes=2, policy="last") as env:
        while not env.full:
            env.reset()
            returns.append(0.0)
            done = False
            while not done:
                reward, done, _ = env.step([int(np.flatnonzero(mask)[-1]) for mask in env.get_avail_actions()])
                returns[-1] += reward
    group = Store(tmp_path / "data.zarr")["sc2/3m/train"]
    assert group["reward"][:].sum(axis=1) == pytest.approx(returns, rel=1e-5)
    assert group["unit_alive"][:][:, 0].all()


@pytest.mark.parametrize(
    ("episodes", "masks"),
    [(1, True), (2, True), (2, False)],
    ids=["a game's first battle", "a later one", "with attacks out of reach, in vain"],
)
def test_a_saved_battle_is_played_again_exactly(episodes: int, masks: bool, tmp_path: Path) -> None:
    env = StarCraft2Env("MMM", seed=4, action_mask=masks, replay_dir=str(tmp_path))
    random = np.random.default_rng(0)
    for _ in range(episodes):
        env.reset()
        places, done = [], False
        while not done:
            places.append([(unit.pos.x, unit.pos.y) for unit in [*env.agents.values(), *env.enemies.values()]])
            actions = [int(random.choice(np.flatnonzero(mask))) for mask in env.get_avail_actions()]
            _, done, info = env.step(actions)
    record = play_again(read_replay(env.save_replay()))
    alive = record["unit_alive"][0]
    assert len(alive) == len(places) and record["outcome"][0] == (Outcome.WIN if info["battle_won"] else Outcome.LOSS)
    assert np.array_equal(record["unit_position"][0][alive], np.array(places, dtype=np.float32)[alive])


def reset(name: str) -> StarCraft2Env:
    env = StarCraft2Env(name, seed=1)
    env.reset()
    return env
