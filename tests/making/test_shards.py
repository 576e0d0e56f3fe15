"""Shards are the same however a source hands over its sequences, and are never shorter than promised."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from toy import ToySplit, tree

from s2rm_data.core.schema import Lent
from s2rm_data.making.run import generate


@dataclass(frozen=True)
class LendingToy(ToySplit):
    """Lends one array sequence by sequence from the same memory, and the others in parts of some sizes."""

    at_once: int = 1
    forgets: str = ""

    def lend(self, start: int, stop: int) -> Iterator[Lent]:
        arrays = self.produce(start, stop)
        frames = arrays.pop("frames")
        canvas = np.empty_like(frames[:1])
        for number in range(stop - start):
            canvas[:] = frames[number]
            yield Lent({"frames": canvas}, {"frames": canvas.nbytes})
        for first in range(0, stop - start, self.at_once):
            part = {name: values[first : first + self.at_once] for name, values in arrays.items()}
            yield Lent({name: values for name, values in part.items() if name != self.forgets}, {})


@pytest.mark.parametrize("at_once", [1, 3, 4, 6, 10])
def test_arrays_may_be_lent_in_parts_of_any_size(at_once: int, tmp_path: Path) -> None:
    generate([ToySplit(count=23)], tmp_path / "whole.zarr", shard_size=12)
    generate([LendingToy(count=23, at_once=at_once)], tmp_path / "lent.zarr", shard_size=12)
    assert tree(tmp_path / "lent.zarr") == tree(tmp_path / "whole.zarr")


def test_an_array_that_was_not_lent_whole_is_not_stored(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="position: got 0 sequences, promised 12"):
        generate([LendingToy(count=23, forgets="position")], tmp_path / "data.zarr", shard_size=12)
