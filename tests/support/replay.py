"""Open loop: recorded battles played again in the engine, order by order, and compared with what the game did.

    battles = load(Path("real_battles.json.gz"))["2s3z"]
    replay = play_recorded(battles, copies=4)
    for row in compare(battles, replay):
        print(row.name, row.game, row.engine)

Chance differs from the game's, so battles drift apart: positions can be compared while nobody has died, later events
as distributions over many battles. An enemy that survives its recorded death by a few hit points is never attacked
again, so a battle in open loop soon goes worse than it went in the game. A *guided* replay therefore lets every enemy
live until its recorded death and die then: what it tells is whom the enemies attack and how hard. In a *forced* one
all units are put on their recorded places before every step: what it tells is how units shoot and die, wherever walking
would have led them.
"""

# B battles in the engine = recordings x copies, U units of both sides (agents first), S steps

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from recordings import NEVER, Attack, Heal, Move, RecordedBattle, Stop

from s2rm_data.core.errors import UsageError
from s2rm_data.core.seeding import sequence_seeds
from s2rm_data.starcraft import scenarios
from s2rm_data.starcraft.codes import Order
from s2rm_data.starcraft.engine import Engine
from s2rm_data.starcraft.engine import layout as at
from s2rm_data.starcraft.formation import CENTRE
from s2rm_data.starcraft.units import LOOPS_PER_STEP

EARLY_LOOPS = 24
CURVE_LOOPS = (60, 80, 100, 125, 150, 200, 250, 300, 400)


@dataclass(frozen=True, kw_only=True)
class Replay:
    """Recorded battles as the engine fought them; units are numbered as in the recording."""

    copies: int  # battle b replays the recording b // copies
    position: NDArray[np.float32]  # (S + 1, B, U, 2) before each step and at the end
    death_loop: NDArray[np.int64]  # (B, U) NEVER for survivors
    first_damage_loop: NDArray[np.int64]  # (B,)


