"""SMACv2's `capability_config`: what every battle draws, besides its armies and places, and what agents know of it.

    team_gen          which armies: weighted_teams, all_teams           start_positions  where: reflect_position, ...
    attack, health    per agent, how often attacks succeed and at which share of its health it dies
    enemy_mask        of which enemies an agent sees neither health nor shield nor type

And SMACv2's extended partial observability (EPO): of an enemy that comes into sight, its first observer tells each
other agent with the chance `prob_obs_enemy`, until it or that agent is dead. Agents observe the enemies after the last
one (by number) that they were not told of, as SMACv2's class does: it clears what it wrote of the enemies before."""

# n battles, N agents, E enemies

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from s2rm_data.core.check import between, checked
from s2rm_data.core.compiled import kernel
from s2rm_data.core.errors import UsageError, did_you_mean
from s2rm_data.starcraft.armies import POINTS, unit_draw
from s2rm_data.starcraft.feature_vectors import distance_seen
from s2rm_data.starcraft.features import Traits
from s2rm_data.starcraft.generated import LAYOUTS, PREFIX, RACES, Generated, Unit
from s2rm_data.starcraft.terrain_maps import SIZE

MAPS = tuple(PREFIX + race for race in RACES)
_PARTS = ("team_gen", "start_positions", "attack", "health", "enemy_mask")
_ENTRIES = (  # of a part; SMACv2's class itself writes the last three into it
    *("dist_type", "observe", "unit_types", "weights", "exception_unit_types", "p", "map_x", "map_y", "lower_bound"),
    *("upper_bound", "items", "test_mode", "mask_probability", "env_key", "n_units", "n_enemies"),
)
EPISODE = ("team_gen", "ally_start_positions", "enemy_start_positions", *_PARTS[2:])
# armies.py has the other tags
_ATTACK, _HEALTH, _ITEM, _MASK, _FAILS, _TOLD, _TURN = (np.uint64(tag) for tag in range(5, 12))


@dataclass(frozen=True, kw_only=True)
class Trait:
    """A number for each agent: drawn evenly between `low` and `high`, or one of `items` in an order that is drawn."""

    low: float = 0.0
    high: float = 0.0
    items: tuple[tuple[float, ...], ...] = ()
    observe: bool = True  # whether an agent knows it of the others

    def draw(self, seeds: NDArray[np.uint64], agents: int, tag: np.uint64) -> NDArray[np.float64]:
        """(n, N)"""
        drawn = _draws(seeds, tag, agents)
        if not self.items:
            return self.low + (self.high - self.low) * drawn
        which = _draws(seeds, tag + _ITEM * np.uint64(16), 1)[:, 0]
        values = np.array(self.items)[(which * len(self.items)).astype(np.int64)]
        return np.take_along_axis(values, drawn.argsort(axis=1, kind="stable"), axis=1)


@dataclass(frozen=True, kw_only=True)
class Capabilities:
    """What a `capability_config` says, but for armies and places, which are in `Generated`."""

    attack: Trait | None = None
    health: Trait | None = None
    masked_share: float | None = None
    team_observed: bool = True


def scenario_name(map_name: str, config: Any) -> str:
    """`10gen_protoss` with the armies' sizes of its config: `10gen_protoss_5_vs_5`."""
    if map_name not in MAPS or config is None:
        return map_name
    sizes = table("capability_config", config)
    sizes = table("team_gen", sizes.get("team_gen", {})) | sizes
    if not {"n_units", "n_enemies"} <= set(sizes):
        raise UsageError(f"capability_config has no n_units or n_enemies; {map_name} needs the sizes of both armies")
    return f"{map_name}_{sizes['n_units']}_vs_{sizes['n_enemies']}"


def parse(config: Any, generated: Generated | None, agents: int, enemies: int) -> tuple[Capabilities, Generated | None]:
    """A config in SMACv2's words; what is not simulated is a `UsageError`."""
    config = table("capability_config", {} if config is None else config, (*_PARTS, "n_units", "n_enemies"))
    for name, size in (("n_units", agents), ("n_enemies", enemies)):
        if config.get(name, size) != size:
            raise UsageError(f"capability_config has {name} {config[name]!r}; the scenario has {size}")
    parts = {name: table(name, config[name], _ENTRIES) for name in _PARTS if name in config}
    team, places = parts.get("team_gen"), parts.get("start_positions")
    if generated is None and (team is not None or places is not None):
        raise UsageError(f"team_gen and start_positions are for {', '.join(MAPS)}; other maps have armies of their own")
    if generated is not None and (team is not None or places is not None):
        generated = _with_places(generated if team is None else _with_team(generated, team), places)
    known = Capabilities(
        attack=_trait("attack", parts.get("attack"), agents, 1.0),
        health=_trait("health", parts.get("health"), agents, 0.999),  # who is alive has more
        masked_share=_masked_share(parts.get("enemy_mask")),
        team_observed=bool((team or {}).get("observe", True)),
    )
    return known, generated


