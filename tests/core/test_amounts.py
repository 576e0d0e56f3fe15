from __future__ import annotations

import pytest

from s2rm_data.core.amounts import duration, human, size_nbytes
from s2rm_data.core.errors import UsageError


def test_durations_are_words() -> None:
    for seconds, words in ((12.9, "12 s"), (90, "1 min 30 s"), (7500, "2 h 05 min")):
        assert duration(seconds) == words, seconds


def test_sizes_are_read_as_they_are_written() -> None:
    for text, nbytes in (("50GB", 50 * 10**9), ("1.5 TB", 15 * 10**11), ("2gib", 2 << 30), ("7", 7)):
        assert size_nbytes(text) == nbytes, text
    assert [human(nbytes) for nbytes in (999, 1234567, 5e13)] == ["999 B", "1.2 MB", "50.0 TB"]


def test_what_is_no_size_is_refused() -> None:
    for text in ("", "GB", "-1GB", "0", "1e3GB", "5XB"):
        with pytest.raises(UsageError, match="write it as 50GB"):
            size_nbytes(text)
