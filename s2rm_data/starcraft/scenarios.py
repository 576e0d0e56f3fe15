"""Scenarios: who fights whom, where, for how many steps, and what the enemies are ordered to do.

A scenario is a name: one of SMAC's 23 maps, or anything the grammar spells. An army is written as numbers and letters
(`1c3s5z`: one colossus, three stalkers, five zealots); `A_vs_B` gives the enemies an army of their own, else both
sides get the same. Letters: m marine, mr marauder, mv medivac, s stalker, z zealot, c colossus, h hydralisk, zg
zergling, b baneling, and for enemies only sc spine crawler. `10gen_protoss_5_vs_5` is one of SMACv2's, whose armies
and places are drawn anew for every episode (`generated`).

Armies, spawn points, orders and terrain of SMAC's maps are those of the map files' scripts; limits are SMAC's registry.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache

from s2rm_data.core.errors import UsageError, did_you_mean
from s2rm_data.starcraft import generated
from s2rm_data.starcraft.codes import Order
from s2rm_data.starcraft.generated import Generated
from s2rm_data.starcraft.units import NUMBER_OF_LETTERS, UNIT_TYPES

Point = tuple[float, float]

_WEST: Point = (9.0, 16.0)  # team 1's spawn point on the maps with two armies face to face
_EAST: Point = (23.0, 16.0)
# Assumption: a scenario that is not a SMAC map is played on 3s5z's terrain with its spawn points, and gets the limit
# SMAC gives to mirror maps of as many agents (2s3z 120 up to five, 3s5z 150 up to eight, 1c3s5z 180 above).
_LIMITS = ((5, 120), (8, 150), (10**9, 180))


@dataclass(frozen=True, kw_only=True)
class Squad:
    """Units of one type, created at one point and pushed apart."""

    unit_type: int
    count: int
    spawn: Point


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """`order` is what the map's script orders the enemies on spawn: ATTACK_MOVE to a point drawn evenly between the
    two of `order_segment`, HUNT (attack the agents wherever they are) or IDLE (stand and attack what comes into
    reach). A generated scenario has no squads; its enemies are idle and under the map's script (engine/step.py)."""

    name: str
    agents: tuple[Squad, ...]
    enemies: tuple[Squad, ...]
    limit_steps: int
    terrain: str = "band"
    order: Order = Order.ATTACK_MOVE
    order_segment: tuple[Point, Point] = (_WEST, _WEST)
    generated: Generated | None = None

    @property
    def agent_count(self) -> int:
        return self.generated.agents if self.generated else sum(squad.count for squad in self.agents)

    @property
    def enemy_count(self) -> int:
        return self.generated.enemies if self.generated else sum(squad.count for squad in self.enemies)

    @property
    def agent_types(self) -> tuple[int, ...]:
        return self.generated.unit_types if self.generated else tuple(squad.unit_type for squad in self.agents)

    @property
    def enemy_types(self) -> tuple[int, ...]:
        return self.generated.unit_types if self.generated else tuple(squad.unit_type for squad in self.enemies)

    @property
    def heals(self) -> bool:
        """Whether an agent may be a healer, whose actions aim at agents."""
        return any(UNIT_TYPES[number].is_healer for number in self.agent_types)

    @property
    def has_healers(self) -> bool:
        return self.heals or any(UNIT_TYPES[number].is_healer for number in self.enemy_types)


Army = str | tuple[tuple[str, Point], ...]  # a spelling at the side's own point, or spellings with theirs


def _army(army: Army, spawn: Point) -> tuple[Squad, ...]:
    parts = ((army, spawn),) if isinstance(army, str) else army
    return tuple(
        Squad(unit_type=number, count=count, spawn=point)
        for spelling, point in parts
        for number, count in _tokens(spelling)
    )


def _tokens(spelling: str) -> list[tuple[int, int]]:
    """(unit type, count) pairs of a spelled army; empty if it is not one."""
    letters = "|".join(sorted(NUMBER_OF_LETTERS, key=len, reverse=True))
    if not re.fullmatch(rf"(?:[0-9]{{1,4}}(?:{letters}))+", spelling):
        return []
    return [(NUMBER_OF_LETTERS[kind], int(count)) for count, kind in re.findall(rf"([0-9]+)({letters})", spelling)]


def _scenario(
    name: str,
    agents: Army,
    enemies: Army,
    limit_steps: int,
    terrain: str = "band",
    order: Order = Order.ATTACK_MOVE,
    segment: tuple[Point, Point] = (_WEST, _WEST),
) -> Scenario:
    """Armies that are spelled alone stand face to face."""
    ours, theirs = _army(agents, _WEST), _army(enemies, _EAST)
    return Scenario(
        name=name, agents=ours, enemies=theirs, limit_steps=limit_steps, terrain=terrain, order=order,
        order_segment=segment,
    )  # fmt: skip


_CORNER: Point = (27.91, 28.24)
_FAR_CORNER: Point = (4.47, 4.3298)
_PIT: Point = (14.5998, 9.49)
_MOVE = Order.ATTACK_MOVE

