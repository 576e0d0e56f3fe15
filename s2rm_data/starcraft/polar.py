"""Polar images: what one agent sees, and what it sees its team do, on I radial by J angular cells around it.

Cell (i, j) stands for the point (i * rho, j * phi) seen from the agent, rho = radius / I, phi = a full turn / J, j = 0
to the east, counter-clockwise (x east, y north). The field of view is the open disc of `radius`, as SMAC's sight is. A
unit goes to the nearest cell in each coordinate:
  i = floor(r / rho + 1/2), but the outermost ring also takes what rounds to I, so that the disc is covered;
  j = the sector of width phi centred on j * phi; a unit on the edge of two sectors goes to the counter-clockwise one;
  ring i = 0 is one point for all j: its units go to j = 0. The agent itself is always there, at (0, 0).
Two units in one cell: the one nearer to the cell's point stays, of equals the lower slot; the other is counted as lost.

Only + - * / sqrt, comparisons and tables made of integers decide, so that the bytes are the same on every machine.
Cost: one pass over the units an agent sees, plus one table lookup per cell for the terrain, but for the inner rings
that lie on level ground.

The C library's sin and cos may differ in the last bit from one machine to the next, and a unit on the edge between two
cells would then be stored in another cell. Here cosine and sine are Taylor sums over Python's integers, rounded once.
"""

# F frames = battles x steps, U units of both sides, N agents, I radial cells, J angular cells, W x H the map's cells

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from s2rm_data.core.check import above, between, check_fields, multiple_of
from s2rm_data.core.compiled import compiled
from s2rm_data.core.errors import UsageError
from s2rm_data.starcraft import codes, scenarios, terrain_maps
from s2rm_data.starcraft.units import NUMBER_OF

_BITS, _KEPT = 160, 120  # of fixed points; sums are wrong by some 2^-151, so rounded cos(90 degrees) is 0 and not 1e-48
_TWO_PI = 0x6487ED5110B4611A62633145C06E0E68948127044  # times 2^-160


def _to_float(value: int) -> float:
    drop = _BITS - _KEPT
    return ((value + (1 << (drop - 1))) >> drop) / (1 << _KEPT)


