import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from s2rm_data.core.errors import DamagedStoreError
from s2rm_data.store.codec import ABSENT, assemble_shard, decode_chunk, encode_chunk, index_nbytes, parse_index


@given(st.lists(st.integers(-(2**31), 2**31 - 1), max_size=50), st.integers(1, 5))
def test_a_chunk_decodes_to_what_was_encoded(values: list[int], level: int) -> None:
    array = np.array(values, dtype=np.int32)
    assert decode_chunk(encode_chunk(array, level), array.nbytes, "here") == array.tobytes()


def test_values_are_stored_little_endian() -> None:
    big = np.array([1, 2], dtype=">u4")
    assert decode_chunk(encode_chunk(big, 1), 8, "here") == np.array([1, 2], dtype="<u4").tobytes()


def test_every_flipped_bit_of_a_chunk_is_noticed() -> None:
    data = encode_chunk(np.arange(40, dtype=np.uint8), 3)
    for position in range(len(data) * 8):
        damaged = bytearray(data)
        damaged[position // 8] ^= 1 << position % 8
        with pytest.raises(DamagedStoreError, match="here: checksum"):
            decode_chunk(bytes(damaged), 40, "here")


def test_a_chunk_of_another_size_is_refused() -> None:
    with pytest.raises(DamagedStoreError):
        decode_chunk(encode_chunk(np.zeros(8, np.uint8), 1), 9, "here")
    with pytest.raises(DamagedStoreError):
        decode_chunk(encode_chunk(np.zeros(9, np.uint8), 1), 8, "here")


def test_a_shard_lists_its_chunks_and_marks_the_absent_ones() -> None:
    shard = b"".join(assemble_shard([b"abc", b"de"], 3))
    index = parse_index(shard[-index_nbytes(3) :], "here", chunks=2, nbytes=5)
    assert index.tolist() == [[0, 3], [3, 2], [int(ABSENT), int(ABSENT)]]
    assert shard.startswith(b"abcde")
