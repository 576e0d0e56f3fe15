import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from s2rm_data.core.philox import philox, to_unit, write_seeds
from s2rm_data.core.seeding import sequence_seeds, stream_key

WORD = st.integers(0, 2**64 - 1)


@settings(deadline=None)
@given(WORD, WORD, st.integers(1, 2**64 - 1), WORD)
def test_compiled_philox_is_numpys_bit_for_bit(key0: int, key1: int, counter0: int, counter1: int) -> None:
    before = np.array([counter0 - 1, counter1, 0, 0], dtype=np.uint64)  # NumPy counts up before it draws
    numpy = np.random.Philox(key=np.array([key0, key1], dtype=np.uint64), counter=before)
    ours = philox(np.uint64(key0), np.uint64(key1), np.uint64(counter0), np.uint64(counter1))
    assert [int(word) for word in ours] == numpy.random_raw(4).tolist()


@settings(deadline=None)
@given(WORD)
def test_unit_floats_lie_in_the_half_open_interval(word: int) -> None:
    value = to_unit(np.uint64(word))
    assert 0.0 <= value < 1.0
    assert value == (word >> 11) / 2**53


def test_seeds_of_many_streams_are_those_of_each() -> None:
    streams, first = [f"battles/{number}" for number in range(5)], np.array([0, 1, 6, 7, 1001])
    keys = np.array([stream_key(3, stream) for stream in streams])
    seeds = np.empty(5 * 9, dtype=np.uint64)
    write_seeds(keys, first, 9, seeds)
    each = [sequence_seeds(3, stream, start, start + 9) for stream, start in zip(streams, first.tolist(), strict=True)]
    assert np.array_equal(seeds, np.concatenate(each))
