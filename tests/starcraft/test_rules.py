"""One rulebook: engine, environments and both sides of the API say the same of the same battles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from s2clientprotocol import sc2api_pb2 as api

from s2rm_data.core.errors import UsageError
from s2rm_data.starcraft import rules
from s2rm_data.starcraft.api.client.battle import GameBattle
from s2rm_data.starcraft.api.server.requests import Client
from s2rm_data.starcraft.battle import Battle
from s2rm_data.starcraft.codes import Action, Outcome, Snapshot
from s2rm_data.starcraft.engine import Engine
from s2rm_data.starcraft.envs import StarCraft2Env, parallel_env, vector_env
from s2rm_data.starcraft.envs.battles import BattleBatch, EnvOptions
from s2rm_data.starcraft.generated import NAMES
from s2rm_data.starcraft.scenarios import SMAC, parse
from s2rm_data.starcraft.units import NUMBER_OF

SEED = 1
ONLY = np.zeros(1, dtype=np.int64)
SEEN = ("position", "health", "shield", "energy", "cooldown_loops")


class ServedGame:
    """The API's server behind the calls of the API's client, message by message, without a connection between them."""

    def __init__(self) -> None:
        self.client, self.controller = Client(), self

    def ask(self, **request: Any) -> Any:
        response = api.Response.FromString(self.client.answer(api.Request(**request).SerializeToString()))
        assert not response.error, response.error
        return getattr(response, response.WhichOneof("response"))

    def map_data(self, path: str) -> bytes:
        return b""

    def create_game(self, request: Any) -> None:
        self.ask(create_game=request)
        self.ask(join_game=api.RequestJoinGame(race=1, options=api.InterfaceOptions(raw=True)))

    def game_info(self) -> Any:
        return self.ask(game_info=api.RequestGameInfo())

    def observe(self, disable_fog: bool) -> Any:
        return self.ask(observation=api.RequestObservation(disable_fog=disable_fog))

    def step(self, loops: int) -> None:
        self.ask(step=api.RequestStep(count=loops))

    def actions(self, request: Any) -> None:
        self.ask(action=request)

    def debug(self, commands: list[Any]) -> None:
        self.ask(debug=api.RequestDebug(debug=commands))

    @property
    def standing(self) -> Outcome:
        """What the server itself says of its battle."""
        assert self.client._game is not None
        return self.client._game.standing()


def begun(name: str, seed: int = SEED) -> BattleBatch:
    """An environment's battle, seen after the head start."""
    battles = BattleBatch(EnvOptions(map_name=name), 1)
    battles.begin(ONLY, battles.fresh([seed]), ONLY)
    return battles


def played_by_the_engine(battles: BattleBatch) -> BattleBatch:
    """The environment judges what the engine's own steps bring, so that both see the same to the last bit."""
    engine = battles.engine
    engine.act = lambda orders, amount: engine.step(orders)  # type: ignore[method-assign]
    engine.run_loops = lambda loops: None  # type: ignore[method-assign]
    return battles


def assert_seen_alike(one: Snapshot, other: Snapshot, message: str) -> None:
    for name in SEEN:
        here, there = getattr(one, name), getattr(other, name)
        alive = one.health > 0
        np.testing.assert_array_equal(here[alive], there[alive], err_msg=f"{message}: {name}")


def choose(mask: NDArray[np.bool_], draws: np.random.Generator) -> NDArray[np.int64]:
    """(1, N) random actions, attacks four times as likely as others."""
    weight = np.where(np.arange(mask.shape[2]) >= Action.ATTACK, 4.0, 1.0)
    return (draws.random(mask.shape) * mask * weight).argmax(axis=2)


def test_environment_client_and_server_agree_step_by_step_on_all_of_smacs_maps() -> None:
    ends = set()
    for name in SMAC:
        battles, served = begun(name), ServedGame()
        game, draws = GameBattle(served, parse(name), SEED), np.random.default_rng(0)  # type: ignore[arg-type]
        for step in range(60):
            message = f"{name}, step {step}"
            assert_seen_alike(battles.snapshot, game.snapshot(), message)
            np.testing.assert_array_equal(game.available(), battles.available, err_msg=message)
            actions = choose(battles.available, draws)
            battles.step(battles.checked(actions))
            game.step(actions)
            assert game.reward[0] == pytest.approx(battles.reward[0], rel=1e-12), message
            assert game.outcome[0] == battles.outcome[0], message
            if served.client._game.alive:  # type: ignore[union-attr]
                assert served.standing == battles.outcome[0], message
            if battles.outcome[0] != Outcome.RUNNING:
                ends.add(int(battles.outcome[0]))
                break
    assert ends >= {Outcome.WIN, Outcome.LOSS}


def test_engine_and_environment_agree_step_by_step_on_all_maps_and_on_smacv2s() -> None:
    ends = set()
    for name in (*SMAC, *NAMES, "9m_vs_1m"):
        battles, draws = played_by_the_engine(begun(name)), np.random.default_rng(1)
        engine = battles.engine
        for step in range(60):
            message = f"{name}, step {step}"
            np.testing.assert_array_equal(engine.available(), battles.available, err_msg=message)
            battles.step(battles.checked(choose(battles.available, draws)))
            assert battles.reward[0] == pytest.approx(engine.reward[0], abs=1e-4), message
            assert battles.outcome[0] == engine.outcome[0], message
            if battles.outcome[0] != Outcome.RUNNING:
                ends.add(int(battles.outcome[0]))
                break
    assert ends >= {Outcome.WIN, Outcome.LOSS}


