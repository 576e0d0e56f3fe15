"""SMACv2's options and class: what SMACv2's own class gives, in recorded episodes, and live where it is installed."""

from __future__ import annotations

import importlib.util
import json
import math
from typing import Any

import numpy as np
import pytest
from smac_episodes import play
from smacv2_episodes import FILE, episodes, own_env, smacv2_env

from s2rm_data.envs import StarCraft2Env, StarCraftCapabilityEnvWrapper, parallel_env, vector_env
from s2rm_data.errors import UsageError
from s2rm_data.generators.sc2.api.server.saved import play_again, read_replay
from s2rm_data.generators.sc2.codes import Action
from s2rm_data.generators.sc2.generated import RACES

CASES = {case: rest for case, *rest in episodes()}


def has_smacv2() -> bool:
    try:
        return importlib.util.find_spec("smacv2.env") is not None
    except ModuleNotFoundError:
        return False


def assert_same(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    for key in ("action", "mask", "end"):
        assert np.array_equal(ours[key], theirs[key]), f"{key}; new rules? python tests/smacv2_episodes.py"
    assert np.allclose(ours["reward"], theirs["reward"], rtol=1e-6, atol=1e-6)
    for key in ("obs", "state"):
        assert ours[key].shape == theirs[key].shape
        assert np.abs(ours[key].astype(np.int64) - theirs[key]).max() <= 1  # a rounding
    assert json.loads(str(ours["described"])) == json.loads(str(theirs["described"]))


def test_recorded_episodes_of_smacv2_are_repeated() -> None:
    """Three races, both kinds of sight, five widths of cones; random actions come from the masks."""
    with np.load(FILE) as file:
        recorded = dict(file)
    for case, (name, options, seed) in CASES.items():
        keys = [key for key in recorded if key.startswith(f"{case}/")]
        assert_same(play(own_env(name, options, seed), 1, 2), {key.rpartition("/")[2]: recorded[key] for key in keys})


@pytest.mark.skipif(
    not has_smacv2(),
    reason="SMACv2 is not installed (pip install --no-deps git+https://github.com/oxwhirl/smacv2); "
    "the environments were compared with recorded episodes only",
)
@pytest.mark.parametrize("case", CASES)
def test_every_step_is_that_of_smacv2_s_own_class(case: str) -> None:
    name, options, seed = CASES[case]
    assert_same(play(own_env(name, options, seed), 1, 1000), play(smacv2_env(name, options, seed), 1, 1000))


def sees(dx: float, dy: float, look: tuple[float, float], angle: float) -> bool:
    """smacv2's is_position_in_cone, within range, as it is written there: with arctangents."""
    dx = max(dx, 1e-7) if dx > 0 else min(dx, -1e-7)
    x = max(look[0], 1e-7) if dx > 0 else min(look[0], -1e-7)
    return abs(math.atan(dy / dx) - math.atan(look[1] / x)) < angle / 2


@pytest.mark.parametrize("looks", [2, 5, 12])
def test_agents_see_and_shoot_within_their_cone_alone(looks: int) -> None:
    envs, rng = vector_env("10gen_terran_5_vs_5", 20, conic_fov=True, num_fov_actions=looks), np.random.default_rng(1)
    observation, info = envs.reset(seed=2)
    battles, seen = envs.battles, 0
    for _ in range(30):
        keys = rng.random(info["available"].shape)
        observation, *_, info = envs.step(np.where(info["available"], keys, -1.0).argmax(axis=-1))
        place, alive = battles.snapshot.position.astype(np.float64), battles.snapshot.health > 0
        blocks = observation[..., 4 : 4 + 5 * 8].reshape(20, 5, 5, 8)  # of enemies
        for b, i, e in np.argwhere(alive[:, :5, None] & alive[:, None, 5:]):
            dx, dy = place[b, 5 + e] - place[b, i]
            looking = tuple(battles.looking[b, i])
            kind = int(battles.engine.kinds[b, i])
            in_sight = math.hypot(dx, dy) <= battles.features.sight_range(kind)
            inside = sees(dx, dy, looking, 2 * math.pi / looks)
            assert blocks[b, i, e].any() == (in_sight and inside)
            seen += in_sight and inside
    assert seen > 100


def test_a_look_turns_the_cone_and_gives_no_order() -> None:
    env = StarCraft2Env("10gen_zerg_3_vs_3", seed=1, conic_fov=True, num_fov_actions=4)
    env.reset()
    assert (env.n_actions, env.n_actions_no_attack, env.n_fov_actions) == (13, 10, 4)
    assert np.array_equal(env.fov_directions, [[1, 0]] * 3)
    env.step([Action.STOP, Action.ATTACK + 1, Action.ATTACK + 2])
    assert np.allclose(env.fov_directions, [[1, 0], [0, 1], [-1, 0]])
    env.reset()
    assert np.array_equal(env.fov_directions, [[1, 0]] * 3)


def test_who_looks_around_carries_out_its_last_order() -> None:
    env = StarCraft2Env("1m_vs_1z", seed=1, conic_fov=True, move_amount=8)
    env.reset()
    places = [env.get_unit_by_id(0).pos.y]
    for action in (Action.NORTH, Action.ATTACK, Action.ATTACK + 5, Action.STOP, Action.ATTACK):
        env.step([action])
        places.append(env.get_unit_by_id(0).pos.y)
    steps = np.diff(places)
    assert (steps[:3] > 1).all() and (steps[3:] == 0).all()


def test_smacs_maps_have_cones_and_own_ranges_too_if_asked() -> None:
    plain, asked = vector_env("3s5z", 2), vector_env("3s5z", 2, conic_fov=True, obs_own_pos=True, use_unit_ranges=True)
    assert (asked.actions, asked.observation_size) == (plain.actions + 12, plain.observation_size + 4)
    assert asked.state_size == plain.state_size + 2 * 8 + 12 * 8
    env = StarCraft2Env("3s5z", seed=0, use_unit_ranges=True)
    assert [env.unit_shoot_range(agent) for agent in (0, 7)] == [6, 2]
    assert [env.unit_sight_range(agent) for agent in (0, 7)] == [10, 9]
    assert [StarCraft2Env("3s5z", seed=0).unit_shoot_range(agent) for agent in (0, 7)] == [6, 6]


def test_pettingzoo_and_polar_images_take_looks() -> None:
    env = parallel_env("10gen_protoss_3_vs_3", conic_fov=True, observation="polar", radial=4, angular=8)
    observations, _ = env.reset(seed=0)
    assert env.action_space("agent_0").n == 6 + 12 + 3
    env.step(dict.fromkeys(observations, 6 + 11))


def config(race: str = "protoss", **changes: Any) -> dict[str, Any]:
    """As in smacv2's example configs."""
    drawn = RACES[race]
    teams = {"dist_type": "weighted_teams", "unit_types": [*drawn.weights], "weights": [*drawn.weights.values()],
             "exception_unit_types": [*drawn.never_alone], "observe": True}  # fmt: skip
    places = {"dist_type": "surrounded_and_reflect", "p": 0.5, "map_x": 32, "map_y": 32}
    return {"n_units": 5, "n_enemies": 6, "team_gen": teams, "start_positions": places} | changes


@pytest.mark.parametrize("race", RACES)
def test_the_wrapper_is_made_like_smacv2_s_and_plays(race: str) -> None:
    env = StarCraftCapabilityEnvWrapper(
        capability_config=config(race), map_name=f"10gen_{race}", conic_fov=True, use_unit_ranges=True,
        prob_obs_enemy=1.0, action_mask=True, debug=False, seed=3,
    )  # fmt: skip
    observations, state = env.reset()
    info = env.get_env_info()
    assert (info["n_agents"], info["n_actions"], info["cap_shape"]) == (5, 6 + 12 + 6, 3)
    assert len(observations) == 5 and observations[0].shape == (info["obs_shape"],)
    assert state.shape == (info["state_shape"],) and env.get_capabilities().reshape(5, 3).sum() == 5
    random, done = np.random.default_rng(0), False
    while not done:
        _, done, ended = env.step([int(random.choice(np.flatnonzero(mask))) for mask in env.get_avail_actions()])
    assert ended["dead_allies"] == 5 or ended["battle_won"] or env.get_stats()["timeouts"]
    assert not StarCraftCapabilityEnvWrapper(capability_config=config(), map_name="10gen_protoss").use_unit_ranges


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"map_name": "10gen_protos"}, "did you mean '10gen_protoss'"),
        ({"map_name": "3m"}, "take StarCraft2Env"),
        ({"prob_obs_enemy": 0.0}, "prob_obs_enemy can be 1.0 only"),
        ({"conic": True}, "no option 'conic'"),
        ({"conic_fov": 3}, "conic_fov is 3; it must be true or false"),
        ({"num_fov_actions": 0}, "num_fov_actions is 0"),
        ({"capability_config": {}}, "n_units and n_enemies"),
        ({"capability_config": config(attack={})}, "capability_config has 'attack'"),
        ({"capability_config": config(n_units=0)}, "allowed are 1 to 50"),
        ({"capability_config": config("zerg")}, "weights"),
        ({"capability_config": config(start_positions={"dist_type": "fixed"})}, "surrounded_and_reflect"),
    ],
)
def test_what_is_not_simulated_is_refused_by_name(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        StarCraftCapabilityEnvWrapper(**{"capability_config": config(), "map_name": "10gen_protoss"} | options)


def test_a_saved_battle_is_played_again_exactly(tmp_path: Any) -> None:
    env = StarCraft2Env("10gen_terran_3_vs_4", seed=4, conic_fov=True, replay_dir=str(tmp_path))
    random, places, done = np.random.default_rng(0), [], False
    env.reset()
    while not done:
        places.append([(unit.pos.x, unit.pos.y) for unit in [*env.agents.values(), *env.enemies.values()]])
        _, done, _ = env.step([int(random.choice(np.flatnonzero(mask))) for mask in env.get_avail_actions()])
    record = play_again(read_replay(env.save_replay()))
    alive = record["unit_alive"][0]
    places = places[len(places) - len(alive) :]  # a replay begins with the first order; a look is none
    assert len(places) >= 30
    assert np.array_equal(record["unit_position"][0][alive], np.array(places, dtype=np.float32)[alive])
    other = StarCraft2Env("10gen_terran_3_vs_4", seed=4, step_mul=5)
    other.reset()
    with pytest.raises(UsageError, match="step_mul is 5"):
        other.save_replay()
