"""The StarCraft II splits of a store: `sc2/<scenario>/train`, `.../val`, `.../test`, and how to make any range of them.

Episodes are rolled out in blocks of a fixed grid, because a batch of battles is played faster than the same battles
one by one; images are rendered for the episodes asked for. An episode is a function of its own seed: the block it is
played in does not show in it.

Images are nearly all zeros: of the 12 MB of an episode of 3s5z, a few hundred kilobytes are drawn upon. A canvas wipes
out what was drawn and nothing else, and tells how far into each array the episode reaches."""

# T steps, U units of both sides, N agents, A actions, I radial cells, J angular cells

from __future__ import annotations

import shlex
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from s2rm_data.core.check import between, check_fields, checked, from_json, one_of, to_json
from s2rm_data.core.errors import UsageError
from s2rm_data.core.registry import plugins_used
from s2rm_data.core.schema import ArraySpec, Lent, SplitSource
from s2rm_data.core.seeding import MAX_SEED, sequence_seeds
from s2rm_data.generators.sc2.making.battle_config import CODES, PAPER_TEST, PAPER_TRAINING, Sc2Config, array_specs
from s2rm_data.starcraft import polar, scenarios
from s2rm_data.starcraft.engine import Engine
from s2rm_data.starcraft.polar import DRAWN_FROM, render, terrain_height
from s2rm_data.starcraft.policies import POLICIES, find, is_file, label
from s2rm_data.starcraft.rollout import Battles, Record, members_of, rollout


class Canvas:
    """Draws the images of one episode after the other. `counts`: living units in the agents' views, and how many of
    them lost their cell to another, summed over agents and steps."""

    def __init__(self, config: Sc2Config) -> None:
        armies, grid = scenarios.parse(config.scenario), config.grid
        steps, agents, units = config.steps, armies.agent_count, armies.agent_count + armies.enemy_count
        shape = (steps, agents, grid.radial, grid.angular)
        self._images: dict[str, NDArray[Any]] = {
            "categories": np.zeros((*shape, 3), np.uint8),
            "hecs": np.zeros((*shape, 4), np.float32),
            "height": np.zeros(shape, np.uint8),
        }
        self._drawn = np.zeros(1 + steps * agents * units, np.int64)  # how many cells, and which
        self._length = 0  # of the episode that was drawn last
        self.counts = np.zeros((2, 1), np.int32)
        self._view: dict[str, Any] = {"grid": grid, "terrain": terrain_height(config.scenario)}
        categories, hecs, height = self._images.values()
        self._out = (categories, hecs, height.reshape(steps, agents, -1), *self.counts)

    def draw(self, states: Mapping[str, NDArray[Any]], row: int) -> Lent:
        """What `polar.render` gives for episode `row` of some states. The images are good until the next call."""
        categories, hecs, height = self._images.values()
        cells = self._drawn[1 : 1 + self._drawn[0]]
        categories.reshape(-1, 3)[cells], hecs.reshape(-1, 4)[cells], self._drawn[0] = 0, 0, 0
        height[: self._length] = 0
        self.counts[:] = 0
        self._length = int(states["length"][row])
        polar.draw({name: states[name][row : row + 1] for name in DRAWN_FROM}, self._out, self._drawn, **self._view)
        used = {name: image[: self._length].nbytes for name, image in self._images.items()}
        return Lent({name: image[None] for name, image in self._images.items()}, used)


GENERATOR_VERSION = 3
BLOCK = 200  # episodes rolled out together; about 15 MB of states for 3s5z

SPLITS = ("train", "val", "test")
MAX_EPISODES = 100_000_000
DEFAULT_TRAIN, DEFAULT_VAL = 3000, 300  # the paper trains on 3,000 episodes a scenario
DEFAULT_PAPER_TEST = 1000  # and tests on 1,000 of each scenario it has never seen


