"""Scenes: what a viewer draws of one sequence, in words that no world owns.

A world describes a sequence as layers over an arena (rasters, discs, arrows, boxes, marks) and as panels beside it
(pictures, curves). A viewer draws these and knows nothing else, so that a world it has never heard of is shown as well.
Everything that has a time axis is an array whose first axis is the step; `first` says which step that axis begins with.
`packed` spells a scene as bytes that a browser reads without parsing numbers."""

# T steps, N things, H x W an image, K events

from __future__ import annotations

import dataclasses
import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
MAGIC = b"S2VIEW1\n"
_ALIGNMENT = 8
_TYPES = {"uint8": "u1", "int16": "i2", "int32": "i4", "float32": "f4"}  # what a browser has typed arrays for


@dataclass(frozen=True, kw_only=True)
class Palette:
    """Colours `#rrggbb` or `#rrggbbaa`. With `names`, value k has colour k; without, colours are spread evenly from
    `low` to `high` and mixed in between."""

    colours: Sequence[str]
    low: float = 0.0
    high: float = 1.0
    names: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class Arena:
    """The part of the world that is drawn: (left, low, right, high) in its own unit."""

    extent: tuple[float, float, float, float]
    y_down: bool = False
    unit: str = ""


# -- layers over the arena; `shown` is whether a layer is drawn before anybody asks for it


@dataclass(frozen=True, kw_only=True)
class Raster:
    """Values on a grid that fills `extent`, its first row at the low end of y. values (T, H, W), or (1, H, W) if
    nothing changes; `bits`: (T, H, ceil(W / 8)) packed, most significant bit first. Bytes (T, H, W, 3) are colours as
    they are; the palette is then their legend."""

    title: str
    values: Array
    extent: tuple[float, float, float, float]
    palette: Palette
    width: int = 0  # W, where the last axis is packed
    bits: bool = False
    first: int = 0
    shown: bool = True


@dataclass(frozen=True, kw_only=True)
class Bar:
    """A small bar above every disc, full at `full` (N,); things with a full of 0 have none."""

    title: str
    values: Array  # (T, N)
    full: Array
    colour: str


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A number of every disc, told of the one that is selected. `names`: values are indices into them, -1 is none."""

    title: str
    values: Array  # (T, N)
    unit: str = ""
    names: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class Discs:
    """Round things; a viewer tells the readings of the one that is selected. Of the first `detailed` of them the world
    has details (`Inspection.details`). `sight` and `reach` (N,) are radii drawn around the one that is selected.
    `legend` says what colours mean: (colour, words)."""

    title: str
    position: Array  # (T, N, 2)
    radius: Array  # (N,)
    colours: Sequence[str]
    names: Sequence[str]
    letters: Sequence[str] = ()
    legend: Sequence[tuple[str, str]] = ()
    there: Array | None = None  # (T, N) bool
    bars: Sequence[Bar] = ()
    readings: Sequence[Reading] = ()
    detailed: int = 0
    sight: float = 0.0
    reach: Array | None = None
    outline: bool = False  # rings instead of filled discs
    shown: bool = True


@dataclass(frozen=True, kw_only=True)
class Arrows:
    title: str
    start: Array  # (T, N, 2)
    end: Array  # (T, N, 2)
    there: Array  # (T, N) bool
    colours: Sequence[str]
    width: float = 1.5
    shown: bool = True


@dataclass(frozen=True, kw_only=True)
class Boxes:
    """Squares of one `side` around `centre`; `dim`, if given, is the colour laid over all that is in none of them."""

    title: str
    centre: Array  # (T, N, 2)
    side: float
    colours: Sequence[str]
    there: Array | None = None  # (T, N) bool
    dim: str = ""
    shown: bool = True


@dataclass(frozen=True, kw_only=True)
class Marks:
    """Events: drawn at their place for some steps, and as ticks on the time line."""

    title: str
    step: Array  # (K,)
    position: Array  # (K, 2)
    colour: str
    shown: bool = True


@dataclass(frozen=True, kw_only=True)
class Stack:
    """Maps of the arena that lie over one another, one per part of something: all at once, or one of them. values (M,
    H, W) from 0 to 1, the first row at the low end of y."""

    title: str
    values: Array
    extent: tuple[float, float, float, float]
    colours: Sequence[str]
    part: str  # what one of them is called
    shown: bool = True


Layer = Raster | Discs | Arrows | Boxes | Marks | Stack

# -- panels beside the arena


@dataclass(frozen=True, kw_only=True)
class Picture:
    """values (T, H, W), each `divisor` times what it stands for, or colours as in a raster. `polar`: rows are radii,
    columns angles counted counter-clockwise from the east. `upward`: the first row is the lowest."""

    title: str
    values: Array
    palette: Palette
    polar: bool = False
    upward: bool = False
    border: str = ""
    divisor: float = 1.0
    first: int = 0


@dataclass(frozen=True, kw_only=True)
class Pictures:
    """`small` ones have no colour bar of their own: that of the first serves them all. `paired`: every second one
    belongs beside the one before it."""

    title: str
    pictures: Sequence[Picture]
    note: str = ""
    small: bool = False
    paired: bool = False


@dataclass(frozen=True, kw_only=True)
class Curve:
    title: str
    values: Array  # (T,)
    colour: str
    first: int = 0


@dataclass(frozen=True, kw_only=True)
class Curves:
    """Numbers over time on one pair of axes. `low`, `high`: of the values' axis, None for as far as they go."""

    title: str
    curves: Sequence[Curve]
    unit: str = ""
    low: float | None = None
    high: float | None = None


