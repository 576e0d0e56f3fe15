"""Any Zarr reader opens the store and sees the same values."""

from pathlib import Path

import numpy as np
import pytest
import tensorstore
import xarray
import zarr
from toy import ToySplit

from s2rm_data.core.errors import InterruptedRunError
from s2rm_data.making.run import generate
from s2rm_data.store import Store


def test_zarr_python_reads_the_same_values(toy_store: Path) -> None:
    root = zarr.open_group(str(toy_store), mode="r")
    group = Store(toy_store)["toy/train"]
    assert sorted(root["toy/train"].array_keys()) == sorted(group)
    for name, array in group.arrays.items():
        np.testing.assert_array_equal(root[f"toy/train/{name}"][:], array.packed(slice(None)))


@pytest.mark.parametrize("consolidated", [None, False])
def test_xarray_reads_the_same_values(toy_store: Path, consolidated: bool | None) -> None:
    dataset = xarray.open_zarr(str(toy_store), group="toy/train", consolidated=consolidated, chunks=None)
    assert dict(dataset.sizes) == {"sequence": 10, "time": 3, "byte": 2, "axis": 2}
    for name, array in Store(toy_store)["toy/train"].arrays.items():
        np.testing.assert_array_equal(dataset[name].values, array.packed(slice(None)))


def test_tensorstore_reads_the_same_values(toy_store: Path) -> None:
    for name, array in Store(toy_store)["toy/train"].arrays.items():
        spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": str(toy_store / "toy/train" / name)}}
        opened = tensorstore.open(spec).result()
        np.testing.assert_array_equal(opened.read().result(), array.packed(slice(None)))


def test_other_readers_do_not_list_a_group_that_is_still_being_made(tmp_path: Path) -> None:
    class Interrupted(ToySplit):
        def produce(self, start: int, stop: int) -> dict[str, np.ndarray]:
            if start >= 4:
                raise KeyboardInterrupt
            return super().produce(start, stop)

    path = tmp_path / "toy.zarr"
    generate([ToySplit(group="toy/val")], path)
    with pytest.raises((InterruptedRunError, KeyboardInterrupt)):
        generate([Interrupted()], path, shard_size=4)
    assert sorted(zarr.open_group(str(path), mode="r")["toy"].group_keys()) == ["val"]
    assert Store(path).unfinished == {"toy/train": (1, 3)}