@dataclass(frozen=True, kw_only=True)
class Sc2Split(SplitSource):
    config: Sc2Config
    seed: Annotated[int, between(0, MAX_SEED)]
    split: Annotated[str, one_of(*SPLITS)]
    count: Annotated[int, between(1, MAX_EPISODES)]
    first_dim: str = "episode"

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def group(self) -> str:
        return f"sc2/{self.config.scenario}/{self.split}"

    @cached_property
    def arrays(self) -> tuple[ArraySpec, ...]:
        return array_specs(self.config)

    @property
    def settings(self) -> dict[str, Any]:
        network = find(self.config.policy).network
        return {
            "generator": "sc2",
            "generator_version": GENERATOR_VERSION,
            "backend": "engine",
            "config": to_json(self.config) | {"policy": label(self.config.policy)},
            "policies": list(members_of(self.config.policy)),
            "seed": self.seed,
            "split": self.split,
            # what tells one trained policy from another, wherever its file lies
            **({"policy_sha256": network.digest} if network else {}),
        }

    @property
    def attributes(self) -> dict[str, Any]:
        players = {self.config.policy, *members_of(self.config.policy)}
        plugins = plugins_used(*((POLICIES, name) for name in sorted(players)))
        return {
            "command": self.command,
            "policies": list(members_of(self.config.policy)),
            **CODES,
            "radius": self.config.radius,
            "terrain": scenarios.parse(self.config.scenario).terrain,
            **({"plugins": plugins} if plugins else {}),
        }

    @property
    def command(self) -> str:
        c = self.config
        counts = " ".join(f"--{name} {self.count if name == self.split else 0}" for name in ("train", "val", "test"))
        return (
            f"s2rm-data sc2 --scenario {c.scenario} {counts} --steps {c.steps} --policy {shlex.quote(c.policy)} "
            f"--epsilon {c.epsilon} --enemy-order {c.enemy_order} --radial {c.radial} --angular {c.angular} "
            f"--radius {c.radius} --seed {self.seed}"
        )

    def produce(self, start: int, stop: int) -> dict[str, NDArray[Any]]:
        record = self._episodes(start, stop)
        values = record | render(record, grid=self.config.grid, terrain=terrain_height(self.config.scenario))
        return {spec.name: values[spec.name] for spec in self.arrays}

    def _episodes(self, start: int, stop: int) -> Record:
        parts = []
        for block in range(start // BLOCK, (stop - 1) // BLOCK + 1):
            first = block * BLOCK
            rows = slice(max(start - first, 0), min(stop - first, BLOCK))
            parts.append({name: values[rows] for name, values in self._block(block).items()})
        return parts[0] if len(parts) == 1 else {n: np.concatenate([p[n] for p in parts]) for n in parts[0]}

    def lend(self, start: int, stop: int) -> Iterator[Lent]:
        """The states of a block at once, its images one by one; see `SplitSource.lend`."""
        canvas = self._canvas()
        for block in range(start // BLOCK, (stop - 1) // BLOCK + 1):
            first, record = block * BLOCK, self._block(block)
            rows = range(max(start - first, 0), min(stop - first, BLOCK))
            stored = [spec.name for spec in self.arrays if spec.name in record]
            yield Lent({name: record[name][rows.start : rows.stop] for name in stored}, {})
            counts = np.empty((2, len(rows)), np.int32)
            for k, row in enumerate(rows):
                lent = canvas.draw(record, row)
                counts[:, k] = canvas.counts[:, 0]
                yield lent
            del record  # before the next block is played
            yield Lent({"units_in_view": counts[0], "units_lost": counts[1]}, {})

    def _canvas(self) -> Canvas:
        """A thread keeps its last one."""
        key = (self.config.scenario, self.config.steps, self.config.grid)
        if _recent.canvas is None or _recent.canvas_key != key:
            _recent.canvas, _recent.canvas_key = Canvas(self.config), key
        return _recent.canvas

    def _block(self, block: int) -> Record:
        """The roll-out of a block; a thread keeps its last one, since it asks for its episodes in order."""
        key = (self, block)
        if _recent.record is None or _recent.key != key:
            stop = min((block + 1) * BLOCK, self.count)
            _recent.key = _recent.record = None  # the old block goes before the new one comes
            _recent.record = play(self.config, sequence_seeds(self.seed, self.group, block * BLOCK, stop))
            _recent.key = key
        return _recent.record


class _Recent(threading.local):
    key: tuple[Sc2Split, int] | None = None
    record: Record | None = None
    canvas_key: tuple[Any, ...] | None = None
    canvas: Canvas | None = None


_recent = _Recent()


def play(config: Sc2Config, seeds: NDArray[np.uint64], battles: Battles | None = None) -> Record:
    """Episodes of these seeds, without images; on the engine unless battles are given."""
    scenario, epsilon = scenarios.parse(config.scenario), float(config.epsilon or 0.0)
    battles = battles or Engine(scenario, seeds, enemy_order=config.enemy_order)
    return rollout(battles, scenario, policy=config.policy, epsilon=epsilon, seeds=seeds, steps=config.steps)


def split_from_settings(settings: dict[str, Any], count: int) -> Sc2Split:
    backend = settings["backend"]
    if backend != "engine":
        raise UsageError(f"its battles cannot be made again exactly: they were not played on the engine ({backend})")
    if is_file(settings["config"]["policy"]):
        _require_file(settings["config"]["policy"], settings["policy_sha256"])
    config = from_json(Sc2Config, settings["config"])
    return Sc2Split(config=config, seed=settings["seed"], split=settings["split"], count=count)


def _require_file(policy: str, digest: str) -> None:
    """A `UsageError` unless the policy's file, as it was when it played, is in the current folder."""
    wanted = f"it was played by the policy file {policy} (SHA-256 {digest})"
    if not Path(policy).is_file():
        raise UsageError(f"{wanted}, which is not in this folder; put it here and try again")
    network = find(policy).network
    if network is None or network.digest != digest:
        raise UsageError(
            f"{wanted}; the file of that name in this folder is another one (SHA-256 {network and network.digest}): "
            "put the one that played here and try again"
        )


def plan(
    *,
    scenario: Sequence[str] = (),
    preset: str | None = None,
    train: int | None = None,
    val: int | None = None,
    test: int | None = None,
    seed: int = 0,
    **options: Any,
) -> list[Sc2Split]:
    """The splits of a command. A scenario gets `train` and `val`, and `test` if asked for; the preset `paper` trains on
    its training scenarios and tests on those it never trains on. None is the default count, 0 leaves the split out."""
    if preset not in (None, "paper"):
        raise UsageError(f"no preset {preset!r}; the only one is 'paper'")
    if preset and scenario:
        raise UsageError("--preset paper brings its own scenarios; leave out either --preset or --scenario")
    names = list(dict.fromkeys(scenario)) if not preset else [*PAPER_TRAINING, *PAPER_TEST]
    if not names:
        raise UsageError("no scenario given; name one, as in --scenario 3s5z, or take --preset paper")
    splits = []
    for name in names:
        config = Sc2Config(scenario=name, **options)
        for split, count in _counts(name, preset, train, val, test).items():
            if checked(split, count, Annotated[int, between(0, MAX_EPISODES)]):
                splits.append(Sc2Split(config=config, seed=seed, split=split, count=count))
    if not splits:
        raise UsageError("nothing to make: all counts are 0; give --train, --val or --test a number of episodes")
    return splits


def _counts(name: str, preset: str | None, train: int | None, val: int | None, test: int | None) -> dict[str, int]:
    if preset and name in PAPER_TEST:
        return {"test": DEFAULT_PAPER_TEST if test is None else test}
    counts = {"train": DEFAULT_TRAIN if train is None else train, "val": DEFAULT_VAL if val is None else val}
    return counts if preset else counts | {"test": test or 0}