Panel = Pictures | Curves


@dataclass(frozen=True, kw_only=True)
class Scene:
    """One sequence. `facts` are words about it, by title; `step_word` is what a step is called."""

    steps: int
    arena: Arena | None = None
    layers: Sequence[Layer] = ()
    panels: Sequence[Panel] = ()
    facts: Sequence[tuple[str, str]] = ()
    step_word: str = "step"
    milliseconds: int = 120  # that a step is shown


@dataclass(frozen=True, kw_only=True)
class Addition:
    """What is shown beside a scene: details of a thing that was selected, or what a model makes of it."""

    layers: Sequence[Layer] = ()
    panels: Sequence[Panel] = ()
    note: str = ""


def packed(scene: Scene | Addition) -> bytes:
    """MAGIC, the length of a JSON header (uint32, little-endian), the header, and the arrays it points into."""
    arrays: list[Array] = []
    body = _spelled(scene, arrays)
    entries, offset = [], 0
    for values in arrays:
        entries.append({"type": _TYPES[values.dtype.name], "shape": list(values.shape), "offset": offset})
        offset += -(-values.nbytes // _ALIGNMENT) * _ALIGNMENT
    text = json.dumps({"body": body, "arrays": entries}, allow_nan=False, separators=(",", ":")).encode()
    text += b" " * (-(len(MAGIC) + 4 + len(text)) % _ALIGNMENT)
    pieces = [MAGIC, struct.pack("<I", len(text)), text]
    for values in arrays:
        pieces += [values.tobytes(), bytes(-values.nbytes % _ALIGNMENT)]
    return b"".join(pieces)


def _spelled(value: Any, arrays: list[Array]) -> Any:
    if isinstance(value, np.ndarray):
        with np.errstate(over="ignore"):  # what is too large for a float32 becomes infinite, and is drawn as a gap
            arrays.append(np.ascontiguousarray(value, dtype=_wanted(value)))
        return {"array": len(arrays) - 1}
    if dataclasses.is_dataclass(value):
        fields = {field.name: _spelled(getattr(value, field.name), arrays) for field in dataclasses.fields(value)}
        return {"kind": type(value).__name__, **fields}
    if isinstance(value, (list, tuple)):
        return [_spelled(part, arrays) for part in value]
    if isinstance(value, np.generic):
        return value.item()
    return value


def _wanted(values: Array) -> str:
    """The smallest of the types of `_TYPES`, little-endian."""
    if values.dtype.kind == "b":
        return "<u1"
    if values.dtype.kind not in "iu":
        return "<f4"
    low, high = (int(values.min()), int(values.max())) if values.size else (0, 0)
    if low >= 0 and high < 2**8:
        return "<u1"
    if low >= -(2**15) and high < 2**15:
        return "<i2"
    return "<i4" if low >= -(2**31) and high < 2**31 else "<f4"
