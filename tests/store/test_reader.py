"""What a damaged store does to a reader is tested in test_damage.py."""

from pathlib import Path

import numpy as np
import pytest
from toy import ToySplit

from s2rm_data.core.errors import UsageError
from s2rm_data.making.run import generate
from s2rm_data.store import Store


def test_sequences_read_back_as_they_were_made(toy_store: Path, toy: ToySplit) -> None:
    group = Store(toy_store)["toy/train"]
    made = toy.produce(0, 10)
    assert len(group) == 10
    for name, values in made.items():
        np.testing.assert_array_equal(group[name].packed(slice(None)), values)
        assert group[name].packed(3).dtype == values.dtype


@pytest.mark.parametrize(
    "key", [slice(2, 9, 3), slice(None, None, -1), [7, 0, 7, -1], np.array([4, 4]), [], slice(0, 0)]
)
def test_indexing_agrees_with_numpy(toy_store: Path, toy: ToySplit, key: object) -> None:
    group = Store(toy_store)["toy/train"]
    for name in ("position", "alive"):
        expected = toy.produce(0, 10)[name][np.array(key, dtype=int) if isinstance(key, list) else key]
        np.testing.assert_array_equal(group[name][key], expected)


def test_an_integer_drops_the_sequence_dimension(toy_store: Path, toy: ToySplit) -> None:
    group = Store(toy_store)["toy/train"]
    np.testing.assert_array_equal(group["position"][-2], toy.produce(8, 9)["position"][0])
    np.testing.assert_array_equal(group[8]["position"], toy.produce(8, 9)["position"][0])


def test_packed_bits_read_as_zeros_and_ones(toy_store: Path, toy: ToySplit) -> None:
    frames = Store(toy_store)["toy/train"]["frames"]
    assert frames.shape == (10, 3, 12)
    expected = np.unpackbits(toy.produce(0, 10)["frames"], axis=-1)[..., :12]
    np.testing.assert_array_equal(frames[:], expected)


@pytest.mark.parametrize("key", [10, -11, [0, 10], [1.9], True, [True] * 10, [[1]], (0, 1)])
def test_an_index_out_of_range_or_of_another_kind_is_an_error(toy_store: Path, key: object) -> None:
    with pytest.raises(IndexError):
        Store(toy_store)["toy/train"]["position"][key]


def test_an_unknown_group_or_array_gets_a_suggestion(toy_store: Path) -> None:
    with pytest.raises(KeyError, match="did you mean 'toy/train'"):
        Store(toy_store)["toy/trian"]
    with pytest.raises(UsageError, match="did you mean 'position'"):
        Store(toy_store)["toy/train"]["positions"]


def test_the_content_digest_does_not_depend_on_the_shard_size(tmp_path: Path, toy: ToySplit) -> None:
    digests = set()
    for shard_size in (4, 8, 1000):
        generate([toy], tmp_path / f"{shard_size}.zarr", shard_size=shard_size)
        digests.add(Store(tmp_path / f"{shard_size}.zarr")["toy/train"].content_digest())
    assert len(digests) == 1


def test_the_content_digest_depends_on_the_values(tmp_path: Path, toy: ToySplit, toy_store: Path) -> None:
    generate([ToySplit(seed=1)], tmp_path / "other.zarr")
    other = Store(tmp_path / "other.zarr")["toy/train"].content_digest()
    assert other != Store(toy_store)["toy/train"].content_digest()


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no store"):
        Store(tmp_path / "nowhere.zarr")
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match="is a file"):
        Store(tmp_path / "file")
    with pytest.raises(UsageError, match="not an s2rm-data store"):
        Store(tmp_path)