def table(name: str, value: Any, entries: Sequence[str] = ()) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise UsageError(f"{name} is {value!r}; it is a dictionary, as in smacv2's example configs")
    for entry in value if entries else ():
        _known(name, "entry", entry, entries)
    return dict(value)


def _list(name: str, value: Any) -> tuple[Any, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence | np.ndarray):
        raise UsageError(f"{name} is {value!r}; it is a list")
    return tuple(value)


def _numbers(name: str, value: Any) -> NDArray[np.float64]:
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise UsageError(f"episode_config has {name} {value!r}; give numbers") from None


def _known(where: str, what: str, name: Any, allowed: Sequence[str]) -> None:
    if name not in allowed:
        there_are = f"what is simulated is {', '.join(allowed)}"
        raise UsageError(f"{where} has {what} {name!r}{did_you_mean(str(name), allowed, there_are)}")


def _with_team(generated: Generated, team: dict[str, Any]) -> Generated:
    kind = team.get("dist_type", "weighted_teams")
    _known("team_gen of capability_config", "dist_type", kind, ("weighted_teams", "all_teams"))
    race = RACES[generated.race]
    names, alone = (_list(f"{name} of team_gen", team.get(name, default)) for name, default in
                    (("unit_types", [*race.weights]), ("exception_unit_types", ())))  # fmt: skip
    for name in (*names, *alone):
        _known("team_gen of capability_config", f"a unit type of {PREFIX}{generated.race},", name, tuple(race.weights))
    given = _list("weights of team_gen", team.get("weights", [race.weights[name] for name in names]))
    weights = [_number("team_gen", "weights", weight, 0, 1) for weight in given]
    if kind == "all_teams":
        weights = [1.0 / len(names)] * len(names)
        if generated.agents != generated.enemies:
            raise UsageError("all_teams draws one army for both sides; give n_units and n_enemies the same number")
    if len(weights) != len(names) or not names or abs(sum(weights) - 1) > 1e-8:
        raise UsageError(f"team_gen has weights {weights!r}; give {len(names)}, at least 0, which add up to 1")
    chances = tuple((name, float(weight)) for name, weight in zip(names, weights, strict=True))
    if not any(chance > 0 and name not in alone for name, chance in chances):
        raise UsageError(f"team_gen has exception_unit_types {list(alone)}; some other type must have a chance")
    if kind == "weighted_teams" and chances == tuple(race.weights.items()) and alone == race.never_alone:
        return generated  # SMACv2's own
    return replace(generated, weights=chances, never_alone=alone, all_teams=kind == "all_teams")


def _with_places(generated: Generated, places: dict[str, Any] | None) -> Generated:
    if places is None:
        return replace(generated, reflected_share=None)
    kind = places.get("dist_type", "surrounded_and_reflect")
    _known("start_positions of capability_config", "dist_type", kind, tuple(LAYOUTS))
    share = _number("start_positions", "p", places.get("p", LAYOUTS[kind]), 0, 1)
    share = share if kind == "surrounded_and_reflect" else LAYOUTS[kind]
    width, height = (_number("start_positions", axis, places.get(axis, SIZE), 4, SIZE) for axis in ("map_x", "map_y"))
    return replace(generated, reflected_share=share, size=(width, height))


def _trait(name: str, part: dict[str, Any] | None, agents: int, most: float) -> Trait | None:
    if part is None:
        return None
    kind, observe = part.get("dist_type", "per_agent_uniform"), bool(part.get("observe", False))
    _known(f"{name} of capability_config", "dist_type", kind, ("per_agent_uniform", "fixed"))
    if kind == "per_agent_uniform":
        ends = [_only(name, end, part.get(end), most) for end in ("lower_bound", "upper_bound")]
        if ends[0] > ends[1]:
            raise UsageError(f"lower_bound of {name} is {ends[0]:g}; it must be at most upper_bound, {ends[1]:g}")
        return Trait(low=ends[0], high=ends[1], observe=observe)
    if part.get("test_mode"):
        raise UsageError(f"{name} has test_mode True; to go through items in order, give each to reset(episode_config)")
    items = tuple(_list(f"items of {name}", item) for item in _list(f"items of {name}", part.get("items", ())))
    items = tuple(tuple(_number(name, "items", x, 0, most) for x in item) for item in items)
    if not items or any(len(item) != agents for item in items):
        raise UsageError(f"{name} has items {part.get('items')!r}; give lists of {agents} numbers, one for each agent")
    return Trait(items=items, observe=observe)


