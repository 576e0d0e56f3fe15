"""SMACv2's generated scenarios as environments: every battle has armies of its own."""

from typing import Any

import numpy as np

from s2rm_data.starcraft.codes import Action
from s2rm_data.starcraft.envs import StarCraft2Env, parallel_env, vector_env
from s2rm_data.starcraft.generated import TYPE_ORDER
from s2rm_data.starcraft.units import NUMBER_OF

NAME = "10gen_terran_3_vs_4"


def random_actions(available: Any, rng: np.random.Generator) -> Any:
    return np.where(available, rng.random(available.shape), -1.0).argmax(axis=-1)


def test_battles_have_armies_of_their_own_and_new_ones_after_their_end() -> None:
    envs, rng = vector_env(NAME, 12), np.random.default_rng(0)
    _, info = envs.reset(seed=3)
    kinds = envs.battles.engine.kinds.copy()
    assert len({tuple(row) for row in kinds.tolist()}) > 3
    total, ended = np.zeros(12), 0
    while ended < 12:
        observation, reward, terminated, truncated, info = envs.step(random_actions(info["available"], rng))
        assert np.isfinite(observation).all() and (reward >= 0).all()
        total += reward
        over = terminated | truncated
        assert (total[over] <= 25).all()
        total[over] = 0
        ended += int(over.sum())
    assert not np.array_equal(envs.battles.engine.kinds, kinds)
    again = vector_env(NAME, 12)
    again.reset(seed=3)
    assert np.array_equal(again.battles.engine.kinds, kinds)


def test_observations_name_the_types_in_smacv2s_order_and_masks_have_their_ranges() -> None:
    envs, rng = vector_env(NAME, 30), np.random.default_rng(1)
    observation, info = envs.reset(seed=0)
    order = [NUMBER_OF[name] for name in TYPE_ORDER["terran"]]
    assert np.array_equal(
        observation[..., -3:].argmax(axis=-1), np.vectorize(order.index)(envs.battles.engine.kinds[:, :3])
    )
    for _ in range(10):
        engine = envs.battles.engine
        unlike = info["available"] != engine.available()
        assert not unlike[..., Action.ATTACK :].any()
        observation, _, _, _, info = envs.step(random_actions(info["available"], rng))


def test_other_faces_take_them() -> None:
    env = parallel_env(NAME, seed=0)
    observations, _ = env.reset(seed=1)
    assert list(observations) == ["agent_0", "agent_1", "agent_2"]
    env.step({name: int(seen["action_mask"].argmax()) for name, seen in observations.items()})
    images = vector_env(NAME, 2, observation="polar", radial=4, angular=8).reset(seed=0)[0]
    assert images["categories"].shape == (2, 3, 4, 8, 3) and images["categories"].any()
    drop_in = StarCraft2Env(NAME, seed=0)
    drop_in.reset()
    first = drop_in.get_unit_types()
    assert drop_in.map_type == "terran_gen" and len(drop_in.get_obs()) == 3
    drop_in.full_restart()
    assert drop_in.get_unit_types() == first