_SMAC_MAPS = (
    _scenario("3m", "3m", "3m", 60),
    _scenario("8m", "8m", "8m", 120),
    _scenario("25m", "25m", "25m", 150),
    _scenario("5m_vs_6m", "5m", "6m", 70),
    _scenario("8m_vs_9m", "8m", "9m", 120),
    _scenario("10m_vs_11m", "10m", "11m", 150),
    _scenario("27m_vs_30m", "27m", "30m", 180),
    _scenario("MMM", "7m2mr1mv", "7m2mr1mv", 150),
    _scenario("MMM2", "7m2mr1mv", "8m3mr1mv", 180),
    _scenario("2s3z", "2s3z", "2s3z", 120),
    _scenario("3s5z", "3s5z", "3s5z", 150),
    _scenario("3s5z_vs_3s6z", "3s5z", "3s6z", 170),
    _scenario("3s_vs_3z", "3s", "3z", 150, "open"),
    _scenario("3s_vs_4z", "3s", "4z", 200, "open"),
    _scenario("3s_vs_5z", "3s", "5z", 250, "open"),
    _scenario("1c3s5z", "1c3s5z", "1c3s5z", 180),
    _scenario(
        "2m_vs_1z", (("1m", (13.0, 12.0)), ("1m", (19.0, 12.0))), (("1z", (16.0, 19.0)),), 150, "octagon", _MOVE,
        ((13.0, 12.0), (19.0, 12.0)),
    ),
    _scenario(
        "corridor", (("6z", (19.0397, 19.1198)),), (("24zg", _CORNER),), 400, "corridor", _MOVE,
        (_FAR_CORNER, _FAR_CORNER),
    ),
    _scenario("6h_vs_8z", (("6h", _PIT),), (("8z", (14.41, 16.7597)),), 150, "pit", _MOVE, (_PIT, _PIT)),
    _scenario(
        "2s_vs_1sc", (("1s", (11.1208, 10.338)), ("1s", (16.976, 10.3662))), (("1sc", (13.92, 20.0397)),), 300, "tower",
        Order.IDLE,
    ),
    _scenario(
        "so_many_baneling", (("7z", (11.469, 12.0234)),), (("32b", _CORNER),), 100, "stairs", _MOVE,
        (_FAR_CORNER, _FAR_CORNER),
    ),
    _scenario(
        "bane_vs_bane", (("20zg", (16.0, 11.0)), ("4b", (16.0, 8.0))), (("20zg", (16.0, 21.0)), ("4b", (16.0, 24.0))),
        200, "octagon", _MOVE, ((16.0, 8.0), (16.0, 8.0)),
    ),
    _scenario("2c_vs_64zg", (("2c", (16.0, 16.0)),), (("64zg", (16.0, 9.0)),), 400, "plateau", Order.HUNT),
)  # fmt: skip
SMAC: dict[str, Scenario] = {scenario.name: scenario for scenario in _SMAC_MAPS}
# The paper's scenarios that SMAC has no map for; examples in messages and lists, spelled by the grammar like any other.
PAPER_EXTRA = ("1s2z", "2s5z", "5s3z")


def names() -> list[str]:
    """SMAC's maps, the paper's own scenarios and SMACv2's; the grammar spells any number more."""
    return [*SMAC, *PAPER_EXTRA, *generated.NAMES]


@cache
def parse(name: str) -> Scenario:
    """The scenario of that name; a name that is neither SMAC's nor spelled by the grammar is an error."""
    if name in SMAC:
        return SMAC[name]
    if name.startswith(generated.PREFIX):
        drawn = generated.parse_generated(name)
        limit, flat = generated.LIMIT_STEPS, generated.TERRAIN
        return replace(_scenario(name, (), (), limit, flat, Order.IDLE), generated=drawn)
    ours, separator, theirs = name.partition("_vs_")
    if not separator:
        theirs = ours
    for army in (ours, theirs):
        if not _tokens(army):
            letters = ", ".join(f"{unit.letters} {unit.name}" for unit in UNIT_TYPES.values())
            there_are = (
                f"there are {', '.join(names())}, and any armies spelled by numbers and letters such as 3s5z or "
                f"7s4z_vs_3c ({letters})"
            )
            raise UsageError(f"no scenario {name!r}{did_you_mean(name, names(), there_are)}")
    _check_army(name, "agents'", ours)
    _check_army(name, "enemies'", theirs)
    count = sum(number for _, number in _tokens(ours))
    limit_steps = next(limit for most, limit in _LIMITS if count <= most)
    return _scenario(name, ours, theirs, limit_steps)


def _check_army(name: str, whose: str, spelling: str) -> None:
    tokens = _tokens(spelling)
    kinds = [number for number, _ in tokens]
    if any(count == 0 for _, count in tokens):
        raise UsageError(
            f"scenario {name!r}: the {whose} army {spelling!r} counts zero of a unit; leave the letter out"
        )
    if len(set(kinds)) < len(kinds):
        raise UsageError(f"scenario {name!r}: the {whose} army {spelling!r} names a unit twice; add the numbers up")
    if all(UNIT_TYPES[number].is_healer for number in kinds):
        raise UsageError(f"scenario {name!r}: the {whose} army {spelling!r} has no unit that can fight; add one")
    if whose == "agents'" and any(UNIT_TYPES[number].speed_per_second == 0 for number in kinds):
        raise UsageError(
            f"scenario {name!r}: spine crawlers stand on the enemies' side only; write them after _vs_, as in 2s_vs_1sc"
        )
