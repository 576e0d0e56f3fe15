"""Blank ends of chunks: skipped by the compressor, and nothing of it shows in the bytes."""

import numpy as np
import pytest

from s2rm_data.store import codec as blank
from s2rm_data.store.codec import decode_chunk, encode_chunk

KIB = 1024


@pytest.mark.parametrize("nbytes", [3_000_000, 1_572_864, 1_572_865 + 3, 40 * KIB])
@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.62, 1.0])
@pytest.mark.parametrize("level", [1, 3])
def test_a_blank_end_does_not_change_the_bytes(nbytes: int, share: float, level: int) -> None:
    rng = np.random.default_rng(int(nbytes + 100 * share))
    values, used = np.zeros(nbytes, np.uint8), int(nbytes * share)
    cells = rng.integers(0, max(used, 1), used // 50)
    values[cells] = rng.integers(0, 256, len(cells))
    values[used // 2 : used // 2 + used // 20] = rng.integers(0, 256, used // 20)  # a part that hardly compresses
    assert encode_chunk(values, level, used) == encode_chunk(values, level)
    assert decode_chunk(encode_chunk(values, level, used), nbytes, "here") == values.tobytes()


@pytest.mark.parametrize("beyond", [0, 1, 63, 64, 65, 1000, 128 * KIB - 1])
def test_data_may_end_anywhere_in_a_block(beyond: int) -> None:
    rng = np.random.default_rng(beyond)
    used = 6 * 128 * KIB + beyond
    values = np.zeros(16 * 128 * KIB + 7, np.uint8)
    cells = rng.integers(0, used, 20_000)
    values[cells] = rng.integers(0, 4, len(cells))
    assert encode_chunk(values, 1, used) == encode_chunk(values, 1)


def test_blank_ends_are_really_skipped_and_nothing_is_taken_on_trust(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[int] = []

    def compress(data: memoryview) -> bytes:
        given.append(len(data))
        return plain(data)

    import zstandard

    plain = zstandard.ZstdCompressor(level=1).compress
    data = memoryview(bytes(4_000_000))
    whole = blank.compress_blank_tail(compress, 1, data, 1000)
    assert whole == plain(data) and max(given) < 800_000
    monkeypatch.setattr(blank, "_holds", lambda level: False)  # a version of zstd that does otherwise
    assert blank.compress_blank_tail(compress, 1, data, 1000) == whole and given[-1] == 4_000_000