def test_the_environments_share_masks_and_rewards() -> None:
    single, several, parallel = StarCraft2Env(map_name="3m", seed=SEED), vector_env("3m", 2), parallel_env("3m")
    single.reset()
    several.reset()
    parallel.reset(seed=0)
    vector = several.battles
    for battles in (single._battles, vector, parallel._env.battles):
        seen = battles.snapshot
        masks = np.zeros((battles.count, 3, 9), dtype=np.bool_)
        kinds = np.broadcast_to(seen.unit_type, seen.health.shape).copy()
        rules.write_masks(
            seen.position, seen.health, kinds, rules.table(), battles.terrain.pathing, 0.0, 2.0, 6,
            np.ones((0, 3, 2)), 0.0, masks,
        )  # fmt: skip
        np.testing.assert_array_equal(masks, battles.available)


def medivacs_alone() -> Engine:
    """MMM with one medivac left on either side."""
    engine = Engine(parse("MMM"), [SEED], enemy_order="created")
    for slot in range(20):
        if slot not in (9, 19):
            engine.kill(0, slot)
    return engine


def test_of_two_sides_of_healers_alone_the_agents_have_lost() -> None:
    """In the environment, the engine that makes stored data, the client of the game, and the server."""
    battles = BattleBatch(EnvOptions(map_name="MMM", enemy_order="created"), 1)
    served = ServedGame()
    battles.begin(ONLY, medivacs_alone(), ONLY)
    battles.step(np.array([[0] * 9 + [1]]))
    assert battles.outcome[0] == Outcome.LOSS

    engine = medivacs_alone()
    engine.step([[0] * 9 + [1]])
    assert engine.outcome[0] == Outcome.LOSS
    assert rules.standing(engine.snapshot(), heals=True) == Outcome.LOSS

    game = GameBattle(served, parse("MMM"), SEED)  # type: ignore[arg-type]
    medivacs = np.flatnonzero(game._slots.unit_type == NUMBER_OF["medivac"])
    tags = [tag for slot, tag in enumerate(game._slots.tags) if slot not in medivacs]
    served.debug([{"kill_unit": {"tag": tags}}])
    game.step([[0] * 9 + [1]])
    assert game.outcome[0] == Outcome.LOSS
    assert served.standing == Outcome.LOSS


def test_without_healers_in_the_scenario_two_dead_armies_are_a_draw() -> None:
    for heals, outcome in ((False, "DRAW"), (True, "LOSS")):
        engine = Engine(parse("MMM" if heals else "3m"), [0])
        for slot in range(engine.units):
            engine.kill(0, slot)
        assert rules.standing(engine.snapshot(), heals=heals) == Outcome[outcome]


def test_actions_have_the_same_names_everywhere() -> None:
    def name(action: int, *, heals: bool = False, attack_at: int = 6) -> str:
        return rules.action_name(action, 3, 5, heals=heals, attack_at=attack_at)

    assert [name(action) for action in (0, 2, 6, 10)] == [
        "0 (no-op)",
        "2 (move north)",
        "6 (attack enemy 0)",
        "10 (attack enemy 4)",
    ]
    assert name(8, heals=True) == "8 (heal agent 2)"
    assert name(9, heals=True) == "9 (there are 0 to 8)"
    assert name(7, attack_at=10) == "7 (look at 90 degrees)"
    env = StarCraft2Env(map_name="3m", seed=SEED)
    env.reset()
    said = []
    for step in (Battle("3m", seed=SEED).step, env.step):
        with pytest.raises(UsageError, match=r"agent 0 \(marine\) cannot do action 0 \(no-op\) now") as refused:
            step([0, 1, 1])
        said.append(str(refused.value))
    assert said[0] == said[1]


def test_rewards_by_hand() -> None:
    """A marine with 45 of health that dies brings 55; so does one whose death is told at once, but not in SMACv2."""
    before, now = np.array([[45.0, 45.0, 45.0]], np.float32), np.array([[40.0, 0.0, 45.0]], np.float32)
    shields, regained = np.array([[0.0, 0.0, 10.0]], np.float32), np.array([[0.0, 0.0, 80.0]], np.float32)
    marines = np.ones((1, 3), np.uint8)

    def worth(rewards: rules.Rewards, shields_now: NDArray[np.float32], agents: int = 1, divisor: float = 1.0) -> float:
        reward, outcome, dead = np.zeros(1), np.zeros(1, dtype=np.int64), np.zeros((1, 2), dtype=np.int64)
        rules.settle(
            before, shields, now, shields_now, marines, rules.table(), agents, rewards, False, np.array([1]), 60,
            np.array([divisor]), reward, outcome, dead,
        )  # fmt: skip
        assert (outcome[0], dead.tolist()) == (Outcome.RUNNING, [[0, 1]] if agents == 1 else [[1, 0]])
        return float(reward[0])

    assert worth(rules.Rewards(), shields) == 55.0
    assert worth(rules.Rewards(), shields, divisor=4.0) == 13.75
    assert worth(rules.Rewards(), regained) == 15.0  # 45 + 10 - 70, without its sign
    assert worth(rules.Rewards(clipped=True), regained) == 0.0
    assert worth(rules.Rewards(only_positive=False), shields) == 55.0 - 0.5 * 5.0
    assert worth(rules.Rewards(only_positive=False), shields, agents=2) == -0.5 * (5.0 + 45.0 + 10.0)
    assert worth(rules.Rewards(sparse=True), shields) == 0.0
