"""What one agent may see, and the loop that asks a policy for the action of every agent of every battle.

The loop copies the units within an agent's sight into a small table and gives the policy nothing else: a policy cannot
see further than its agent. `choose` is passed as a typed function, so that the loop is compiled once for all policies
and its machine code is found again by the next process.

What a policy file exports."""

# B battles, U units of both sides, N agents, K units one agent sees, A actions

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numba as nb
import numpy as np
from numba.experimental.function_type import _get_wrapper_address

from s2rm_data.core.compiled import compiled
from s2rm_data.core.philox import philox, to_unit
from s2rm_data.starcraft.codes import Action

if TYPE_CHECKING:
    from s2rm_data.starcraft.policies._network import Network


@dataclass(frozen=True, kw_only=True)
class Policy:
    """Either a compiled `choose`, or a trained `network`, or the names of the `members` of which each episode draws
    one.

    epsilon: share of random available actions when the user does not give one.
    keeps_to_mask: false for a policy that also attacks enemies it sees beyond SMAC's shooting range."""

    description: str
    choose: Callable[..., int] | None = None
    network: Network | None = None
    members: tuple[str, ...] = ()
    epsilon: float = 0.0
    keeps_to_mask: bool = True


# Columns of the table; the agent itself is row 0, the others follow by slot.
FRIEND = 0  # 1 for the agent's own team
INDEX = 1  # place in its team: action ATTACK + INDEX aims at it
TYPE = 2  # units.py
DX, DY = 3, 4  # from the agent, map units
DISTANCE2 = 5  # squared
HEALTH, SHIELD, ENERGY = 6, 7, 8
COOLDOWN = 9  # loops
COLUMNS = 10

# Rows of `places`: displacement from the agent.
ENEMY_START, OWN_START = 0, 1

# An agent's memory, zero at the start of an episode; policies may use it as they like.
TARGET = 0  # 1 + INDEX of what it sticks to, 0 for nobody
HEADING_HOME = 1  # 1 while it searches towards its own start
MEMORY = 2

# choose(units (K, COLUMNS), places (2, 2), available (A,), memory (MEMORY,), word) -> action
CHOOSE = nb.int64(nb.float64[:, ::1], nb.float64[:, ::1], nb.boolean[::1], nb.int64[::1], nb.uint64)

# Second key word of every draw made for policies ("policies" in ASCII): they never share a stream with a back end.
DOMAIN = np.uint64(0x706F6C6963696573)
_EPISODE = np.uint64(1) << np.uint64(32)  # counter of draws for a whole episode; agents count from 0
_32 = np.uint64(32)


def policy(function: Any) -> Any:
    """Decorator of a policy's function. It is compiled at once, so that mistakes show when the policy is loaded."""
    choose = compiled(CHOOSE)(function)
    if not nb.config.DISABLE_JIT:  # type: ignore[attr-defined]
        choose.get_compile_result(CHOOSE)
    return choose


class Callee(nb.types.WrapperAddressProtocol):
    """A policy's function as an argument of `act`. Numba looks up where the function is at every call, which takes as
    long as asking a hundred agents; this remembers it."""

    def __init__(self, choose: Any) -> None:
        self._choose = choose  # the code is there for as long as this is
        self._address = _get_wrapper_address(choose, CHOOSE)

    def __wrapper_address__(self) -> int:
        return int(self._address)

    def signature(self) -> Any:
        return CHOOSE


@cache
def callee(choose: Any) -> Any:
    return choose if nb.config.DISABLE_JIT else Callee(choose)  # type: ignore[attr-defined]


_F32 = nb.float32[:, ::1]
_ACT = nb.void(
    nb.types.FunctionType(CHOOSE),
    nb.boolean[::1],
    nb.int64,
    nb.uint64[::1],
    nb.float64,
    nb.float64[::1],
    nb.uint8[:, ::1],
    nb.float32[:, :, ::1],
    nb.types.UniTuple(_F32, 4),
    nb.boolean[:, :, ::1],
    nb.float64[:, :, ::1],
    nb.int64[:, :, ::1],
    nb.int16[:, ::1],
)