@lru_cache(maxsize=256)
def direction(numerator: int, denominator: int) -> tuple[float, float]:
    """(cos, sin) of the fraction numerator/denominator of a full turn, each the nearest float64."""
    angle, terms = _TWO_PI * (numerator % denominator) // denominator, [1 << _BITS]
    for k in range(1, 80):  # angle^k / k!
        terms.append((terms[-1] * angle >> _BITS) // k)
    return _to_float(sum(terms[::4]) - sum(terms[2::4])), _to_float(sum(terms[1::4]) - sum(terms[3::4]))


def directions(count: int, *, half_step: bool = False) -> NDArray[np.float64]:
    """(count, 2) unit vectors at j/count of a turn from the east, counter-clockwise; or at (j + 1/2)/count."""
    return np.array([direction(2 * j + half_step, 2 * count) for j in range(count)], dtype=np.float64).reshape(count, 2)


_MEDIVAC = NUMBER_OF["medivac"]

HECS_STATES = ("unit_health", "unit_energy", "unit_cooldown", "unit_shield")  # what the channels of hecs show
DRAWN_FROM = ("unit_type", "length", "unit_position", *HECS_STATES, "action")  # states that `render` takes
_DIVISORS = np.array(codes.HECS_DIVISORS, np.float32)
_NOT_NOTED = np.empty(0, np.int64)  # nobody asks which cells were drawn upon


def terrain_height(scenario: str) -> NDArray[np.uint8]:
    """(32, 32) terrain heights as the game's bytes, first index x."""
    return terrain_maps.height_bytes(scenarios.parse(scenario).terrain)


@dataclass(frozen=True, kw_only=True)
class PolarGrid:
    """I, J and the radius of the field of view in map units."""

    radial: Annotated[int, between(2, 256)]  # cells from the agent to the edge of its view
    angular: Annotated[int, between(4, 512), multiple_of(2)]  # cells on the circle
    radius: Annotated[float, above(0, at_most=64)]

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def rho(self) -> float:
        return self.radius / self.radial

    def points(self) -> NDArray[np.float64]:
        """(I, J, 2) where the cells' points lie, seen from the agent, x east and y north."""
        rings = np.arange(self.radial, dtype=np.float64) * self.rho
        return rings[:, None, None] * directions(self.angular)[None]


@compiled("int64(float64, float64, float64[:, ::1])", forceinline=True)
def _sector(dx, dy, edges):  # type: ignore[no-untyped-def]
    """j of a displacement other than 0: how many edges lie between it and the east, by signs of cross products.

    It looks in half of what is left, without a branch on where that is: nobody could guess it."""
    half = edges.shape[0]
    below = dy < 0.0 or (dy == 0.0 and dx < 0.0)
    if below:
        dx, dy = -dx, -dy
    low, left = 0, half
    while left > 0:
        step = (left + 1) // 2
        edge = low + step - 1
        low += step if edges[edge, 0] * dy >= edges[edge, 1] * dx else 0
        left -= step
    return (low + half) % (2 * half) if below else low


@compiled(forceinline=True)
def action_category(action, unit_type):  # type: ignore[no-untyped-def]
    if action == codes.Action.NO_OP:
        return codes.NOBODY
    if action < codes.Action.ATTACK:
        return (
            codes.STOPS + action - codes.Action.STOP
        )  # SMAC and the categories both go stop, north, south, east, west
    return codes.HEALS if unit_type == _MEDIVAC else codes.ATTACKS


@compiled(forceinline=True)
def _draw_units(frame, agent, position, hecs, unit_type, action, radius, edges, points, near, owner, out, drawn):  # type: ignore[no-untyped-def]
    """Draws the living units around one agent; returns how many are in view and how many lost their cell to another.

    hecs (U, 4): of this frame. near (3, U) is scratch space. owner: which image each cell was last drawn in, and how
    far off its owner is; the image itself is not read, as most of it is not in the processor's cache. Numbers of the
    cells drawn upon go to `drawn`, if there is room for any; its first entry counts them."""
    (categories, images), (number, off) = out, owner
    radial, angular = points.shape[:2]
    this = frame * action.shape[1] + agent
    x, y = np.float64(position[frame, agent, 0]), np.float64(position[frame, agent, 1])
    agents, in_view, lost = action.shape[1], 0, 0
    rho = radius / radial
    for unit in range(position.shape[1]):
        near[0, unit], near[1, unit] = position[frame, unit, 0] - x, position[frame, unit, 1] - y
        near[2, unit] = near[0, unit] * near[0, unit] + near[1, unit] * near[1, unit]
    for unit in range(position.shape[1]):
        if not (hecs[unit, 0] > 0.0 and near[2, unit] < radius * radius):
            continue
        in_view += 1
        i = min(int(math.sqrt(near[2, unit]) / rho + 0.5), radial - 1)
        j = _sector(near[0, unit], near[1, unit], edges) if i > 0 else 0
        ex, ey = near[0, unit] - points[i, j, 0], near[1, unit] - points[i, j, 1]
        distance2 = ex * ex + ey * ey
        if number[i, j] == this:
            lost += 1
            if distance2 >= off[i, j]:
                continue
        elif drawn.size > 0:
            drawn[0] += 1
            drawn[drawn[0]] = (this * radial + i) * angular + j
        number[i, j], off[i, j] = this, distance2
        categories[i, j, codes.FRIENDLY] = 1 if unit < agents else 0
        categories[i, j, codes.UNIT_TYPE] = unit_type[unit]
        categories[i, j, codes.ACTION] = (
            action_category(action[frame, unit], unit_type[unit]) if unit < agents else codes.UNKNOWN
        )
        for channel in range(4):
            images[i, j, channel] = hecs[unit, channel]
    return in_view, lost


@compiled(forceinline=True)
def _draw_terrain(x, y, east, north, terrain, level, height):  # type: ignore[no-untyped-def]
    """Height of the map cell under each point: `east`, `north` (I * J,) from the agent at x, y of `terrain`. The first
    level[x, y] of them have the height of the cell under the agent.

    All coordinates are positive, so that cutting off the fraction is the floor."""
    flat, columns = terrain.ravel(), np.int32(terrain.shape[1])
    alike = level[np.int32(x), np.int32(y)]
    height[:alike] = terrain[np.int32(x), np.int32(y)]
    for cell in range(alike, height.size):
        height[cell] = flat[np.uint32(np.int32(x + east[cell]) * columns + np.int32(y + north[cell]))]


@compiled(forceinline=True)
def _stands_still(position, health, frame, agent):  # type: ignore[no-untyped-def]
    """Whether a living agent sees the same terrain as in the frame before."""
    now, before = position[frame, agent], position[frame - 1, agent]
    return health[frame - 1, agent] > 0.0 and now[0] == before[0] and now[1] == before[1]


@compiled()
def _render_frames(  # type: ignore[no-untyped-def]
    length, position, stats, unit_type, action, terrain, level, margin, radius, edges, points, out, drawn
):
    """Fills zeroed outputs (categories, hecs, height, in_view, lost) for the first `length` steps of each episode.
    Returns (frame, unit) of a living unit that stands outside of the map, where it stops, or (-1, -1).

    stats: (F, U) each, in the order of HECS_CHANNELS. drawn: see `_draw_units`. terrain, level and margin: see
    `_ground`; they are looked up without asking, hence the check."""
    categories, images, height, in_view, lost = out
    owner = np.full(points.shape[:2], -1), np.empty(points.shape[:2])
    near, hecs = np.empty((3, position.shape[1])), np.empty((position.shape[1], 4), np.float32)
    east, north = points[:, :, 0].copy().ravel(), points[:, :, 1].copy().ravel()
    width, depth = terrain.shape[0] - 2 * margin, terrain.shape[1] - 2 * margin
    steps = action.shape[0] // length.shape[0]
    health, energy, cooldown, shield = stats
    for frame in range(action.shape[0]):
        if frame % steps >= length[frame // steps]:
            continue
        for unit in range(position.shape[1]):
            x, y = position[frame, unit, 0], position[frame, unit, 1]
            if health[frame, unit] > 0.0 and not (0.0 <= x <= width and 0.0 <= y <= depth):
                return frame, unit
            hecs[unit, 0], hecs[unit, 1] = health[frame, unit] / _DIVISORS[0], energy[frame, unit] / _DIVISORS[1]
            hecs[unit, 2], hecs[unit, 3] = cooldown[frame, unit] / _DIVISORS[2], shield[frame, unit] / _DIVISORS[3]
        for agent in range(action.shape[1]):
            if health[frame, agent] <= 0.0:
                continue
            image = (categories[frame, agent], images[frame, agent])
            seen, gone = _draw_units(
                frame, agent, position, hecs, unit_type[frame // steps], action, radius, edges, points, near, owner,
                image, drawn,
            )  # fmt: skip
            in_view[frame // steps] += seen
            lost[frame // steps] += gone
            x, y = margin + np.float64(position[frame, agent, 0]), margin + np.float64(position[frame, agent, 1])
            if frame % steps > 0 and _stands_still(position, health, frame, agent):
                for cell in range(height.shape[2]):  # a slice's shape would be checked, which takes long to compile
                    height[frame, agent, cell] = height[frame - 1, agent, cell]
            else:
                _draw_terrain(x, y, east, north, terrain, level, height[frame, agent])
    return -1, -1


@lru_cache(maxsize=32)
def _ground(
    heights: bytes, shape: tuple[int, ...], grid: PolarGrid
) -> tuple[NDArray[np.uint8], NDArray[np.int32], int, float, NDArray[np.float64], NDArray[np.float64]]:
    """The terrain with a margin of height 0 around it, enough for the field of view of an agent at its edge; for every
    cell of that, how many cells of an image, ring by ring, show one height if the agent stands in it; the margin; and
    the grid's radius, edges and points."""
    margin = math.ceil(grid.radius) + 1
    padded = np.pad(np.frombuffer(heights, np.uint8).reshape(shape), margin)
    # Ring i of radius i * rho reaches cells at most ceil(i * rho) away. A little more, for points that are rounded.
    rings = np.arange(1, grid.radial) * grid.rho + 1e-6
    level = np.full(padded.shape, grid.angular, np.int32)  # ring 0 is the agent's own point
    low = high = padded
    for distance in range(1, margin + 1):
        low, high = _of_neighbours(low, np.minimum), _of_neighbours(high, np.maximum)
        level[low == high] = (1 + int((rings <= distance).sum())) * grid.angular
    # between sectors j and j + 1 of the upper half; those of the lower half are their opposite
    edges = directions(grid.angular, half_step=True)[: grid.angular // 2]
    return padded, level, margin, float(grid.radius), edges, grid.points()


def _of_neighbours(values: NDArray[np.uint8], least_or_most: np.ufunc) -> NDArray[np.uint8]:
    """The least or the greatest of each cell and its eight neighbours."""
    wide = np.pad(values, 1, mode="edge")
    rows = least_or_most.reduce([wide[:-2], wide[1:-1], wide[2:]])
    of_all: NDArray[np.uint8] = least_or_most.reduce([rows[:, :-2], rows[:, 1:-1], rows[:, 2:]])
    return of_all


def draw(
    states: Mapping[str, NDArray[Any]],
    out: tuple[NDArray[Any], ...],
    drawn: NDArray[np.int64] = _NOT_NOTED,
    *,
    grid: PolarGrid,
    terrain: NDArray[np.uint8],
) -> None:
    """Fills zeroed `out`: categories and hecs as `render` returns them, without the dimension of episodes, height with
    its cells in a row, units_in_view, units_lost. `drawn`: see `_draw_units`."""
    position = np.ascontiguousarray(states["unit_position"], dtype=np.float32)
    position = position.reshape(-1, *position.shape[2:])
    found = _render_frames(
        np.ascontiguousarray(states["length"], dtype=np.int64),
        position,
        tuple(np.ascontiguousarray(states[name], np.float32).reshape(position.shape[:2]) for name in HECS_STATES),
        np.ascontiguousarray(states["unit_type"], dtype=np.uint8),
        np.ascontiguousarray(states["action"], dtype=np.int16).reshape(len(position), -1),
        *_ground(np.ascontiguousarray(terrain).tobytes(), terrain.shape, grid),
        out,
        drawn,
    )
    if found != (-1, -1):
        raise UsageError(
            f"a unit stands at {position[found].tolist()}, outside of the map of {terrain.shape} cells; "
            "render states with the terrain of their own scenario"
        )


def render(
    states: Mapping[str, NDArray[Any]], *, grid: PolarGrid, terrain: NDArray[np.uint8]
) -> dict[str, NDArray[Any]]:
    """Images of every step and agent of B episodes from their compact states, at any resolution.

    states: stored arrays, as read from a split: unit_type (B, U), unit_position (B, T, U, 2), unit_health, unit_energy,
    unit_cooldown, unit_shield (B, T, U), action (B, T, N), length (B,).
    terrain: (W, H) heights as the game's bytes, first index x, second y.
    Returns categories (B, T, N, I, J, 3) uint8, hecs (B, T, N, I, J, 4) float32, height (B, T, N, I, J) uint8, and
    units_in_view and units_lost (B,) int32, summed over agents and steps."""
    if terrain.dtype != np.uint8:
        raise UsageError(f"terrain is {terrain.dtype}; give the game's bytes, as terrain_height(scenario) does")
    B, T, N = states["action"].shape
    shape = (B * T, N, grid.radial, grid.angular)
    categories, hecs = np.zeros((*shape, 3), np.uint8), np.zeros((*shape, 4), np.float32)
    height = np.zeros((B * T, N, grid.radial * grid.angular), np.uint8)
    in_view, lost = np.zeros(B, np.int32), np.zeros(B, np.int32)
    draw(states, (categories, hecs, height, in_view, lost), grid=grid, terrain=terrain)
    images = {"categories": categories, "hecs": hecs, "height": height.reshape(shape)}
    batched = {name: image.reshape(B, T, *image.shape[1:]) for name, image in images.items()}
    return {**batched, "units_in_view": in_view, "units_lost": lost}