def _only(name: str, end: str, given: Any, most: float) -> float:
    """SMACv2 gives bounds as lists of one number."""
    return _number(name, end, given[0] if isinstance(given, list | tuple) and len(given) == 1 else given, 0, most)


def _number(part: str, name: str, value: Any, low: float, high: float) -> float:
    return float(checked(f"{name} of {part}", value, Annotated[float, between(low, high)]))


def _masked_share(part: dict[str, Any] | None) -> float | None:
    if part is None:
        return None
    _known("enemy_mask of capability_config", "dist_type", part.get("dist_type", "mask"), ("mask",))
    return _number("enemy_mask", "mask_probability", part.get("mask_probability"), 0, 1)


class Knowledge:
    """What the battles of a batch have drawn for their agents, and what these have been told."""

    def __init__(self, known: Capabilities, count: int, agents: int, enemies: int, told_share: float | None) -> None:
        self.known, self.told_share = known, told_share
        self.attack, self.health = np.ones((count, agents)), np.zeros((count, agents))  # (n, N) chance, share
        self.masked = np.zeros((count, agents, enemies if known.masked_share is not None else 0), dtype=np.bool_)
        self.seeds = np.zeros(count, dtype=np.uint64)
        self._told = np.zeros((count, enemies, agents), dtype=np.bool_)
        self._observer = np.full((count, enemies), -1, dtype=np.int64)  # who first saw an enemy
        self._place = np.zeros((count, agents + enemies, 2), dtype=np.float32)  # the dead where they were last seen
        self._fresh = np.ones(count, dtype=np.bool_)  # nobody has looked since the last step
        self._order = np.zeros(agents, dtype=np.int64)  # scratch space
        self.first = np.zeros((count, agents), dtype=np.int64)  # (n, N) the enemy from which on an agent observes

        unused = Traits()
        self.traits = Traits(  # arrays of this object
            attack=self.attack if known.attack is not None else unused.attack,
            health=self.health if known.health is not None else unused.health,
            masked=self.masked if known.masked_share is not None else unused.masked,
            first=self.first if told_share is not None else unused.first,
        )

    def begin(self, rows: NDArray[np.int64], seeds: NDArray[np.uint64], position: NDArray[np.float32]) -> None:
        self.seeds[rows], self._place[rows] = seeds, position
        self._told[rows], self._observer[rows], self._fresh[rows] = False, -1, True
        agents = self.attack.shape[1]
        for trait, drawn, tag in ((self.known.attack, self.attack, _ATTACK), (self.known.health, self.health, _HEALTH)):
            if trait is not None:
                drawn[rows] = trait.draw(seeds, agents, tag)
        if self.known.masked_share is not None:
            masked = _draws(seeds, _MASK, self.masked[0].size) < self.known.masked_share
            self.masked[rows] = masked.reshape(len(seeds), *self.masked.shape[1:])

    def take(self, episode: Mapping[str, Any]) -> None:
        """What an `episode_config` gives to the agents of the only battle, in place of what was drawn."""
        for name, wanted in (("attack", self.attack), ("health", self.health), ("enemy_mask", self.masked)):
            item = table(name, episode.get(name, {})).get("item")
            if item is not None:
                values = _numbers(name, item)
                if values.size != wanted[0].size or not ((values >= 0) & (values <= 1)).all():
                    raise UsageError(f"episode_config has {name} {item!r}; give {wanted[0].shape} numbers from 0 to 1")
                wanted[0] = values.reshape(wanted[0].shape)

    def failing(self, steps: NDArray[np.int64]) -> NDArray[np.bool_]:
        """(n, N) whose attacks come to nothing in a step, of which `steps` (n,) were played before."""
        return _draws(self.seeds, _FAILS, self.attack.shape[1], steps) > self.attack

    def forget(self, position: NDArray[np.float32], health: NDArray[np.float32]) -> None:
        """After a step: what was told of and to the dead."""
        self._fresh[:] = True
        _forget(position, health, self._told, self._observer, self._place)

    def look(  # type: ignore[no-untyped-def]
        self, rows: NDArray[np.int64], seen, kinds, steps, looking, half_angle, sight
    ) -> None:
        """Tell who comes into sight, once a step, and find `first` for some battles."""
        _tell(
            rows, seen.position, seen.health, kinds, self.seeds, steps, looking, half_angle, sight,
            float(self.told_share or 0.0), self._told, self._observer, self._place, self._fresh, self._order,
            self.first,
        )  # fmt: skip


