"""SMACv2's options and class: what SMACv2's own class gives, in recorded episodes, and live where it is installed."""

from __future__ import annotations

import importlib.util
import json
import math
import sys
from collections import Counter
from typing import Any

import gymnasium
import numpy as np
import pytest
from patience import complete
from smac_episodes import play
from smacv2_episodes import CASES as PLAYED
from smacv2_episodes import FILE, episodes, own_env, smacv2_env

from s2rm_data.core.errors import UsageError
from s2rm_data.starcraft.api.server.saved import play_again, read_replay
from s2rm_data.starcraft.codes import Action
from s2rm_data.starcraft.envs import StarCraft2Env, StarCraftCapabilityEnvWrapper, parallel_env, vector_env
from s2rm_data.starcraft.envs import gym as _gym  # noqa: F401 - registers SMAC-v0
from s2rm_data.starcraft.generated import RACES, TYPE_ORDER
from s2rm_data.starcraft.units import NUMBER_OF, UNIT_TYPES

CASES = {case: rest for case, *rest in episodes()}


def has_smacv2() -> bool:
    try:
        return importlib.util.find_spec("smacv2.env") is not None
    except ModuleNotFoundError:
        return False


def assert_same(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    for key in ("action", "mask", "end"):
        assert np.array_equal(ours[key], theirs[key]), f"{key}; new rules? python tests/support/smacv2_episodes.py"
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


def test_frames_show_where_agents_look() -> None:
    def lines(**options: Any) -> np.ndarray:
        env = StarCraft2Env("10gen_zerg_3_vs_3", seed=1, **options)
        env.reset()
        env.render_fovs()  # SMACv2 draws with it
        return env.render("rgb_array")

    cones, plain = lines(conic_fov=True), lines()
    assert cones.shape == plain.shape and 100 < (cones != plain).any(axis=-1).sum() < 0.1 * plain[..., 0].size


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


LEVELS = {"dist_type": "per_agent_uniform", "lower_bound": [0.2], "upper_bound": [0.6], "observe": True}
EPO = {"prob_obs_enemy": 0.0, "action_mask": False, "use_unit_ranges": True, "obs_own_pos": True}


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
        ({"prob_obs_enemy": 1.5}, "prob_obs_enemy is 1.5; it must be a number from 0 to 1"),
        ({"action_mask": 0}, "action_mask is 0; it must be true or false"),
        ({"capability_config": "protoss"}, "capability_config is 'protoss'; it is a dictionary"),
        ({"conic": True}, "no option 'conic'"),
        ({"conic_fov": 3}, "conic_fov is 3; it must be true or false"),
        ({"num_fov_actions": 0}, "num_fov_actions is 0"),
        ({"capability_config": {}}, "has no n_units or n_enemies"),
        (
            {"capability_config": config(armour={})},
            "capability_config has entry 'armour'; what is simulated is team_gen",
        ),
        ({"capability_config": config(n_units=0)}, "allowed are 1 to 50"),
        ({"capability_config": config("zerg")}, "a unit type of 10gen_protoss, 'zergling'"),
        ({"capability_config": config(team_gen={"weights": [0.5, 0.6, 0.1]})}, "give 3, at least 0, which add up to 1"),
        (
            {"capability_config": config(team_gen={"dist_type": "fixed"})},
            "dist_type 'fixed'; what is simulated is weig",
        ),
        ({"capability_config": config(team_gen={"dist_type": "all_teams"})}, "n_units and n_enemies the same number"),
        ({"capability_config": config(team_gen={"exception_unit_types": [*RACES["protoss"].weights]})}, "a chance"),
        ({"capability_config": config(start_positions={"dist_type": "fixed"})}, "surrounded_and_reflect"),
        ({"capability_config": config(start_positions={"p": 2})}, "p of start_positions is 2; it must be a number"),
        (
            {"capability_config": config(attack={"dist_type": "per_agent_uniform"})},
            "lower_bound of attack is None; it must be",
        ),
        ({"capability_config": config(attack={"dist_type": "fixed", "items": [[1]]})}, "give lists of 5 numbers"),
        ({"capability_config": config(attack={"dist_type": "fixed", "test_mode": True})}, "reset.episode_config"),
        (
            {"capability_config": config(attack={"dist_type": "fixed", "items": 3})},
            "items of attack is 3; it is a list",
        ),
        ({"capability_config": config(attack={"dist_type": "fixed", "items": [3]})}, "items of attack is 3; it is a l"),
        ({"capability_config": config(attack={"lower_bound": 0.9, "upper_bound": 0.1})}, "at most upper_bound, 0.1"),
        ({"capability_config": config(team_gen={"weights": ["a", 0.5, 0.5]})}, "weights of team_gen is 'a'; it must"),
        ({"capability_config": config(team_gen={"unit_types": "zealot"})}, "unit_types of team_gen is 'zealot'; it is"),
        ({"capability_config": config(team_gen={"weight": [1]})}, "entry 'weight'; did you mean 'weights'"),
        ({"capability_config": config(team_gen={"exception_unit_types": 4})}, "exception_unit_types of team_gen is 4"),
        ({"capability_config": config(enemy_mask={"mask_probability": "x"})}, "mask_probability of enemy_mask is 'x'"),
        ({"capability_config": config(health=LEVELS), "reward_only_positive": False}, "reward_only_positive is False"),
        ({"capability_config": config(health=LEVELS), "kill_unit_step_mul": 9}, "at most step_mul, 8"),
    ],
)
def test_what_is_not_simulated_is_refused_by_name(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        StarCraftCapabilityEnvWrapper(**{"capability_config": config(), "map_name": "10gen_protoss"} | options)


def drawn(available: np.ndarray, step: int) -> np.ndarray:
    """(..., A) masks; actions that do not depend on how many battles there are."""
    keys = np.random.default_rng(step).random(available.shape[-2:])
    return np.where(available, keys, -1.0).argmax(axis=-1)


def test_every_face_takes_every_argument_and_plays_the_same_battle() -> None:
    """EPO, levels of health and hits by chance, in arrays of many, PettingZoo and Gymnasium."""
    given = EPO | {"conic_fov": True, "capability_config": config(attack=LEVELS, health=LEVELS, n_enemies=5)}
    few, many = (vector_env("10gen_protoss", count, **given) for count in (1, 6))
    parallel, team = (
        parallel_env("10gen_protoss", **given),
        gymnasium.make("SMAC-v0", map_name="10gen_protoss", **given),
    )
    assert few.options.map_name == "10gen_protoss_5_vs_5"
    (observation, info), (others, more) = few.reset(seed=4), many.reset(seed=4)
    seen, _ = parallel.reset(seed=4)
    alone, _ = team.reset(seed=4)
    over, hidden = False, 0
    for step in range(25):
        stacked = np.stack([seen[name]["observation"] for name in parallel.agents])
        alive = [parallel.possible_agents.index(name) for name in parallel.agents]
        assert np.array_equal(observation[0], others[0]) and np.array_equal(observation[0], alone)
        assert np.array_equal(stacked, observation[0, alive])
        hidden += int(info["available"][0, :, 18:].sum() > observation[0, :, 4:44].any(axis=1).sum())
        actions = drawn(info["available"], step)
        observation, _, terminated, truncated, info = few.step(actions)
        others, *_, more = many.step(drawn(more["available"], step))
        alone, *_ = team.step(actions[0])
        seen, *_ = parallel.step({name: int(actions[0, k]) for k, name in enumerate(parallel.possible_agents)})
        over = bool(terminated[0] or truncated[0])
        if over:
            break
    assert step > 8 and hidden > 3


def test_looking_twice_in_a_step_changes_nothing_but_what_the_first_look_told() -> None:
    """As in SMACv2: who looked before an enemy was seen by another agent is told of it at the next look."""
    env = StarCraft2Env("10gen_zerg_5_vs_5", seed=3, prob_obs_enemy=1.0)
    env.reset()
    for step in range(12):
        env.get_obs()
        again = np.array(env.get_obs())
        assert np.array_equal(again, np.array(env.get_obs())), step
        env.step(drawn(np.array(env.get_avail_actions()), step).tolist())


def test_epo_hides_what_agents_see_and_none_hides_nothing() -> None:
    shown = {}
    for share in (0.0, 0.5, 1.0, None):
        envs = vector_env("10gen_terran_5_vs_5", 30, prob_obs_enemy=share)
        observation, info = envs.reset(seed=1)
        shown[share] = 0
        for step in range(20):
            observation, *_, info = envs.step(drawn(info["available"], step))
            shown[share] += int(observation[..., 4 : 4 + 5 * 8].reshape(30, 5, 5, 8).any(axis=-1).sum())
    assert 0 < shown[0.0] < shown[0.5] < shown[1.0] < shown[None], shown


def test_hits_by_chance_and_levels_of_health_decide_battles() -> None:
    def deaths(**parts: Any) -> np.ndarray:
        envs = vector_env("10gen_terran", 20, capability_config=config("terran", n_enemies=5, **parts))
        _, info = envs.reset(seed=0)
        for step in range(14):
            *_, info = envs.step(drawn(info["available"], step), replace=False)
        return np.array([info["dead_allies"].sum(), info["dead_enemies"].sum()])

    def always(value: float) -> dict[str, Any]:
        return {"dist_type": "per_agent_uniform", "lower_bound": value, "upper_bound": value}

    plain = deaths()
    assert np.array_equal(deaths(attack=always(1.0), health=always(0.0)), plain)
    assert deaths(attack=always(0.0))[1] < plain[1]
    assert deaths(health=always(0.9))[0] > plain[0]


def test_who_died_before_it_would_be_taken_out_still_hits_what_it_shot_at() -> None:
    """SMACv2 takes out who is below its level some loops before a step's end, if it lives then."""
    from smacv2_episodes import own_env

    name, options = PLAYED["drawn, not told"]
    env, random, killed, dead = own_env(name, options, 14), np.random.default_rng(14), [], 0
    env.reset()
    engine = env._battles.engine
    kill = engine.kill

    def noted(battle: int, agent: int) -> None:
        killed.append(bool(engine.snapshot().health[battle, agent] > 0))
        kill(battle, agent)

    engine.kill = noted
    done = False
    while not done:
        _, done, info = env.step([int(random.choice(np.flatnonzero(mask))) for mask in env.get_avail_actions()])
        dead = info["dead_allies"]
    assert 0 < len(killed) < dead and all(killed)


def test_other_distributions_of_armies_and_places() -> None:
    def begun(**parts: Any) -> Any:
        envs = vector_env("10gen_zerg", 300, capability_config=config("zerg", n_enemies=5) | parts)
        envs.reset(seed=5)
        return envs.battles

    teams = {"unit_types": ["baneling", "hydralisk"], "weights": [0.75, 0.25], "exception_unit_types": []}
    kinds = begun(team_gen=teams).engine.kinds[:, :5]
    names = np.vectorize({NUMBER_OF[name]: name for name in TYPE_ORDER["zerg"]}.get)(kinds)
    assert set(names.ravel()) == {"baneling", "hydralisk"} and 0.7 < (names == "baneling").mean() < 0.8
    every = begun(team_gen={"dist_type": "all_teams", "unit_types": [*RACES["zerg"].weights]}).engine.kinds
    drawn_armies = Counter(tuple(sorted(row)) for row in every[:, :5].tolist())
    assert len(drawn_armies) == 21 and max(drawn_armies.values()) < 40  # multisets of five of three types
    assert all(sorted(row[:5]) == sorted(row[5:]) for row in every.tolist())
    apart = begun(start_positions={"dist_type": "reflect_position"}).snapshot.position
    assert (apart[:, :5, 0] < 17).all() and (apart[:, 5:, 0] > 15).all()
    around = begun(start_positions={"dist_type": "surrounded", "map_x": 20, "map_y": 24}).snapshot.position
    assert (np.abs(around[:, :5] - [10, 12]) < 3).all() and (around[..., 0] < 22).all()
    points = config("zerg", n_enemies=5)
    del points["start_positions"]
    envs = vector_env("10gen_zerg", 9, capability_config=points)
    envs.reset(seed=1)
    assert (np.abs(envs.battles.snapshot.position[:, :5] - [8, 16]) < 3).all()


def test_an_episode_config_gives_the_armies() -> None:
    env = StarCraftCapabilityEnvWrapper(capability_config=config(), map_name="10gen_protoss", seed=1)
    team = {"ally_team": ["zealot", "stalker", "zealot", "colossus", "stalker"], "enemy_team": ["zealot"] * 6, "id": 0}
    ours = {"item": np.array([(4.0, 4.0 + 5 * k) for k in range(5)]), "id": 0}
    theirs = {"item": np.array([(28.0, 4.0 + 4 * k) for k in range(6)]), "id": 0}
    episode = {"team_gen": team, "ally_start_positions": ours, "enemy_start_positions": theirs}
    env.reset(episode)
    kinds = [UNIT_TYPES[int(number)].name for number in env._battles.engine.kinds[0]]
    assert kinds == ["colossus", "stalker", "stalker", "zealot", "zealot", *["zealot"] * 6]
    assert [round(env.get_unit_by_id(agent).pos.y) for agent in range(5)] == [19, 9, 24, 4, 14]
    env.reset()
    assert env.episode_config == {}
    for wrong, said in (
        ({"team_gen": team | {"ally_team": ["zealot"]}}, "1 types for ally_team"),
        ({"team_gen": team | {"enemy_team": ["marine"] * 6}}, "enemy_team has a unit type 'marine'"),
        ({**episode, "ally_start_positions": {"item": [[1, 2]]}}, r"places of shape \(1, 2\); give 5"),
        ({**episode, "ally_start_positions": {"item": "here"}}, "has ally_start_positions 'here'; give numbers"),
        ({"team_gen": team | {"ally_team": 5}}, "ally_team is 5; it is a list"),
        (["zealot"], "episode_config is .'zealot'.; it is a dictionary"),
        ({"team": team}, "episode_config has entry 'team'; did you mean 'team_gen'"),
    ):
        with pytest.raises(UsageError, match=said):
            env.reset(wrong)


def test_every_number_has_a_name() -> None:
    options = [options for _, options in PLAYED.values()] + [{"obs_instead_of_state": True}]
    for given in options:
        for name in ("10gen_protoss_5_vs_5", "MMM2"):
            config_of_both = dict(given.get("capability_config", {}))
            for only_generated in ("team_gen", "start_positions"):
                config_of_both.pop(only_generated, None)
            config_of_both.pop("attack", None)
            env = StarCraft2Env(name, seed=0, **given | {"capability_config": config_of_both})
            observations, state = env.reset()
            for names, values in (
                (env.get_obs_feature_names(), observations[0]),
                (env.get_state_feature_names(), state),
            ):
                assert len(names) == len(set(names)) == len(values), (name, given)
            assert len(env.get_capabilities()) == env.get_cap_size() * env.n_agents, (name, given)


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


INSTALLED = """
from s2rm_data.envs import StarCraft2Env as ours, StarCraftCapabilityEnvWrapper as wrapped, install_as
install_as("smac")
install_as("smacv2")
install_as("smac")  # once more changes nothing
import importlib.util
import smac.env.starcraft2.starcraft2
import smacv2.env.starcraft2.wrapper
from smac.env import MultiAgentEnv, StarCraft2Env
from smac.env.starcraft2.maps import get_map_params
from smacv2.env import StarCraftCapabilityEnvWrapper
from smacv2.env.starcraft2.maps import smac_maps
assert StarCraft2Env is ours is smac.env.starcraft2.starcraft2.StarCraft2Env
assert StarCraftCapabilityEnvWrapper is wrapped is smacv2.env.starcraft2.wrapper.StarCraftCapabilityEnvWrapper
assert issubclass(ours, MultiAgentEnv) and issubclass(wrapped, smacv2.env.MultiAgentEnv)
assert importlib.util.find_spec("smacv2.env") is not None
registry = smac_maps.get_smac_map_registry()
assert len(registry) == 26 and registry["10gen_zerg"]["map_type"] == "zerg_gen"
for name in ("3m", "2s3z", "2s_vs_1sc", "MMM2"):
    info = StarCraft2Env(name, seed=0)
    params = get_map_params(name)
    assert (params["n_agents"], params["limit"]) == (info.n_agents, info.episode_limit), name
    assert (params["unit_type_bits"], params["map_type"]) == (info.unit_type_bits, info.map_type), name
assert (get_map_params("2c_vs_64zg")["a_race"], get_map_params("2s_vs_1sc")["b_race"]) == ("P", "Z")
try:
    install_as("smax")
except Exception as refused:
    assert "did you mean 'smac'" in str(refused), refused
import json, sys
for name in [name for name in sys.modules if name.partition(".")[0] == "smac"]:
    del sys.modules[name]
sys.modules["smac"] = json  # as if another package of that name was imported
try:
    install_as("smac")
except Exception as refused:
    assert "smac is imported already; call install_as('smac') before" in str(refused), refused
else:
    raise AssertionError
"""


def test_the_classes_stand_in_for_those_of_smac_and_smacv2() -> None:
    done = complete([sys.executable, "-c", INSTALLED], cpu_seconds=120, text=True)
    assert done.returncode == 0, done.stderr