def play_recorded(
    battles: Sequence[RecordedBattle],
    *,
    copies: int = 4,
    seed: int = 0,
    guided: bool = False,
    forced: bool = False,
    until: int | None = None,
) -> Replay:
    """Each recording's orders at its loops, `copies` times with different chance. Agents start where the recording
    has them, or else where the engine puts them, and so do all enemies. `guided`: enemies die exactly as recorded.
    `forced`: units stand at `recorded_places` before every step. `until`: the loop to stop after.
    """
    name, units = battles[0].scenario, len(battles[0].unit_type)
    count = len(battles) * copies
    seeds = sequence_seeds(seed, f"recorded/{name}", 0, count)
    engine = Engine(scenarios.parse(name), seeds, enemy_order="created")
    slots = np.array([_slots(engine, battle, copies * index) for index, battle in enumerate(battles)])
    slots = np.repeat(slots, copies, axis=0)  # (B, U) the engine's slot of each recorded unit
    for row in range(count):
        for agent, point in battles[row // copies].first_positions.items():
            engine.place(row, int(slots[row, agent]), point)
    scripts = [_script(battle) for battle in battles]
    steps = max(battle.steps for battle in battles) if until is None else -(-until // LOOPS_PER_STEP)
    position = np.zeros((steps + 1, count, units, 2), np.float32)
    death = np.full((count, units), NEVER)
    damage = np.full(count, NEVER)
    recorded_death = np.repeat([battle.death_loop for battle in battles], copies, axis=0)
    now = engine.snapshot()
    whole = (now.health + now.shield).sum(axis=1)
    starts = np.take_along_axis(engine.position, slots[..., None], axis=1)
    places = [recorded_places(battles[row // copies], starts[row], steps)[0] for row in range(count if forced else 0)]
    for step in range(steps):
        position[step] = np.take_along_axis(now.position, slots[..., None], axis=1)
        for row in range(count):
            battle = battles[row // copies]
            if forced:
                _put(engine, row, slots[row], places[row][step])
            if step < battle.steps:
                _give_orders(engine, row, battle, scripts[row // copies].get(step, {}), step, slots[row])
        for loop in range(step * LOOPS_PER_STEP + 1, (step + 1) * LOOPS_PER_STEP + 1):
            engine.run_loops(1)
            if guided:
                _let_die(engine, recorded_death, loop)
            now = engine.snapshot()
            dead = np.take_along_axis(now.health, slots, axis=1) <= 0
            death[dead & (death == NEVER)] = loop
            damage[((now.health + now.shield).sum(axis=1) < whole) & (damage == NEVER)] = loop
    position[steps] = np.take_along_axis(now.position, slots[..., None], axis=1)
    return Replay(copies=copies, position=position, death_loop=death, first_damage_loop=damage)


def recorded_places(
    battle: RecordedBattle, start: NDArray[np.float64], steps: int
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """(S, U, 2) where each unit stood before each step, on the line between two known places; nan after the last known
    one. (S, U) where the recording tells it; everybody starts at `start`.
    """
    known: list[dict[int, tuple[float, float]]] = [{0: (float(x), float(y))} for x, y in start]
    for move in battle.moves:
        if move.position is not None:
            known[move.agent][move.loop // LOOPS_PER_STEP] = move.position
    for attack in battle.attacks:
        known[attack.target][attack.loop // LOOPS_PER_STEP] = attack.position
    places, told = np.full((steps, len(known), 2), np.nan), np.zeros((steps, len(known)), np.bool_)
    for unit, sightings_of in enumerate(known):
        when = sorted(sightings_of)
        for axis in (0, 1):
            values = [sightings_of[step][axis] for step in when]
            places[:, unit, axis] = np.interp(np.arange(steps), when, values, right=np.nan)
        told[[step for step in when if step < steps], unit] = True
    return places, told


def _put(engine: Engine, row: int, slots: NDArray[np.int64], places: NDArray[np.float64]) -> None:
    """Put the living units whose place is known there, whatever they are doing."""
    here = ~np.isnan(places[:, 0]) & (engine.floats[row, at.HEALTH, slots] > 0)
    engine.floats[row, at.X : at.Y + 1, slots[here]] = places[here] - CENTRE


def dead_by(death_loop: NDArray[np.int64], loops: Sequence[int]) -> list[float]:
    """Mean number of the dead at each loop, of (B, U) loops of deaths."""
    return [float((death_loop <= loop).sum(axis=1).mean()) for loop in loops]


def _let_die(engine: Engine, death_loop: NDArray[np.int64], loop: int) -> None:
    """Enemies whose recorded loop has come die; the others are made whole again."""
    first = engine.agents
    now = engine.floats[:, :, first:]
    shields = np.broadcast_to(at.table()[engine.unit_type[first:], at.SHIELD_MAX], now[:, at.SHIELD].shape)
    for row, full in ((at.HEALTH, now[:, at.HEALTH_MAX]), (at.SHIELD, shields)):
        now[:, row] = np.where(now[:, at.HEALTH] > 0, full, now[:, row])
    for battle, enemy in np.argwhere(death_loop[:, first:] == loop):
        engine.kill(int(battle), int(first + enemy))


def _slots(engine: Engine, battle: RecordedBattle, row: int) -> list[int]:
    """The engine's slot of each recorded unit: agents by type and nearness of their starts, enemies in order."""
    start = engine.snapshot().position[row]
    if sorted(battle.unit_type) != sorted(engine.unit_type.tolist()):
        raise UsageError(f"the recording of {battle.scenario} has other units than the scenario")
    known = battle.first_positions
    pairs = []
    for agent in range(battle.agents):
        cell = battle.birth_cell[agent]
        x, y = known.get(agent, (cell[0] + 0.5, cell[1] + 0.5))
        pairs += [
            (float(np.hypot(start[slot, 0] - x, start[slot, 1] - y)), agent, slot)
            for slot in range(battle.agents)
            if engine.unit_type[slot] == battle.unit_type[agent]
        ]
    chosen: dict[int, int] = {}
    for _, agent, slot in sorted(pairs):
        if agent not in chosen and slot not in chosen.values():
            chosen[agent] = slot
    return [chosen[agent] for agent in range(battle.agents)] + list(range(battle.agents, len(battle.unit_type)))


Given = Move | Attack | Stop | Heal
Script = dict[int, dict[int, Given]]  # by step and agent


def _script(battle: RecordedBattle) -> Script:
    script: Script = {}
    orders: list[Given] = [*battle.moves, *battle.attacks, *battle.stops, *battle.heals]
    for order in orders:
        script.setdefault(order.loop // LOOPS_PER_STEP, {})[order.agent] = order
    return script


def _give_orders(
    engine: Engine,
    row: int,
    battle: RecordedBattle,
    orders: dict[int, Given],
    step: int,
    slots: NDArray[np.int64],
) -> None:
    """What is ordered of an agent that is dead here, or at a target that is dead here, is ignored by the engine."""
    dead = {unit for loop, unit, _ in battle.deaths if loop <= step * LOOPS_PER_STEP}
    for agent in range(battle.agents):
        if agent in dead:
            continue  # where it lives on in the engine, it keeps its last order
        order, slot = orders.get(agent), int(slots[agent])
        if isinstance(order, Move):
            engine.order(row, slot, Order.MOVE, point=order.goal)
        elif isinstance(order, Attack):
            engine.order(row, slot, Order.ATTACK, target=int(slots[order.target]))
        elif isinstance(order, Heal):
            engine.order(row, slot, Order.HEAL, target=int(slots[order.target]))
        elif isinstance(order, Stop):
            engine.order(row, slot, Order.IDLE)


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of a comparison; None where the recording cannot tell or there is nothing to compare."""

    name: str
    game: float | None
    engine: float | None


@dataclass(frozen=True, kw_only=True)
class Sightings:
    """Recorded positions beside those in the engine, one entry per sighting and copy in which the unit still lives."""

    loop: NDArray[np.int64]
    battle: NDArray[np.int64]
    unit: NDArray[np.int64]
    error: NDArray[np.float64]  # distance between the two, map units
    before_death: NDArray[np.bool_]  # nobody has died yet, neither in the game nor in the engine

    def median_error(self, chosen: NDArray[np.bool_]) -> float | None:
        return float(np.median(self.error[chosen])) if chosen.any() else None


def sightings(battles: Sequence[RecordedBattle], replay: Replay, *, enemies: bool) -> Sightings:
    """Agents are seen by their move orders, enemies by the attack orders on them."""
    rows: set[tuple[int, int, int, float, float]] = set()  # several agents may see an enemy in the same loop
    for index, battle in enumerate(battles):
        if enemies:
            rows |= {(a.loop, index, a.target, *a.position) for a in battle.attacks}
        else:
            rows |= {(m.loop, index, m.agent, *m.position) for m in battle.moves if m.position is not None}
    table = np.array(sorted(rows)).reshape(-1, 5).repeat(replay.copies, axis=0)
    loop, index, unit = table[:, :3].astype(np.int64).T
    copy = np.arange(len(table)) % replay.copies
    battle = index * replay.copies + copy
    here = replay.position[loop // LOOPS_PER_STEP, battle, unit]
    first = np.array([b.death_loop.min() for b in battles])[index]
    first = np.minimum(first, replay.death_loop.min(axis=1)[battle])
    kept = replay.death_loop[battle, unit] > loop
    error = np.hypot(*(here - table[:, 3:]).T)
    return Sightings(
        loop=loop[kept], battle=battle[kept], unit=unit[kept], error=error[kept], before_death=(loop <= first)[kept]
    )


def compare(battles: Sequence[RecordedBattle], replay: Replay) -> list[Row]:
    """Position errors are medians over all sightings, loops of first deaths medians over battles, the rest means."""
    n = battles[0].agents
    game = np.array([battle.death_loop for battle in battles])
    steps = np.array([battle.steps for battle in battles])
    ends = np.repeat(steps * LOOPS_PER_STEP, replay.copies)
    engine = np.where(replay.death_loop <= ends[:, None], replay.death_loop, NEVER)
    rows = []
    for side, enemies in (("agents", False), ("enemies", True)):
        seen = sightings(battles, replay, enemies=enemies)
        early, living = seen.median_error(seen.loop <= EARLY_LOOPS), seen.median_error(seen.before_death)
        rows.append(Row(name=f"{side}: position error, first {EARLY_LOOPS} loops", game=None, engine=early))
        rows.append(Row(name=f"{side}: position error until the first death", game=None, engine=living))
    ordered = [min((attack.loop for attack in battle.attacks), default=NEVER) for battle in battles]
    rows.append(Row(name="first attack order (game), first damage (engine), loop", game=_median(np.array(ordered)),
                    engine=_median(replay.first_damage_loop)))  # fmt: skip
    for side, part in (("enemy", slice(n, None)), ("agent", slice(0, n))):
        rows.append(Row(name=f"first {side} death, loop", game=_median(game[:, part].min(axis=1)),
                        engine=_median(engine[:, part].min(axis=1))))  # fmt: skip
        rows.append(Row(name=f"{side} deaths", game=float((game[:, part] < NEVER).sum(axis=1).mean()),
                        engine=float((engine[:, part] < NEVER).sum(axis=1).mean())))  # fmt: skip
        rows.append(Row(name=f"first dead {side} is the recorded one", game=1.0,
                        engine=_same_first(game[:, part], engine[:, part], replay.copies)))  # fmt: skip
    rows.append(Row(name="pairs of deaths in the recorded order", game=1.0,
                    engine=_same_order(game, engine, replay.copies)))  # fmt: skip
    for name, index in (("won", 0), ("lost", 1), ("undecided when the recorded orders end", 2)):
        rows.append(Row(name=name, game=_outcomes(game, n)[index], engine=_outcomes(engine, n)[index]))
    rows.append(Row(name="length of decided battles, steps", game=_length(game, n), engine=_length(engine, n)))
    return rows


def compare_guided(battles: Sequence[RecordedBattle], replay: Replay) -> list[Row]:
    """When and which agents die while the enemies live and die as recorded."""
    n = battles[0].agents
    game = np.array([battle.death_loop[:n] for battle in battles])
    ends = np.repeat([battle.steps * LOOPS_PER_STEP for battle in battles], replay.copies)
    engine = np.where(replay.death_loop[:, :n] <= ends[:, None], replay.death_loop[:, :n], NEVER)
    rows = [
        Row(name=f"first agent death, loop, {percent} % of battles", game=_quantile(game.min(axis=1), percent),
            engine=_quantile(engine.min(axis=1), percent))
        for percent in (10, 25, 50, 75, 90)
    ]  # fmt: skip
    rows.append(Row(name="agent deaths", game=float((game < NEVER).sum(axis=1).mean()),
                    engine=float((engine < NEVER).sum(axis=1).mean())))  # fmt: skip
    rows.append(Row(name="first dead agent is the recorded one", game=1.0,
                    engine=_same_first(game, engine, replay.copies)))  # fmt: skip
    return rows


def _quantile(loops: NDArray[np.int64], percent: float) -> float | None:
    value = float(np.percentile(loops, percent, method="nearest"))
    return value if value < NEVER else None


def _median(loops: NDArray[np.int64]) -> float | None:
    """None if most battles have no such event."""
    middle = float(np.median(loops))
    return middle if middle < NEVER / 2 else None


def _same_first(game: NDArray[np.int64], engine: NDArray[np.int64], copies: int) -> float | None:
    recorded, here = np.repeat(game, copies, axis=0), engine
    both = (recorded.min(axis=1) < NEVER) & (here.min(axis=1) < NEVER)
    return float((recorded.argmin(axis=1) == here.argmin(axis=1))[both].mean()) if both.any() else None


def _same_order(game: NDArray[np.int64], engine: NDArray[np.int64], copies: int) -> float | None:
    """Share of the pairs of units, dead in both, that died in the recorded order; half is chance."""
    recorded = np.repeat(game, copies, axis=0)
    dead = (recorded < NEVER) & (engine < NEVER)
    earlier, here = recorded[:, :, None] < recorded[:, None, :], engine[:, :, None] < engine[:, None, :]
    pairs = dead[:, :, None] & dead[:, None, :] & earlier & (engine[:, :, None] != engine[:, None, :])
    return float(here[pairs].mean()) if pairs.any() else None


def _outcomes(deaths: NDArray[np.int64], n: int) -> tuple[float, float, float]:
    """Shares of battles won, lost and undecided."""
    lost, won = (deaths[:, :n] < NEVER).all(axis=1), (deaths[:, n:] < NEVER).all(axis=1)
    return float((won & ~lost).mean()), float((lost & ~won).mean()), float((won == lost).mean())


def _length(deaths: NDArray[np.int64], n: int) -> float | None:
    ends = np.minimum(deaths[:, :n].max(axis=1), deaths[:, n:].max(axis=1))
    decided = ends < NEVER
    return float(np.ceil(ends[decided] / LOOPS_PER_STEP).mean()) if decided.any() else None