@compiled("int64(uint64, int64)")
def below(word, count):  # type: ignore[no-untyped-def]
    """A whole number 0..count-1 from a random word; integers only."""
    return np.int64(((word >> _32) * np.uint64(count)) >> _32)


@compiled("int64(boolean[::1], uint64)")
def random_available(available, word):  # type: ignore[no-untyped-def]
    """One of the available actions, all equally likely; no-op when there is none."""
    rest = below(word, max(1, available.sum()))
    for action in range(available.shape[0]):
        if available[action]:
            if rest == 0:
                return action
            rest -= 1
    return Action.NO_OP


@compiled("int64(uint64, int64)")
def draw_member(seed, count):  # type: ignore[no-untyped-def]
    """Which of `count` policies an episode gets."""
    return below(philox(seed, DOMAIN, np.uint64(0), _EPISODE)[0], count)


@compiled(forceinline=True)
def _look(rows, battle, agent, agents, sight, unit_type, position, stats):  # type: ignore[no-untyped-def]
    """Fills `rows` with what the agent sees and returns how many."""
    health, shield, energy, cooldown = stats
    x, y = np.float64(position[battle, agent, 0]), np.float64(position[battle, agent, 1])
    count, far = 1, sight[unit_type[battle, agent]]
    for unit in range(unit_type.shape[1]):
        dx, dy = np.float64(position[battle, unit, 0]) - x, np.float64(position[battle, unit, 1]) - y
        distance2 = dx * dx + dy * dy
        # SMAC: strictly nearer than the sight range
        if unit != agent and not (health[battle, unit] > 0.0 and distance2 < far * far):
            continue
        row = rows[0 if unit == agent else count]
        row[FRIEND] = 1.0 if unit < agents else 0.0
        row[INDEX] = unit if unit < agents else unit - agents
        row[TYPE] = unit_type[battle, unit]
        row[DX], row[DY], row[DISTANCE2] = dx, dy, distance2
        row[HEALTH], row[SHIELD], row[ENERGY] = health[battle, unit], shield[battle, unit], energy[battle, unit]
        row[COOLDOWN] = cooldown[battle, unit]
        if unit != agent:
            count += 1
    return count


@compiled(_ACT)
def act(  # type: ignore[no-untyped-def]
    choose, asked, step, seeds, epsilon, sight, unit_type, position, stats, available, starts, memory, actions
):
    """Writes the actions (B, N) of all agents of the battles marked in `asked` (B,).

    sight: by unit type; unit_type (B, U); stats: health, shield, energy, cooldown (B, U) each; available (B, N, A);
    starts (B, 2, 2): where the enemies and where the agents started; memory (B, N, MEMORY). An agent's draws depend on
    (seed of the episode, step, agent) alone."""
    agents = actions.shape[1]
    rows = np.empty((unit_type.shape[1] + 1, COLUMNS))
    places = np.empty((2, 2))
    for battle in range(actions.shape[0]):
        if not asked[battle]:
            continue
        for agent in range(agents):
            if stats[0][battle, agent] <= 0.0:
                actions[battle, agent] = Action.NO_OP
                continue
            count = _look(rows, battle, agent, agents, sight, unit_type, position, stats)
            for place in range(2):
                places[place, 0] = starts[battle, place, 0] - position[battle, agent, 0]
                places[place, 1] = starts[battle, place, 1] - position[battle, agent, 1]
            words = philox(seeds[battle], DOMAIN, np.uint64(step), np.uint64(agent))
            mask = available[battle, agent]
            choice = choose(rows[:count], places, mask, memory[battle, agent], words[0])
            if to_unit(words[1]) < epsilon:
                choice = random_available(mask, words[2])
            actions[battle, agent] = choice


@compiled()
def mix_random(asked, step, seeds, epsilon, available, actions):  # type: ignore[no-untyped-def]
    """Puts random available actions in place of a share `epsilon` of actions (B, N), by the draws that `act` makes."""
    for battle in range(actions.shape[0]):
        for agent in range(actions.shape[1]):
            if asked[battle] and not available[battle, agent, Action.NO_OP]:
                words = philox(seeds[battle], DOMAIN, np.uint64(step), np.uint64(agent))
                if to_unit(words[1]) < epsilon:
                    actions[battle, agent] = random_available(available[battle, agent], words[2])
