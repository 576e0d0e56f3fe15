"""An arena: one battle whose armies change while it runs, for clients that create and remove units themselves.

Slots stay in the order in which units came, agents before enemies. An arena in which the units of a scenario stand is
that scenario's battle, bit for bit: empty slots and the slots of the dead decide nothing."""

# U units of both sides, agents first

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from s2rm_data.starcraft.codes import Order
from s2rm_data.starcraft.engine import layout as at
from s2rm_data.starcraft.engine.batch import Engine
from s2rm_data.starcraft.engine.step import attack_nearest, order_unit
from s2rm_data.starcraft.scenarios import Scenario

_LONG_AGO = -(10**6)
_REFERENCES = (at.TARGET, at.FOCUS, at.PENDING_TARGET, at.TURRET_TARGET)


class Arena(Engine):
    """`Engine` with one battle; `add` and `forget_dead` move units to other slots and return where they are now."""

    def __init__(
        self,
        scenario: Scenario,
        seed: int,
        *,
        jitter: bool = True,
        head_start: bool = True,
        enemy_order: str = "random",
    ) -> None:
        super().__init__(scenario, [seed], jitter=jitter, head_start=head_start, enemy_order=enemy_order)
        self.unit_type = self.unit_type.reshape(-1).copy()

    def empty(self) -> None:
        """Take everybody out and forget them."""
        for slot in range(self.units):
            self.kill(0, slot)
        self.forget_dead()

    def wake(self) -> None:
        """Make the agents the game's own units, which pick targets by themselves while they stand idle."""
        self.ints[0, at.PASSIVE] = 0
        self.floats[:, at.HEALTH] = self.floats[:, at.HEALTH_MAX] = self._most_health()

    def attack_nearest(self) -> None:
        """The script of SMACv2's map."""
        attack_nearest(self.floats, self.ints, self._table, self.agents, self.counters)

    @property
    def alive(self) -> NDArray[np.bool_]:
        """(U,)"""
        return self.floats[0, at.HEALTH] > 0

    @property
    def centred(self) -> NDArray[np.float64]:
        """(U, 2) positions relative to the map's centre, as the engine holds them: unrounded."""
        return np.stack([self.floats[0, at.X], self.floats[0, at.Y]], axis=-1)

    def order_to(self, slot: int, kind: int, goal: tuple[float, float]) -> None:
        """`order` to a point relative to the map's centre, so that not even the shift to map coordinates rounds it. Who
        is sent on an attack-move looks for targets at a phase of its own, drawn by its number among the living."""
        if kind == Order.ATTACK_MOVE and self.ints[0, at.ORDER, slot] != kind:
            self.ints[0, at.SCAN_WAIT, slot] = self._look_phase(int(self.alive[:slot].sum()))[0]
        order_unit(self.floats, self.ints, self._table, 0, slot, kind, -1, *goal)

    def own_goals(self, slots: list[int], goal: tuple[float, float]) -> list[tuple[float, float]]:
        """Where each unit of a group goes that is sent to one point (relative to the map's centre) by one order."""
        return [(float(x), float(y)) for x, y in self._own_goals(slots, np.array([goal]))[0]]

    @property
    def passive(self) -> NDArray[np.bool_]:
        """(U,) which units attack only when ordered to."""
        return self.ints[0, at.PASSIVE] == 1

    def add(self, unit_type: int, point: tuple[float, float], *, agent: bool, passive: bool) -> list[int]:
        """Put a fresh, idle unit onto the field; the slot list (old slot of each unit, -1 for the new one)."""
        everybody = list(range(self.units))
        cut = self.agents if agent else self.units
        order = [*everybody[:cut], -1, *everybody[cut:]]
        self._reslot(order, self.agents + agent)
        new = cut
        self.unit_type[new] = self.ints[0, at.KIND, new] = unit_type
        self.ints[0, at.PASSIVE, new] = passive
        self.floats[0, at.FACE_X, new] = 1.0 if agent else -1.0
        self.ints[0, list(_REFERENCES), new] = -1
        self.ints[0, at.MOVED_LOOP, new] = _LONG_AGO
        self.place(0, new, point)
        self.floats[0, [at.GOAL_X, at.GOAL_Y], new] = self.floats[0, [at.X, at.Y], new]
        return order

    def forget_dead(self) -> list[int]:
        """Free the slots of the dead, but of those whose missile still flies; the slot list of the rest."""
        keep = self.alive | (self.floats[0, at.PENDING] > 0)
        order = [int(slot) for slot in np.nonzero(keep)[0]]
        self._reslot(order, int(keep[: self.agents].sum()))
        return order

    def _reslot(self, order: list[int], agents: int) -> None:
        old = np.array(order, dtype=np.int64)
        slots = np.nonzero(old >= 0)[0]
        now = np.full(self.units + 1, -1, dtype=np.int64)  # now[old slot]; the last entry answers for -1
        now[old[slots]] = slots
        queued = self.ints[0, at.QUEUE, : self.counters[0, at.QUEUED]]
        queue = now[queued]
        floats = np.zeros((1, at.FLOAT_ROWS, len(old)))
        ints = np.zeros((1, at.INT_ROWS, len(old)), dtype=self.ints.dtype)
        floats[:, :, slots], ints[:, :, slots] = self.floats[:, :, old[slots]], self.ints[:, :, old[slots]]
        self._drop_references(floats[0], ints[0], now)
        queue = queue[queue >= 0]
        ints[0, at.QUEUE] = 0
        ints[0, at.QUEUE, : len(queue)] = queue
        unit_type = np.zeros(len(old), dtype=self.unit_type.dtype)
        unit_type[slots] = self.unit_type[old[slots]]
        self.floats, self.ints, self.unit_type = floats, ints, unit_type
        self.counters[0, at.QUEUED] = len(queue)
        self.agents, self.units = agents, len(old)
        self._near = at.scratch(self.units)

    @staticmethod
    def _drop_references(floats: NDArray[np.float64], ints: NDArray[np.int64], now: NDArray[np.int64]) -> None:
        """Follow moved slots; who aimed at a forgotten one does what it would do next about a dead target."""
        gone = {row: (ints[row] >= 0) & (now[ints[row]] < 0) for row in _REFERENCES}
        for row in _REFERENCES:
            ints[row] = now[ints[row]]
        floats[at.PENDING, gone[at.PENDING_TARGET]] = 0.0
        unloosed = gone[at.TURRET_TARGET] & (floats[at.TURRET_WINDUP] > 0)
        floats[at.TURRET_WINDUP, unloosed] = floats[at.COOLDOWN, unloosed] = 0.0
        broken = gone[at.FOCUS] & (floats[at.WINDUP] > 0)
        floats[at.WINDUP, broken] = floats[at.COOLDOWN, broken] = 0.0
        ints[at.ORDER, gone[at.TARGET]] = Order.IDLE
