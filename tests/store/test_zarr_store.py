"""zarr-python and xarray read through the manifest, where they would read zeros by themselves."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
import xarray
import zarr
from buckets import flip
from toy import ToySplit

import s2rm_data as s2
from s2rm_data.core.addresses import store_path
from s2rm_data.core.errors import DamagedStoreError
from s2rm_data.making.run import generate


def test_it_reads_what_is_stored(toy_store: Path) -> None:
    group = zarr.open_group(s2.zarr_store(toy_store), mode="r")
    plain = s2.open(toy_store)["toy/train"]
    for name, array in plain.arrays.items():
        np.testing.assert_array_equal(group[f"toy/train/{name}"][:], array.packed(slice(None)))
    with xarray.open_zarr(s2.zarr_store(toy_store), group="toy/train", chunks=None) as found:
        np.testing.assert_array_equal(found["position"].values, plain["position"][:])
    again = pickle.loads(pickle.dumps(s2.zarr_store(toy_store)))
    assert sorted(name for name, _ in zarr.open_group(again, mode="r").groups()) == ["toy"]


def test_what_is_missing_is_an_error_and_not_zeros(toy_store: Path) -> None:
    (toy_store / "toy/train/frames/c.1.0.0").unlink()
    assert not zarr.open_group(str(toy_store), mode="r")["toy/train/frames"][4:8].any()
    frames = zarr.open_group(s2.zarr_store(toy_store), mode="r")["toy/train/frames"]
    assert frames[:4].any()
    with pytest.raises(DamagedStoreError, match=r"frames/c\.1\.0\.0: is missing"):
        frames[4:8]


def test_what_has_changed_in_a_bucket_is_an_error(bucket: str) -> None:
    url = f"{bucket}/toy.zarr"
    generate([ToySplit()], store_path(url), shard_size=4)
    frames = zarr.open_group(s2.zarr_store(url), mode="r")["toy/train/frames"]
    assert frames[:].shape == (10, 3, 2)
    flip(url, "toy/train/frames/c.1.0.0")
    with pytest.raises(DamagedStoreError, match=rf"{url}/toy/train/frames/c\.1\.0\.0: SHA-256 does not match"):
        frames[:]


class Unfinished(ToySplit):
    def produce(self, start: int, stop: int) -> dict[str, np.ndarray]:
        if start >= 4:
            raise ValueError
        return super().produce(start, stop)


def test_a_group_that_is_not_complete_cannot_be_read(toy_store: Path) -> None:
    with pytest.raises(ValueError):
        generate([Unfinished(group="toy/half")], toy_store, shard_size=4)
    store = s2.zarr_store(toy_store)
    assert "half" not in dict(zarr.open_group(store, mode="r")["toy"].groups())
    with pytest.raises(DamagedStoreError, match="belongs to a group that is not complete"):
        zarr.open_array(store, path="toy/half/frames", mode="r")


def test_nothing_is_written_through_it(toy_store: Path) -> None:
    with pytest.raises(ValueError, match="read-only"):
        zarr.open_group(s2.zarr_store(toy_store), mode="r").create_array("x", shape=(2,), dtype="u1")