def _draws(
    seeds: NDArray[np.uint64], tag: np.uint64, count: int, steps: NDArray[np.int64] | None = None
) -> NDArray[np.float64]:
    """(n, count) in [0, 1), anew in every step."""
    drawn = np.empty((len(seeds), count))
    _draw_step(seeds, tag, np.zeros(len(seeds), dtype=np.int64) if steps is None else steps, drawn)
    return drawn


@kernel
def _draw_step(seeds, tag, steps, out):  # type: ignore[no-untyped-def]
    for b in range(out.shape[0]):
        for k in range(out.shape[1]):
            out[b, k] = unit_draw(seeds[b], tag, steps[b] * out.shape[1] + k)


@kernel
def _forget(position, health, told, observer, place):  # type: ignore[no-untyped-def]
    enemies, agents = told.shape[1], told.shape[2]
    for b in range(told.shape[0]):
        for u in range(agents + enemies):
            if health[b, u] > 0.0:
                place[b, u, 0], place[b, u, 1] = position[b, u, 0], position[b, u, 1]
        for i in range(agents):
            for e in range(enemies):
                if health[b, i] <= 0.0 and observer[b, e] == i:
                    observer[b, e] = -1
                    told[b, e] = False
                    told[b, :, i] = False
        for e in range(enemies):
            if health[b, agents + e] <= 0.0:
                observer[b, e] = -1
                told[b, e] = False


@kernel
def _tell(  # type: ignore[no-untyped-def]
    rows, position, health, kinds, seeds, steps, looking, half_angle, sight, share, told, observer, place, fresh, order,
    first,
):  # fmt: skip
    """Agents look in an order that is drawn every step, as in SMACv2's get_obs; a second look changes nothing."""
    enemies, agents, conic = told.shape[1], told.shape[2], looking.shape[0] > 0
    for b in rows:
        for k in range(agents):
            order[k] = k
        for k in range(agents - 1, 0, -1):
            if fresh[b]:
                other = int(unit_draw(seeds[b], _TURN, steps[b] * agents + k) * (k + 1))
                order[k], order[other] = order[other], order[k]
        for i in order:
            first[b, i] = 0
            if health[b, i] <= 0.0:
                continue
            look_x, look_y = 1.0, 0.0
            if conic:
                look_x, look_y = looking[b, i]
            for e in range(enemies):
                if observer[b, e] < 0:
                    dx = np.float64(place[b, agents + e, 0]) - np.float64(position[b, i, 0])
                    dy = np.float64(place[b, agents + e, 1]) - np.float64(position[b, i, 1])
                    if distance_seen(dx, dy, sight[kinds[b, i]], conic, look_x, look_y, half_angle) >= 0.0:
                        observer[b, e] = i
                        told[b, e, i] = True
                        for a in range(agents):
                            number = (steps[b] * enemies + e) * agents + a
                            if a != i and unit_draw(seeds[b], _TOLD, number) < share:
                                told[b, e, a] = True
                if not told[b, e, i]:
                    first[b, i] = e + 1
        fresh[b] = False


def given_units(episode: Mapping[str, Any], generated: Generated) -> tuple[Unit, ...]:
    """The armies and places of an `episode_config` as SMACv2's distributions make them: types by name, agents first."""
    team, sizes = table("team_gen", episode.get("team_gen", {})), (generated.agents, generated.enemies)
    units: list[Unit] = []
    for side, point, size in zip(("ally", "enemy"), POINTS, sizes, strict=True):
        names = [str(name) for name in _list(f"{side}_team", team.get(f"{side}_team", ()))]
        for name in names:
            _known(f"{side}_team", "a unit type", name, tuple(RACES[generated.race].weights))
        given = table(f"{side}_start_positions", episode.get(f"{side}_start_positions", {})).get("item")
        places = _numbers(f"{side}_start_positions", [point] * size if given is None else given)
        if len(names) != size or places.shape != (size, 2) or not np.isfinite(places).all():
            raise UsageError(
                f"episode_config has {len(names)} types for {side}_team and places of shape {places.shape}; give "
                f"{size} types and as many pairs of map coordinates, as {side}_start_positions"
            )
        units += [(name, float(x), float(y)) for name, (x, y) in zip(names, places, strict=True)]
    return tuple(units)
