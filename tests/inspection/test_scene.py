"""Scenes as bytes: what a browser reads out of them is what was put in."""

from __future__ import annotations

import numpy as np
import pytest
from scene_bytes import unpacked

from s2rm_data.inspection.scene import Arena, Curve, Curves, Raster, Scene, packed
from s2rm_data.inspection.scene import Palette as Colours


def curves_of(values: np.ndarray) -> np.ndarray:
    curve = Curve(title="one", values=values, colour="#000000")
    return unpacked(packed(Scene(steps=3, panels=[Curves(title="all", curves=[curve])])))[1][0]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (np.array([True, False]), "uint8"),
        (np.array([0, 255], np.int64), "uint8"),
        (np.array([-1, 7], np.int64), "int16"),
        (np.array([-1, 70_000], np.int64), "int32"),
        (np.array([0, 2**40], np.uint64), "float32"),
        (np.array([0.5, np.nan]), "float32"),
        (np.zeros(0, np.int64), "uint8"),
    ],
)
def test_arrays_keep_their_values_in_a_type_that_browsers_have(values: np.ndarray, kind: str) -> None:
    found = curves_of(values)
    assert found.dtype.name == kind
    np.testing.assert_array_equal(found, values.astype(kind))


def test_a_scene_is_spelled_with_the_kind_of_every_part() -> None:
    raster = Raster(title="<b>", values=np.eye(3)[None], extent=(0, 0, 3, 3), palette=Colours(colours=("#000000",)))
    body, (image,) = unpacked(packed(Scene(steps=1, arena=Arena(extent=(0, 0, 3, 3)), layers=[raster])))
    assert body["kind"] == "Scene" and body["arena"]["kind"] == "Arena"
    assert body["layers"][0]["kind"] == "Raster" and body["layers"][0]["title"] == "<b>"
    assert body["layers"][0]["values"] == {"array": 0}
    np.testing.assert_array_equal(image, np.eye(3)[None])


def test_numbers_that_json_does_not_know_are_refused_in_the_header() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        packed(Scene(steps=1, arena=Arena(extent=(0, 0, float("nan"), 1))))
