"""Any arrays as a scene: the largest image-like one as a raster, all others that go with time as curves."""

# N sequences, T steps, H x W an image

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from s2rm_data.scene import Arena, Curve, Curves, Palette, Raster, Scene

if TYPE_CHECKING:
    from s2rm_data.store import Group
    from s2rm_data.store.reader import StoredArray

MOST_LINES = 8  # drawn of one array
_SMALLEST_SIDE = 4  # of an image; smaller arrays are drawn as lines
_MOST_CHANNELS = 4  # a last axis that is not longer holds channels, not columns
_MOST_VALUES = 1 << 24  # of a raster that is sent to a viewer
_MOST_STEPS = 2000
_MOST_WORDS = 8  # values of an array without steps that are spelled out
_GREYS = ("#141414", "#ffffff")
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c564b", "#7f7f7f")


def image_array(group: Group) -> str | None:
    """The array with the most values per sequence among those of (N, T, ..., H, W), or with channels after W."""

    def is_image(array: StoredArray) -> bool:
        return len(array.shape) >= 4 and array.dtype.kind in "biuf" and min(_sides(array.shape[2:])) >= _SMALLEST_SIDE

    found = {name: int(np.prod(array.shape[1:])) for name, array in group.arrays.items() if is_image(array)}
    return max(found, key=lambda name: found[name]) if found else None


def _sides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """(H, W) of what an array holds at one step."""
    has_channels = len(shape) > 2 and shape[-1] <= _MOST_CHANNELS
    return shape[-3:-1] if has_channels else shape[-2:]


def as_images(values: NDArray[Any], shape: tuple[int, ...]) -> NDArray[np.float64]:
    """(T, *shape) -> (T, H, W'): the first channel of up to `MOST_LINES` images beside one another."""
    values = np.asarray(values, np.float64)
    if _sides(shape) != shape[-2:]:
        values = values[..., 0]
    tiles = values.reshape(len(values), -1, *_sides(shape))[:, :MOST_LINES]
    return np.concatenate(np.moveaxis(tiles, 1, 0), axis=-1)


def array_scene(group: Group, number: int, milliseconds: int) -> Scene:
    """Which arrays go with time is told by their second axis: it is as long as that of the images, or the longest."""
    name = image_array(group)
    numeric = {key: array for key, array in group.arrays.items() if array.dtype.kind in "biuf"}
    lengths = [array.shape[1] for array in numeric.values() if len(array.shape) > 1]
    total = group[name].shape[1] if name else max(lengths, default=1)
    values = {key: np.asarray(array[number]) for key, array in numeric.items() if key != name}
    timed = {key: found for key, found in values.items() if found.ndim and len(found) == total}
    raster = None if name is None else _raster(name, as_images(group[name][number], group[name].shape[2:]))
    steps = min(total, _MOST_STEPS) if raster is None else len(raster.values)
    shown = f"{total:,}" if steps == total else f"the first {steps:,} of {total:,}"
    return Scene(
        steps=steps,
        arena=None if raster is None else Arena(extent=raster.extent, y_down=True),
        layers=() if raster is None else (raster,),
        panels=[_curves(key, found[:steps]) for key, found in timed.items()],
        facts=[("steps", shown), *((key, _words(found)) for key, found in values.items() if key not in timed)],
        milliseconds=milliseconds,
    )


def _raster(name: str, images: NDArray[np.float64]) -> Raster:
    _, height, width = images.shape
    images = images[: max(1, min(_MOST_STEPS, _MOST_VALUES // (height * width)))]
    finite = images[np.isfinite(images)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    palette = Palette(colours=_GREYS, low=low, high=high if high > low else low + 1)
    return Raster(title=name, values=images, extent=(0.0, 0.0, float(width), float(height)), palette=palette)


def _curves(name: str, values: NDArray[Any]) -> Curves:
    lines = values.reshape(len(values), -1)[:, :MOST_LINES]
    titles = [name] if lines.shape[1] == 1 else [str(line) for line in range(lines.shape[1])]
    curves = [
        Curve(title=title, values=lines[:, n].astype(np.float64), colour=_COLOURS[n % len(_COLOURS)])
        for n, title in enumerate(titles)
    ]
    return Curves(title=name, curves=curves)


def _words(values: NDArray[Any]) -> str:
    flat = values.ravel()
    more = ", ..." if flat.size > _MOST_WORDS else ""
    return ", ".join(f"{value:g}" if values.dtype.kind == "f" else f"{value}" for value in flat[:_MOST_WORDS]) + more
