"""SMACv2's generated battles: armies drawn by weight and places drawn on an open map, anew for every episode.

`10gen_protoss_5_vs_5`: five agents against five enemies of one race. Facts are those of smacv2 (its example configs,
`distributions.py` and the script inside its map 32x32_flat):

- Every agent's type is drawn by weight; an army of nothing but the types in `never_alone` is drawn again. The enemies
  are the agents' army; more enemies are drawn the same way, fewer are the first of them.
- With equal chances an episode is `reflect` (agents anywhere in the west half but the strip of one unit at its edge,
  enemies at their mirror images; more enemies anywhere in the east half) or `surrounded` (agents at the centre, enemies
  in one to four groups, each at a random distance on a diagonal of its own).
- Units created at a place that is taken stand beside it (`placing`).

SMACv2's other distributions (`all_teams`, other weights, one layout alone) are fields of `Generated`; an environment's
`capability_config` sets them. The draws themselves are in `armies`; this file is cheap to import."""

# B battles, U units of both sides (agents first), K unit types of a race

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from s2rm_data.core.errors import UsageError, did_you_mean
from s2rm_data.starcraft.units import NUMBER_OF

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PREFIX = "10gen_"
LIMIT_STEPS = 200
TERRAIN = "open"  # 32x32_flat has the cell flags and heights of 3s_vs_3z
MOST_UNITS = 50  # a side: what stands in one spot still finds room


@dataclass(frozen=True, kw_only=True)
class Race:
    """Unit types by name, their chances, and which of them cannot be a whole army."""

    weights: dict[str, float]
    never_alone: tuple[str, ...] = ()


RACES = {
    "protoss": Race(weights={"stalker": 0.45, "zealot": 0.45, "colossus": 0.1}),
    "terran": Race(weights={"marine": 0.45, "marauder": 0.45, "medivac": 0.1}, never_alone=("medivac",)),
    "zerg": Race(weights={"zergling": 0.45, "baneling": 0.1, "hydralisk": 0.45}, never_alone=("baneling",)),
}
# smacv2's get_unit_type_id
TYPE_ORDER = {
    "protoss": ("stalker", "zealot", "colossus"),
    "terran": ("marine", "marauder", "medivac"),
    "zerg": ("zergling", "hydralisk", "baneling"),
}
NAMES = tuple(f"{PREFIX}{race}_{size}" for race in RACES for size in ("5_vs_5", "10_vs_10"))


LAYOUTS = {"surrounded_and_reflect": 0.5, "reflect_position": 1.0, "surrounded": 0.0}  # the share of `reflect`
Unit = tuple[str, float, float]  # type, map coordinates


@dataclass(frozen=True, kw_only=True)
class Generated:
    """How the battles of a generated scenario begin.

    `weights` (names and chances) and `never_alone` replace those of the race; `all_teams` draws one of all armies that
    its types make, each with equal chances. `reflected_share` of the episodes are `reflect`, the others `surrounded`;
    None puts the armies at two points. Places are drawn on a map of `size`. `given` are units, agents first, which are
    not drawn at all."""

    race: str
    agents: int
    enemies: int
    weights: tuple[tuple[str, float], ...] | None = None
    never_alone: tuple[str, ...] | None = None
    all_teams: bool = False
    reflected_share: float | None = LAYOUTS["surrounded_and_reflect"]
    size: tuple[float, float] = (32.0, 32.0)  # the whole map
    given: tuple[Unit, ...] = ()

    @property
    def type_order(self) -> tuple[int, ...]:
        """Unit types as smacv2 numbers them in observations."""
        return tuple(NUMBER_OF[name] for name in TYPE_ORDER[self.race])

    @property
    def unit_types(self) -> tuple[int, ...]:
        return tuple(NUMBER_OF[name] for name in RACES[self.race].weights)

    @property
    def chances(self) -> dict[str, float]:
        return RACES[self.race].weights if self.weights is None else dict(self.weights)

    @property
    def exceptions(self) -> tuple[str, ...]:
        return RACES[self.race].never_alone if self.never_alone is None else self.never_alone

    def draw(self, seeds: NDArray[np.uint64]) -> tuple[NDArray[np.uint8], NDArray[np.float64]]:
        """See `armies.draw`."""
        from s2rm_data.starcraft.armies import draw  # compiled code, which names and lists do not need

        return draw(self, seeds)


def parse_generated(name: str) -> Generated:
    """The armies of a name that begins with `10gen_`."""
    match = re.fullmatch(r"10gen_([a-z]+)_([0-9]{1,4})_vs_([0-9]{1,4})", name)
    form = f"{PREFIX}RACE_N_vs_M, as in 10gen_protoss_5_vs_5, with RACE one of {', '.join(RACES)}"
    if match is None:
        raise UsageError(f"no scenario {name!r}{did_you_mean(name, NAMES, f'a generated one is spelled {form}')}")
    race, agents, enemies = match[1], int(match[2]), int(match[3])
    if race not in RACES:
        spelled = did_you_mean(race, RACES, f"such a scenario is spelled {form}")
        raise UsageError(f"scenario {name!r}: no race {race!r}{spelled}")
    for count, whose in ((agents, "agents"), (enemies, "enemies")):
        if not 1 <= count <= MOST_UNITS:
            raise UsageError(f"scenario {name!r} has {count} {whose}; allowed are 1 to {MOST_UNITS}")
    return Generated(race=race, agents=agents, enemies=enemies)
