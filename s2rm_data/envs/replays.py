"""Battles of the drop-in class as the server saves them: JSON with the seed and every order that came from outside."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from s2rm_data.envs.battles import BattleBatch
from s2rm_data.envs.options import EnvOptions
from s2rm_data.errors import UsageError
from s2rm_data.generators.sc2.api.server.game import REPLAY_FORMAT
from s2rm_data.generators.sc2.codes import ORDERS, Action, Order
from s2rm_data.generators.sc2.engine import layout as at
from s2rm_data.generators.sc2.engine.batch import HEAD_START_LOOPS
from s2rm_data.generators.sc2.engine.generated import SCRIPT_LOOPS
from s2rm_data.generators.sc2.units import NUMBER_OF

_MEDIVAC = NUMBER_OF["medivac"]
_FIRST_TAG = 1 << 32


def replay(options: EnvOptions, seed: int, head_start: bool, actions: Sequence[Sequence[int]]) -> bytes:
    """Plays the battle again to find out where its moves led."""
    battles = BattleBatch(options, 1)
    if battles.generated and options.step_mul != SCRIPT_LOOPS:
        raise UsageError(
            f"step_mul is {options.step_mul}; a battle of SMACv2's can be saved with {SCRIPT_LOOPS} only, since in a "
            "replay the map's script runs every half second, and here at every step"
        )
    only = np.zeros(1, dtype=np.int64)
    battles.begin(only, battles.fresh([seed], head_start=head_start), only)
    begin = SCRIPT_LOOPS - HEAD_START_LOOPS if battles.generated else 0  # the script runs at the first step
    loop = begin + (HEAD_START_LOOPS if head_start else 0)
    events: list[dict[str, Any]] = []
    for step in actions:
        chosen = np.array([step], dtype=np.int64)
        before = battles.snapshot.health[0] > 0
        orders = battles.orders(chosen)
        battles.engine.act(orders, options.move_amount)  # to see the goals; the step gives the same orders again
        ordered = enumerate(orders[0].tolist())
        events += [_event(battles, loop, agent, action) for agent, action in ordered if action and before[agent]]
        battles.step(chosen)
        loop += options.step_mul or 0
    content = {
        "format": REPLAY_FORMAT,
        "map": options.map_name,
        "seed": seed,
        "begin_loop": begin,
        "loop": loop,
        "first_tag": _FIRST_TAG,
        "whole": True,
        "events": events,
    }
    return json.dumps(content).encode()


def _event(battles: BattleBatch, loop: int, agent: int, action: int) -> dict[str, Any]:
    order, target, goal = Order.IDLE, 0, None
    if Action.NORTH <= action <= Action.WEST:
        order = Order.MOVE
        goal = [float(battles.engine.floats[0, row, agent]) for row in (at.GOAL_X, at.GOAL_Y)]
    elif action >= Action.ATTACK:
        heals = battles.engine.kinds[0, agent] == _MEDIVAC
        order = Order.HEAL if heals else Order.ATTACK
        target = _FIRST_TAG + action - Action.ATTACK + (0 if heals else battles.agents)
    tag = _FIRST_TAG + agent
    return {"loop": loop, "what": ORDERS[order], "tag": tag, "target": target, "goal": goal, "owner": 0}
