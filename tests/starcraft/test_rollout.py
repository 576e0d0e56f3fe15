"""Recorded episodes: who acts when, what is blank, and that no scripted battle stands still."""

import hashlib
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from s2rm_data.core.seeding import sequence_seeds
from s2rm_data.generators.sc2.making.battle_config import Sc2Config
from s2rm_data.generators.sc2.making.battle_source import play
from s2rm_data.starcraft.codes import ORDERS, OUTCOMES, Action, Order, Outcome, Snapshot
from s2rm_data.starcraft.engine import Orders
from s2rm_data.starcraft.policies import POLICIES
from s2rm_data.starcraft.rollout import Battles, Record, rollout
from s2rm_data.starcraft.scenarios import parse
from s2rm_data.starcraft.units import NUMBER_OF

STEPS = {Action.NORTH: (0, 1), Action.SOUTH: (0, -1), Action.EAST: (1, 0), Action.WEST: (-1, 0)}
SCRIPTED = ["smac", "smac_restricted", "focus", "kite"]


def test_stores_spell_orders_and_outcomes_as_ever() -> None:
    assert ORDERS == ("idle", "move", "attack", "heal", "attack_move", "hunt")
    assert OUTCOMES == ("running", "win", "loss", "draw", "limit")
    assert [ORDERS.index("hunt"), OUTCOMES.index("limit")] == [Order.HUNT, Outcome.LIMIT]


@cache
def played(scenario: str = "3s5z", policy: str = "mixed", episodes: int = 24, epsilon: float | None = None) -> Record:
    config = Sc2Config(scenario=scenario, policy=policy, epsilon=epsilon)
    return play(config, sequence_seeds(0, "test", 0, episodes))


def steps_played(record: Record) -> np.ndarray:
    return np.arange(record["action"].shape[1]) < record["length"][:, None]


def test_everything_after_the_end_and_of_the_dead_is_blank() -> None:
    record = played()
    assert record["length"].min() < 100
    over = ~steps_played(record)
    for name in ("unit_position", "unit_health", "unit_alive", "unit_goal", "action", "available", "reward"):
        assert not record[name][over].any(), name
    dead = ~record["unit_alive"]
    for name in ("unit_position", "unit_health", "unit_shield", "unit_energy", "unit_cooldown", "unit_order"):
        assert not record[name][dead].any(), name
    assert (record["unit_target"][dead] == -1).all()
    assert not record["agent_position"][~record["agent_alive"]].any()


def test_agents_act_exactly_while_they_live() -> None:
    record = played()
    assert np.array_equal(record["action"] != Action.NO_OP, record["agent_alive"])
    assert record["agent_alive"][:, 0].all()
    assert (np.diff(record["agent_alive"].astype(int), axis=1) <= 0).all()


@pytest.mark.parametrize("policy", [*SCRIPTED, "random"])
def test_chosen_actions_are_available_unless_the_policy_is_free_to_attack_from_afar(policy: str) -> None:
    for scenario in ("3s5z", "MMM2"):
        record = played(scenario, policy, 12)
        alive = record["agent_alive"]
        chosen = np.take_along_axis(record["available"], record["action"].astype(np.int64)[..., None], axis=-1)[..., 0]
        strayed = alive & ~chosen
        if POLICIES.load(policy).keeps_to_mask:
            assert not strayed.any()
        else:
            assert (record["action"][strayed] >= Action.ATTACK).all()


def test_an_action_at_step_t_shows_in_the_state_of_step_t_plus_1() -> None:
    record = played("3s5z", "random", 24)
    direction = {Action.NORTH: (0, 1), Action.SOUTH: (0, -1), Action.EAST: (1, 0), Action.WEST: (-1, 0)}
    steps = record["unit_position"][:, 1:3, :8] - record["unit_position"][:, :2, :8]  # nobody fights yet
    for action, (x, y) in direction.items():
        moved = steps[record["action"][:, :2] == action] @ np.array([x, y])
        assert np.median(moved) > 0.9  # zealots walk 1.125 a step, stalkers 1.48, crowds hold some up
    stopped = steps[record["action"][:, :2] == Action.STOP]
    assert np.median(np.hypot(*stopped.T)) < 0.3  # others may push them aside


def test_orders_and_targets_say_what_the_actions_and_the_enemies_do() -> None:
    record = played("MMM", "focus", 8)
    agents = record["action"].shape[2]
    order, target, action = record["unit_order"][:, :, :agents], record["action_target"], record["action"]
    alive = record["agent_alive"]
    healer = np.broadcast_to(record["unit_type"][:, None, :agents] == NUMBER_OF["medivac"], action.shape)
    assert np.array_equal(order == Order.MOVE, (action >= Action.NORTH) & (action <= Action.WEST))
    assert np.array_equal(order == Order.ATTACK, (action >= Action.ATTACK) & ~healer)
    assert np.array_equal(order == Order.HEAL, (action >= Action.ATTACK) & healer)
    assert (order == Order.HEAL).any()
    assert (target[order == Order.ATTACK] >= agents).all() and (target[order == Order.HEAL] < agents).all()
    assert np.array_equal(target >= 0, alive & (action >= Action.ATTACK))
    enemies = record["unit_alive"][:, :, agents:]
    marching = enemies & (record["unit_order"][:, :, agents:] == Order.ATTACK_MOVE)
    assert np.array_equal(marching[:, :10], enemies[:, :10])  # until they arrive where they were sent
    assert np.abs(record["unit_goal"][:, :, agents:][marching] - (9, 16)).max() < 3  # each has its place in the army
    assert (record["unit_target"][:, :, agents:][enemies] >= 0).any()


