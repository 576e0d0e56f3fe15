"""Pictures and figures of arrays that no world explains."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from s2rm_data.core.progress import Progress
from s2rm_data.core.schema import ArraySpec, SplitSource
from s2rm_data.inspection.world_inspection import Inspection, image_array
from s2rm_data.making.run import generate
from s2rm_data.store import Group, Store

STEPS = 5


@dataclass(frozen=True)
class Split(SplitSource):
    """Sequences of one array of the shape given, beside one number per sequence."""

    shape: tuple[int, ...]
    group: str = "any/train"
    count: int = 3
    seed: int = 0

    @property
    def arrays(self) -> tuple[ArraySpec, ...]:
        dims = tuple(f"axis_{n}" for n in range(len(self.shape)))
        return (
            ArraySpec(name="values", dtype="float32", shape=self.shape, dims=dims, description="values"),
            ArraySpec(name="number", dtype="int64", shape=(), dims=(), description="its number"),
        )

    @property
    def settings(self) -> dict[str, Any]:
        return {"generator": "any", "generator_version": 1, "config": {}, "seed": self.seed}

    @property
    def attributes(self) -> dict[str, Any]:
        return {"command": "any"}

    def produce(self, start: int, stop: int) -> dict[str, np.ndarray]:
        rng = np.random.default_rng(start)
        return {
            "values": rng.random((stop - start, *self.shape), np.float32),
            "number": np.arange(start, stop),
        }


def group_of(shape: tuple[int, ...], folder: Path) -> Group:
    generate([Split(shape)], folder / "any.zarr", shard_size=3)
    return Store(folder / "any.zarr")["any/train"]


@pytest.mark.parametrize(
    ("shape", "pictures", "side"),
    [
        ((STEPS, 12, 10), STEPS, 10),  # one image per step
        ((STEPS, 12, 10, 3), STEPS, 10),  # with channels
        ((STEPS, 4, 12, 10), STEPS, 40),  # four beside one another
        ((STEPS, 2), 1, None),  # lines
        ((), 1, None),  # a point
    ],
)
def test_any_array_is_drawn(tmp_path: Path, shape: tuple[int, ...], pictures: int, side: int | None) -> None:
    group = group_of(shape, tmp_path)
    found = list(Inspection().pictures(group, 1))
    assert len(found) == pictures
    if side:
        assert image_array(group) == "values"
        assert found[0].width % side == 0
    else:
        assert image_array(group) is None
    name, images, sheet = Inspection().preview(group, 1, 2, Progress())
    assert name == "any-train-1"
    assert len(list(images)) == pictures
    assert sheet.height > 2 * found[0].height


def test_the_picture_shows_the_values(tmp_path: Path) -> None:
    group = group_of((STEPS, 12, 10), tmp_path)
    values = group["values"][2]
    picture = np.asarray(list(Inspection().pictures(group, 2))[3].convert("L"))
    scale = picture.shape[1] // 10
    shown = picture[: 12 * scale : scale, ::scale]
    expected = 255 * (values[3] - values.min()) / (values.max() - values.min())
    np.testing.assert_allclose(shown, expected, atol=2)


def test_statistics_of_any_arrays_make_a_figure(tmp_path: Path) -> None:
    group = group_of((STEPS, 2), tmp_path)
    found = Inspection().statistics(group, Progress())
    axes = {panel.get_title(): panel for panel in Inspection().draw_statistics([found]).axes}
    assert set(axes) == {"values: mean", "number: mean"}
    np.testing.assert_allclose(axes["values: mean"].lines[0].get_ydata(), group["values"][:].mean((0, 2)), rtol=1e-5)
