"""What the viewer's page can ask, each question with exactly its parameters: a table as JSON, or a packed scene.

    Answers(store).answer("episode", {"group": "bballs/train", "number": "7"})

Everything is read through `Store`, which checks it. Models answer through a `Predictor`, which only the command line
makes: nothing here imports torch."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol

from s2rm_data.core.errors import S2RMError, UsageError
from s2rm_data.core.registry import WORLDS
from s2rm_data.inspection.scene import Addition, Scene, packed
from s2rm_data.inspection.world_inspection import Inspection, inspection_of
from s2rm_data.store import Group, Store

JSON, BYTES = "application/json", "application/octet-stream"
DROPPED = tuple(round(0.1 * n, 1) for n in range(10))  # shares of the views that can be left out
_GROUPS_KEPT = 16  # open at once

Answer = tuple[str, bytes]  # media type, content


class Predictor(Protocol):
    """Models that predict stored sequences. Methods are called by one thread at a time."""

    def runs(self) -> Sequence[Mapping[str, Any]]:
        """Of every run: name, label, world, rolls_out, enclaves (whether it has any)."""

    def prediction(self, run: str, group: Group, number: int, *, index: int, start: int, dropped: float) -> Addition:
        """What a run says one step ahead, or (`start` > 0) when nothing is shown to it from that step on."""

    def enclaves(self, run: str) -> Addition:
        """A layer of maps, one per module."""


class Answers:
    def __init__(self, store: Store, predictor: Predictor | None = None) -> None:
        self._store, self._predictor = store, predictor
        self._computing = threading.Lock()
        self._group = lru_cache(_GROUPS_KEPT)(self._store.__getitem__)
        self._questions: dict[str, tuple[tuple[str, ...], Callable[..., Answer]]] = {
            "catalogue": ((), lambda: _json(self.table())),
            "group": (("group",), lambda group: _json(self.about(group))),
            "episode": (("group", "number"), lambda group, number: (BYTES, packed(self.scene(group, number)))),
            "details": (("group", "number", "index"), self._details),
            "prediction": (("run", "group", "number", "index", "start", "dropped"), self._prediction),
            "enclaves": (("run",), self._enclaves),
        }

    def knows(self, route: str) -> bool:
        return route in self._questions

    def answer(self, route: str, parameters: Mapping[str, str]) -> Answer:
        names, function = self._questions[route]
        if set(parameters) != set(names):
            raise UsageError(f"{route} takes {', '.join(names) or 'nothing'}, not {', '.join(parameters) or 'nothing'}")
        return function(**parameters)

    def get_ready(self) -> None:
        """Open the group that the page shows first and import its world, while the browser loads the page."""
        with contextlib.suppress(S2RMError, StopIteration):  # said when somebody asks
            paths = next(iter(self._groups_by_world().values()))
            inspection_of(self._group(next((path for path in paths if path.endswith("/train")), paths[0])))

    def warm_up(self) -> None:
        """Import what the worlds of the store need, so that no later question waits for it."""
        for name in self._groups_by_world():
            with contextlib.suppress(S2RMError):  # said when somebody asks
                WORLDS.load(name).inspection()

    def table(self) -> dict[str, Any]:
        """The store's worlds with the paths of their groups, and the runs."""
        paths = self._groups_by_world()
        titles = {name: str(WORLDS.load(name).title) if name in WORLDS.names() else name for name in paths}
        worlds = [{"name": name, "title": titles[name], "groups": paths[name]} for name in paths]
        runs = [] if self._predictor is None else list(self._predictor.runs())
        name = self._store.path.name or str(self._store.path)
        return {"store": name, "worlds": worlds, "runs": runs, "dropped": list(DROPPED), "starts": None}

    def about(self, path: str) -> dict[str, Any]:
        group = self._group(path)
        return {"count": len(group), "unit": next(iter(group.arrays.values())).dims[0]}

    def scene(self, group: str, number: str) -> Scene:
        found, inspection, n = self._sequence(group, number)
        return inspection.scene(found, n)

    # -- answers

    def _details(self, group: str, number: str, index: str) -> Answer:
        found, inspection, n = self._sequence(group, number)
        return BYTES, packed(inspection.details(found, n, _whole("index", index)))

    def _prediction(self, run: str, group: str, number: str, index: str, start: str, dropped: str) -> Answer:
        found, _, n = self._sequence(group, number)
        shares = {str(share): share for share in (*DROPPED, 0)}
        if dropped not in shares:
            raise UsageError(f"dropped is {dropped!r}; allowed are {', '.join(map(str, DROPPED))}")
        with self._computing:
            ask, thing, step = self._models(run).prediction, _whole("index", index), _whole("start", start)
            addition = ask(run, found, n, index=thing, start=step, dropped=shares[dropped])
        return BYTES, packed(addition)

    def _enclaves(self, run: str) -> Answer:
        with self._computing:
            return BYTES, packed(self._models(run).enclaves(run))

    # -- what they need

    def _groups_by_world(self) -> dict[str, list[str]]:
        """By the first part of their paths, which is the world's name."""
        worlds: dict[str, list[str]] = {}
        for path in self._store.groups:
            worlds.setdefault(path.partition("/")[0], []).append(path)
        return worlds

    def _sequence(self, path: str, number: str) -> tuple[Group, Inspection, int]:
        group, n = self._group(path), _whole("number", number)
        if n >= len(group):
            raise UsageError(f"number {n} is out of range; {group.path} has 0 to {len(group) - 1}")
        return group, inspection_of(group), n

    def _models(self, run: str) -> Predictor:
        names = [] if self._predictor is None else [str(entry["name"]) for entry in self._predictor.runs()]
        if self._predictor is None or run not in names:
            raise UsageError(f"there is no run {run!r}; there are {', '.join(names) or 'none, name some with --run'}")
        return self._predictor


def _json(value: Any) -> Answer:
    return JSON, json.dumps(value).encode()


def _whole(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 12):
        raise UsageError(f"{name} is {text[:20]!r}; it must be a whole number from 0")
    return int(text)
