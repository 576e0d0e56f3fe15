"""StarCraft II battles as batches: agents' polar images as views, the same agents' next images as targets.

The compact unit states are held in memory and the images of a window are drawn from them when it is asked for, of the
size that the model wants: drawn as they are stored, they are the stored ones value for value. That measures faster than
reading and decompressing those, and windows cost only the steps they have. Groups with different numbers of agents are
padded to the largest; the padding is masked."""

# B episodes, T steps (T + 1 records), N agents, U units, I x J polar cells, F records per episode

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from s2rm_data.core.errors import UsageError
from s2rm_data.generators.sc2.learning.battle_scores import UNIT_CHANNELS, PolarTargets, assemble, polar_views
from s2rm_data.generators.sc2.making.battle_config import episode_config
from s2rm_data.learning.batch import Batch
from s2rm_data.learning.cached import CachedSequences, has_cache, shard_units
from s2rm_data.learning.windows import Request, check_fraction, window_steps
from s2rm_data.learning.world_learning import Source
from s2rm_data.starcraft.polar import PolarGrid, render, terrain_height
from s2rm_data.starcraft.terrain_maps import SIZE as MAP_SIZE
from s2rm_data.store import Group

STATES = (
    "unit_position", "unit_health", "unit_energy", "unit_cooldown", "unit_shield",
    "action", "agent_position", "agent_alive",
)  # fmt: skip
HEIGHT_SCALE = float(np.float32(1 / 255))  # attribute `scale` of the stored array `height`: SMAC's height 0..1


@dataclass(frozen=True, kw_only=True)
class BattleRequest(Request):
    episode: Any  # (B,) number in the source
    start: Any  # (B,) first record of the window
    keep: Any  # (B, T + 1, N) bool, False where an agent is dropped: it gives no view, but still queries
    ask: Any  # (B, T + 1, N) bool, False where an agent is not asked what it sees, though it may exist

    @property
    def view_keep(self) -> Any:
        return self.keep


class Records(NamedTuple):
    """A window as it is rendered and moved; T + 1 records."""

    categories: Any  # (B, T + 1, N, I, J, 3) uint8: friendly, unit type, action
    hecs: Any  # (B, T + 1, N, I, J, 4) float32
    height: Any  # (B, T + 1, N, I, J) uint8
    position: Any  # (B, T + 1, N, 2) float32
    alive: Any  # (B, T + 1, N) bool
    keep: Any  # (B, T + 1, N) bool
    ask: Any  # (B, T + 1, N) bool
    counts: Any  # fields of `Batch`, known before anything is moved


class BattleGroup:
    """One scenario's episodes: states in memory, or in the store's cache if it has one; images on demand."""

    def __init__(
        self, group: Group, limit: int | None, image_size: Sequence[int] | None = None, cell_size: float | None = None
    ) -> None:
        self.path = group.path
        self._group = group
        config = episode_config(group.settings["config"])
        # what is not given is as stored, with the same field of view if it can be
        radial, angular = image_size or (config.radial, config.angular)
        radius = config.radius if cell_size is None else round(radial * cell_size, 9)  # 10 x 0.9 is to be 9
        self.grid = PolarGrid(radial=radial, angular=angular, radius=radius)
        self.terrain = terrain_height(config.scenario)
        self.states = {name: group[name][:limit] for name in STATES} if not has_cache(group) else None
        self.unit_type, self.length = group["unit_type"][:limit], group["length"][:limit].astype(np.int64)
        self.records, self.agents = group["action"].shape[1:]
        if self.unit_type.max() > UNIT_CHANNELS:
            raise UsageError(
                f"{group.path} has units of type {self.unit_type.max()}; models know the types 1 to {UNIT_CHANNELS}"
            )

    def window(self, episode: NDArray[np.int64], start: NDArray[np.int64], steps: int) -> dict[str, NDArray[Any]]:
        at = start[:, None] + np.arange(steps + 1)
        if self.states is not None:
            states = {name: values[episode[:, None], at] for name, values in self.states.items()}
        else:
            rows = np.arange(len(episode))[:, None]
            states = {name: self._group[name][episode][rows, at] for name in STATES}
        length = np.clip(self.length[episode] - start, 0, steps + 1)
        states |= {"unit_type": self.unit_type[episode], "length": length}
        return states | render(states, grid=self.grid, terrain=self.terrain)


