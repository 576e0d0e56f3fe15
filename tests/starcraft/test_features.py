"""SMAC's feature vectors: sizes of SMAC's own registry, and the vectors by SMAC's definition, written out per unit."""

import math

import numpy as np
import pytest

from s2rm_data.starcraft.codes import Action
from s2rm_data.starcraft.engine import Engine
from s2rm_data.starcraft.features import Features
from s2rm_data.starcraft.scenarios import parse
from s2rm_data.starcraft.units import UNIT_TYPES

# (observation, state) sizes that SMAC's environment reports
SIZES = {
    "3m": (30, 48),
    "8m": (80, 168),
    "2s3z": (80, 120),
    "3s5z": (128, 216),
    "1c3s5z": (162, 270),
    "MMM2": (176, 322),
    "3s5z_vs_3s6z": (136, 230),
    "2c_vs_64zg": (332, 342),
    "corridor": (156, 282),
    "6h_vs_8z": (78, 140),
    "2s_vs_1sc": (17, 27),
    "bane_vs_bane": (336, 984),
}


def fought(name: str, steps: int = 30) -> Engine:
    """Two battles under way, with some units hurt and some dead: agents walk east and attack whom they can."""
    engine = Engine(parse(name), [1, 2], enemy_order="created")
    for _ in range(steps):
        aimed = engine.available()[:, :, Action.ATTACK :]
        engine.step(np.where(aimed.any(axis=-1), Action.ATTACK + aimed.argmax(axis=-1), Action.EAST))
    return engine


def type_bits(engine: Engine, features: Features) -> np.ndarray:
    """(U, bits) one-hot types."""
    kinds = enumerate(engine.unit_type.tolist())
    index = [features.type_index(kind, ours=slot < engine.agents) for slot, kind in kinds]
    return np.eye(max(features.bits, 1))[index][:, : features.bits]


def observed_by(engine: Engine, features: Features, battle: int, agent: int) -> list[float]:
    """One agent's observation by SMAC's definition, unit by unit."""
    now, available = engine.snapshot(), engine.available()[battle, agent]
    units = [UNIT_TYPES[int(number)] for number in engine.unit_type]
    shields = [any(u.shield for u in units[: engine.agents]), any(u.shield for u in units[engine.agents :])]
    alive = now.health[battle] > 0
    x, y = (float(value) for value in now.position[battle, agent])

    def body(v: int) -> list[float]:
        parts = [now.health[battle, v] / units[v].health]
        if shields[v >= engine.agents]:
            parts.append(now.shield[battle, v] / units[v].shield)
        return [*parts, *type_bits(engine, features)[v]]

    def sight(v: int, first: float) -> list[float]:
        dx, dy = float(now.position[battle, v, 0]) - x, float(now.position[battle, v, 1]) - y
        if not alive[v] or math.hypot(dx, dy) >= 9:
            return [0.0] * (4 + len(body(v)))
        return [first, math.hypot(dx, dy) / 9, dx / 9, dy / 9, *body(v)]

    values = [float(flag) for flag in available[2:6]]
    for v in range(engine.agents, engine.units):
        values += sight(v, float(available[6 + v - engine.agents]))
    for v in range(engine.agents):
        if v != agent:
            values += sight(v, 1.0)
    values += body(agent)
    return values if alive[agent] else [0.0] * len(values)


def test_sizes_are_smac_s() -> None:
    for name, (of_observation, of_state) in SIZES.items():
        engine = Engine(parse(name), [1], enemy_order="created")
        features = Features(engine.unit_type, engine.agents)
        observation = features.observe(engine.snapshot(), engine.available())
        assert observation.shape == (1, engine.agents, of_observation), name
        assert features.state(engine.snapshot()).shape == (1, of_state), name
        assert features.observation_size == of_observation, name


@pytest.mark.parametrize("name", ["3m", "2s3z", "1c3s5z", "MMM2", "corridor", "2m_vs_1z"])
def test_observations_follow_smac_s_definition(name: str) -> None:
    engine = fought(name)
    features = Features(engine.unit_type, engine.agents)
    observation = features.observe(engine.snapshot(), engine.available())
    assert (engine.snapshot().health <= 0).any()
    for battle in range(2):
        for agent in range(engine.agents):
            expected = np.array(observed_by(engine, features, battle, agent), dtype=np.float32)
            assert np.allclose(observation[battle, agent], expected, atol=1e-6)


def test_stalkers_and_zealots_have_swapped_types_on_the_enemies_side_as_in_smac() -> None:
    for name in ("2s3z", "3s5z_vs_3s6z"):
        engine = Engine(parse(name), [1], enemy_order="created")
        bits = type_bits(engine, Features(engine.unit_type, engine.agents))
        names = [UNIT_TYPES[int(number)].name for number in engine.unit_type]
        for slot, kind in enumerate(names):
            first = (kind == "stalker") == (slot < engine.agents)
            assert bits[slot].tolist() == ([1.0, 0.0] if first else [0.0, 1.0])


def test_the_state_tells_all_agents_then_all_enemies_then_the_last_actions() -> None:
    engine = fought("MMM2", 14)
    features, now = Features(engine.unit_type, engine.agents), engine.snapshot()
    last = np.full((2, engine.agents), 1)
    state = features.state(now, last)
    allies = state[:, : 10 * 7].reshape(2, 10, 7)  # health, cooldown or energy, x, y, three types
    enemies = state[:, 70 : 70 + 12 * 6].reshape(2, 12, 6)
    alive = now.health > 0
    place = np.where(alive[..., None], (now.position - 16) / 32, 0)
    assert np.allclose(allies[..., 2:4], place[:, :10]) and np.allclose(enemies[..., 1:3], place[:, 10:])
    medivac = 9
    assert UNIT_TYPES[int(engine.unit_type[medivac])].is_healer
    assert np.allclose(allies[:, medivac, 1], now.energy[:, medivac] / 200)
    assert np.allclose(allies[:, 2, 1], now.cooldown_loops[:, 2] / 15)
    assert np.array_equal(state[:, 142:].reshape(2, engine.agents, -1), np.eye(engine.actions)[last])
    assert not features.state(now)[:, 142:].any()