def test_outcomes_agree_with_who_dealt_the_last_blow() -> None:
    record = played("3s5z", "mixed", 60)
    won = record["outcome"] == Outcome.WIN
    lost = record["outcome"] == Outcome.LOSS
    assert won.any() and lost.any()
    total = record["reward"].sum(axis=1)
    assert np.allclose(total[won], 20, atol=2)  # SMAC's maximum, but for shields that grew back
    assert total[lost].max() < 20 * (1 - 200 / (200 + 8 * 10 + 3 * 160 + 5 * 150)) + 1.5
    assert (record["length"][record["outcome"] == 0] == 100).all()


@pytest.mark.parametrize("policy", SCRIPTED)
@pytest.mark.parametrize("scenario", ["3s5z", "1s2z", "2s_vs_1sc", "2c_vs_64zg"])
def test_scripted_battles_are_fought_out(policy: str, scenario: str) -> None:
    record = played(scenario, policy, 6)
    hurt = (record["unit_health"] + record["unit_shield"]).sum(axis=2)
    first = hurt[:, 0]
    last = np.take_along_axis(hurt, (record["length"] - 1)[:, None].astype(np.int64), axis=1)[:, 0]
    assert (last < 0.95 * first).all()


def test_the_policy_of_an_episode_is_recorded_and_varies() -> None:
    record = played("3s5z", "mixed", 60)
    assert set(np.unique(record["policy"])) == set(range(5))


class ToyBattles:
    """Another back end: 2s3z on a chessboard, where agents move by 1 and every hit takes off 16 at once."""

    def __init__(self, battles: int) -> None:
        stalker, zealot = NUMBER_OF["stalker"], NUMBER_OF["zealot"]
        self.unit_type = np.array([stalker, stalker, zealot, zealot, zealot] * 2, np.uint8)
        x = np.array([8, 8, 9, 9, 9, 24, 24, 23, 23, 23], np.float32)
        y = np.array([15, 17, 14, 16, 18, 15, 17, 14, 16, 18], np.float32)
        self.position = np.tile(np.stack([x, y], axis=-1), (battles, 1, 1))
        self.health = np.full((battles, 10), 64, np.float32)
        self.reward = np.zeros(battles)

    def snapshot(self) -> Snapshot:
        blank = np.zeros_like(self.health)
        cooldown = np.where(self.health % 32 == 0, 12, 0).astype(np.float32)
        values = {"shield": blank, "energy": blank, "cooldown_loops": cooldown}
        return Snapshot(
            agents=5, unit_type=self.unit_type, position=self.position.copy(), health=self.health.copy(), **values
        )

    def available(self) -> NDArray[np.bool_]:
        alive = self.health > 0
        mask = np.zeros((len(alive), 5, Action.ATTACK + 5), np.bool_)
        mask[..., Action.NO_OP] = ~alive[:, :5]
        mask[..., Action.STOP : Action.ATTACK] = alive[:, :5, None]
        gap = self.position[:, :5, None] - self.position[:, None, 5:]
        mask[..., Action.ATTACK :] = ((gap**2).sum(axis=-1) <= 36) & alive[:, :5, None] & alive[:, None, 5:]
        return mask

    def orders(self) -> Orders:
        kind = np.full(self.health.shape, Order.ATTACK_MOVE, np.int8)
        return Orders(kind=kind, target=np.zeros_like(kind, np.int16), point=np.full((*kind.shape, 2), 9, np.float32))

    def step(self, actions: NDArray[np.int16]) -> None:
        for battle, agent in zip(*np.nonzero(~self.done[:, None] & (actions > Action.STOP)), strict=True):
            action = int(actions[battle, agent])
            if action >= Action.ATTACK:
                target = 5 + action - Action.ATTACK
                self.health[battle, target] = max(0, self.health[battle, target] - 16)
                self.health[battle, agent] = max(0, self.health[battle, agent] - 4)
            else:
                self.position[battle, agent] += {
                    Action.NORTH: (0, 1),
                    Action.SOUTH: (0, -1),
                    Action.EAST: (1, 0),
                    Action.WEST: (-1, 0),
                }[action]
        self.position[:, 5:, 0] -= 0.25
        self.reward = self.health[:, :5].sum(axis=1) / 64

    @property
    def done(self) -> NDArray[np.bool_]:
        return self.outcome > 0

    @property
    def outcome(self) -> NDArray[np.int64]:
        return np.where((self.health[:, 5:] == 0).all(axis=1), Outcome.WIN, 0)


TOY_LENGTHS = [14, 14, 14, 15, 14, 40, 40, 40, 14, 14]
TOY_DIGEST = "eff52a9c28ad28fcf36c75a2d394447f43707e7360eb1f0f405bb9888dd06635"


def test_golden_digest_of_policies_and_record_on_another_back_end() -> None:
    battles: Battles = ToyBattles(10)
    seeds = sequence_seeds(2, "golden", 0, 10)
    record = rollout(battles, parse("2s3z"), policy="mixed", epsilon=0.125, seeds=seeds, steps=40)
    total = hashlib.sha256()
    for name in sorted(record):
        values = np.ascontiguousarray(record[name])
        total.update(name.encode() + values.astype(values.dtype.newbyteorder("<")).tobytes())
    assert record["length"].tolist() == TOY_LENGTHS
    assert total.hexdigest() == TOY_DIGEST
