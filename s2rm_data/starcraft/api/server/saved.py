"""Replays that the server saved, played again: the battle's seed and all that came from outside give the same battle.

    record = play_again(read_replay(Path("3m.SC2Replay")))

The record has the arrays of a stored episode but the images. Orders that are not SMAC's become the nearest of its
actions: a move to any point is a move along the larger difference."""

# T steps, U units of both sides (agents first), N agents

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from s2rm_data.core.errors import UsageError
from s2rm_data.core.read import read_regular
from s2rm_data.starcraft.api.protocol import PLAYER
from s2rm_data.starcraft.api.server.game import CREATE, KILL, MOST_LOGGED, REPLAY_FORMAT, Command, Event, Game
from s2rm_data.starcraft.codes import ORDERS, STATS, Action, Order
from s2rm_data.starcraft.rollout import NOBODY, Record, blank_after_end, blank_record
from s2rm_data.starcraft.rules import action_along
from s2rm_data.starcraft.units import LOOPS_PER_STEP

MOST_STEPS = 2000  # drawn of one battle: four times the longest of SMAC's
_MOST_NBYTES = 64 << 20


@dataclass(frozen=True, kw_only=True)
class SavedBattle:
    map_name: str
    enemy_order: str
    seed: int
    begin_loop: int
    loop: int  # the last
    first_tag: int
    events: tuple[Event, ...]


def is_replay(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(64).lstrip().startswith(b'{"format": "s2rm-data battle')


def read_replay(path: Path) -> SavedBattle:
    """A file that `save_replay` has written; one that is anything else is an error that says what."""
    try:
        content = json.loads(read_regular(path, _MOST_NBYTES))
        if content["format"] != REPLAY_FORMAT:
            raise UsageError(
                f"{path} is of the format {content['format']!r}; this version reads {REPLAY_FORMAT!r}, and would "
                "play the battle by other rules: play and save it anew"
            )
        saved = SavedBattle(
            map_name=str(content["map"]),
            enemy_order=str(content["enemy_order"]),
            seed=int(content["seed"]),
            begin_loop=int(content["begin_loop"]),
            loop=int(content["loop"]),
            first_tag=int(content["first_tag"]),
            events=tuple(_event(entry) for entry in content["events"]),
        )
        whole = bool(content["whole"])
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, IndexError, OverflowError, RecursionError) as error:
        raise UsageError(
            f"{path} cannot be read as a battle saved by s2rm-data sc2-server ({type(error).__name__}: {error})"
        ) from None
    if not whole:
        raise UsageError(
            f"{path} holds only the last {MOST_LOGGED:,} orders of its battle, which cannot be played again"
        )
    return saved


def _event(entry: dict[str, Any]) -> Event:
    goal = entry["goal"]
    if entry["what"] not in (*ORDERS, CREATE, KILL):
        raise ValueError(f"an event is {entry['what']!r}")
    point = (float(goal[0]), float(goal[1])) if goal is not None else None
    return Event(
        int(entry["loop"]), str(entry["what"]), int(entry["tag"]), int(entry["target"]), point, int(entry["owner"])
    )


class _Seen(NamedTuple):
    """A living unit at one moment; `target` a tag or 0."""

    place: tuple[float, float]
    stats: list[float]  # health, shield, energy, cooldown
    order: int = Order.IDLE
    target: int = 0
    goal: tuple[float, float] = (0.0, 0.0)