class BattleSource(Source):
    """The episodes of one or several scenarios; `steps` is T, None takes whole episodes.

    `image_size` (I, J) and `cell_size`, of a radial cell in map units: of the images; None: as they are stored."""

    def __init__(
        self,
        groups: Sequence[Group],
        *,
        steps: int | None = None,
        next_views: bool = False,
        device: torch.device | str = "cpu",
        limit: int | None = None,
        query_share: float = 1.0,
        image_size: Sequence[int] | None = None,
        cell_size: float | None = None,
    ) -> None:
        self.groups = [group.path for group in groups]
        self.members = [BattleGroup(group, limit, image_size, cell_size) for group in groups]
        grids = {member.grid for member in self.members}
        if len(grids) != 1:
            raise UsageError(
                f"{', '.join(self.groups)} are stored with unlike images ({', '.join(map(str, grids))}); say how they "
                "are to be drawn, as in --set image_size=[8,24] --set cell_size=1.125"
            )
        (self.grid,) = grids
        self.steps = window_steps(steps, min(m.records for m in self.members), ", ".join(self.groups))
        self.agents = max(m.agents for m in self.members)
        self.next_views, self.device = next_views, torch.device(device)
        self.units = shard_units(groups, limit)
        self.cached = CachedSequences(groups, STATES, limit) if has_cache(groups[0]) else None
        self.query_share = query_share
        self._first = np.cumsum([0, *(len(m.length) for m in self.members)])  # of each member's episodes in the source

    def __len__(self) -> int:
        return int(self._first[-1])

    def sample(self, random: np.random.Generator, sequence: NDArray[np.int64]) -> BattleRequest:
        """Windows that begin anywhere, but run past an episode's end only where it is shorter than they are; a random
        `query_share` of the agents is asked what it sees."""
        lengths = np.concatenate([member.length for member in self.members])[sequence]
        latest = np.maximum(lengths - 1 - self.steps, 0)
        request = self._request(sequence, random.integers(0, latest + 1))
        if self.query_share == 1.0:
            return request
        return request.replaced(ask=random.random(request.ask.shape) < self.query_share)

    def sample_fixed(self, random: np.random.Generator, sequence: NDArray[np.int64]) -> BattleRequest:
        """Windows that begin with the episode; nothing about them is random."""
        return self._request(sequence, np.zeros(len(sequence), np.int64))

    def _request(self, sequence: NDArray[np.int64], start: NDArray[np.int64]) -> BattleRequest:
        keep = np.ones((len(sequence), self.steps + 1, self.agents), np.bool_)
        return BattleRequest(episode=sequence, start=start, keep=keep, ask=np.ones_like(keep))

    def drop(self, random: np.random.Generator, request: BattleRequest, fraction: float) -> BattleRequest:
        """Each agent is left out with this probability, at each step anew, independently of all others.

        Assumption: the paper gives 'the probability that an agent will not supply information', not for how long."""
        check_fraction(fraction)
        return request.replaced(keep=request.keep & (random.random(request.keep.shape) >= fraction))

    def prepare(self, request: BattleRequest) -> Records | Batch:
        """What can be done ahead of time in another thread: on a CPU everything, else pinned tensors."""
        *arrays, counts = self._records(request)
        tensors = [torch.from_numpy(values) for values in arrays]
        if self.device.type == "cpu":
            return self._batch(Records._make([*tensors, counts]))
        return Records._make([*(t.pin_memory() if self.device.type == "cuda" else t for t in tensors), counts])

    def finish(self, prepared: Records | Batch) -> Batch:
        """The batch, on the source's device; on a GPU nothing here waits for it."""
        if isinstance(prepared, Batch):
            return prepared
        *tensors, counts = prepared
        return self._batch(Records._make([*(t.to(self.device, non_blocking=True) for t in tensors), counts]))

    def _records(self, request: BattleRequest) -> Records:
        batch, shape = len(request.episode), (self.steps + 1, self.agents)
        image = (batch, *shape, self.grid.radial, self.grid.angular)
        out = Records(
            np.zeros((*image, 3), np.uint8),
            np.zeros((*image, 4), np.float32),
            np.zeros(image, np.uint8),
            np.zeros((batch, *shape, 2), np.float32),
            np.zeros((batch, *shape), np.bool_),
            request.keep,
            request.ask,
            {},
        )
        member = np.searchsorted(self._first, request.episode, side="right") - 1
        number = request.episode - self._first[member]
        for m in np.unique(member):
            rows = np.flatnonzero(member == m)
            window = self.members[m].window(number[rows], request.start[rows], self.steps)
            found = (window[name] for name in ("categories", "hecs", "height", "agent_position", "agent_alive"))
            for padded, values in zip(out, found, strict=False):
                padded[rows, :, : self.members[m].agents] = values
        seen, asked = out.alive & out.keep, out.alive & out.ask
        counts = {"view_count": seen[:, :-1], "next_view_count": seen[:, 1:], "query_count": asked[:, 1:]}
        return out._replace(counts={name: int(mask.sum()) for name, mask in counts.items()})

    def _batch(self, records: Records) -> Batch:
        counts: dict[str, Any] = records.counts
        friendly, unit_type, _ = records.categories.unbind(-1)
        hecs = records.hecs.movedim(-1, -3)
        views = self._views(records)
        mask, position = records.alive & records.keep, records.position
        return Batch(
            **Batch.views_of(views, position, mask, steps=self.steps, next_views=self.next_views),
            query_position=position[:, 1:],
            query_mask=(records.alive & records.ask)[:, 1:],
            targets=PolarTargets(friendly[:, 1:], unit_type[:, 1:], hecs[:, 1:]),
            **counts,
        )

    def _views(self, records: Records) -> Tensor:
        """(B, T or T + 1, N, 24, I, J)."""
        seen = slice(0, self.steps + int(self.next_views))
        categories, hecs, height = records.categories[:, seen], records.hecs[:, seen], records.height[:, seen]
        if self.device.type == "cpu":
            return assemble(categories, hecs, height, HEIGHT_SCALE)
        friendly, unit_type, action = categories.unbind(-1)
        return polar_views(friendly, unit_type, hecs.movedim(-1, -3), height * HEIGHT_SCALE, action)

    @property
    def image_size(self) -> tuple[int, int]:
        return self.grid.radial, self.grid.angular

    @property
    def cell_size(self) -> float:
        return self.grid.rho

    @property
    def arena_size(self) -> tuple[float, float]:
        return float(MAP_SIZE), float(MAP_SIZE)
