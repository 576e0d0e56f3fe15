import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from s2rm_data.philox import philox, to_unit

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