class _Player:
    """Plays a saved battle; `kinds` are the types of all units it has seen, by tag, agents apart from enemies."""

    def __init__(self, saved: SavedBattle) -> None:
        created = next((event.tag for event in saved.events if event.what == CREATE), 1)
        tags = itertools.count(saved.first_tag or created)
        order = saved.enemy_order
        self.game = Game(map_name=saved.map_name, seed=saved.seed, tags=tags, loop=saved.begin_loop, enemy_order=order)
        self.kinds: tuple[dict[int, int], dict[int, int]] = ({}, {})
        self._events = list(reversed(saved.events))

    def run_to(self, loop: int) -> None:
        """What was ordered before that loop, and the loops up to it."""
        while self.game.loop < loop and (self.game.alive or self._events):
            self.obey()
            next_loop = min(self._events[-1].loop, loop) if self._events else loop
            if next_loop > self.game.loop:
                self.game.run(next_loop - self.game.loop)
            if not self.game.alive and not (self.game.flat and self._events):
                return  # on another map, the next loop would begin the next battle

    def obey(self) -> None:
        while self._events and self._events[-1].loop <= self.game.loop:
            event = self._events.pop()
            slot = self.game.slot(event.tag)
            if event.what == CREATE and event.goal is not None:
                self.game.create(event.target, event.owner, event.goal)
            elif event.what == KILL:
                self.game.kill([event.tag])
            elif slot is not None:
                kind = ORDERS.index(event.what)
                self.game.obey(slot, Command(kind=kind, target=event.target, goal=event.goal))

    def look(self) -> dict[int, _Seen]:
        game, seen, orders = self.game, self.game.arena.snapshot(), self.game.arena.orders()
        units = {}
        for slot in game.alive:
            tag, target = game.tag_of[slot], int(orders.target[0, slot])
            self.kinds[0 if game.owner(slot) == PLAYER else 1][tag] = int(game.arena.unit_type[slot])
            (x, y), (goal_x, goal_y) = seen.position[0, slot].tolist(), orders.point[0, slot].tolist()
            units[tag] = _Seen(
                place=(x, y),
                stats=[float(getattr(seen, field)[0, slot]) for field in STATS.values()],
                order=int(orders.kind[0, slot]),
                target=game.tag_of[target] if target >= 0 else 0,
                goal=(goal_x, goal_y),
            )
        return units


def play_again(saved: SavedBattle) -> Record:
    """The battle as an episode, each array (1, ...): what there was every eight loops, and what was then ordered."""
    player = _Player(saved)
    ordered = (event.loop for event in saved.events if event.what not in (CREATE, KILL))
    first = next(ordered, saved.begin_loop)
    loops = range(first, max(saved.loop, first + 1), LOOPS_PER_STEP)
    if len(loops) > MOST_STEPS:
        raise UsageError(f"the battle has {len(loops):,} steps; at most {MOST_STEPS:,} are drawn")
    frames = []
    for loop in loops:
        player.run_to(loop)
        before = player.look()
        player.obey()
        after = player.look()
        if not before:
            break
        told = {tag: after.get(tag, unit) for tag, unit in before.items()}  # what was ordered at this moment
        frames.append({tag: told[tag]._replace(place=unit.place, stats=unit.stats) for tag, unit in before.items()})
    player.run_to(saved.loop)
    if not frames:
        raise UsageError("the replay holds a battle without units: nothing can be drawn")
    return _record(frames, player, saved.seed)


def _record(frames: list[dict[int, _Seen]], player: _Player, seed: int) -> Record:
    tags = [*player.kinds[0], *player.kinds[1]]
    slots, N, T, U = {tag: slot for slot, tag in enumerate(tags)}, len(player.kinds[0]), len(frames), len(tags)
    kinds = np.array([[*player.kinds[0].values(), *player.kinds[1].values()]], dtype=np.uint8)
    record = blank_record(kinds, N, Action.ATTACK + max(N, U - N), T)
    record["length"], record["seed"] = np.array([T], np.int16), np.array([seed], np.uint64)
    record["outcome"] = np.array([player.game.standing()], np.uint8)
    for step, frame in enumerate(frames):
        for tag, unit in frame.items():
            slot, target = slots[tag], slots.get(unit.target, NOBODY)
            record["unit_position"][0, step, slot], record["unit_goal"][0, step, slot] = unit.place, unit.goal
            record["unit_order"][0, step, slot], record["unit_target"][0, step, slot] = unit.order, target
            for name, value in zip(STATS, unit.stats, strict=True):
                record[name][0, step, slot] = value
            if slot < N:
                record["action"][0, step, slot] = _action(unit, target, N)
    blank_after_end(record)
    return record


def _action(unit: _Seen, target: int, agents: int) -> int:
    if target >= 0 and unit.order != Order.MOVE:
        return Action.ATTACK + (target if unit.order == Order.HEAL else max(target - agents, 0))
    if unit.order not in (Order.MOVE, Order.ATTACK_MOVE):
        return Action.STOP
    return action_along(unit.goal[0] - unit.place[0], unit.goal[1] - unit.place[1])
