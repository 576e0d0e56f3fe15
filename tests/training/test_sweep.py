"""A sweep is continued with its own points, or refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from s2rm_data.core.errors import ConflictError
from s2rm_data.training.sweep import DOCUMENT, Sweep, run_sweep

SWEEP = Sweep({"lr": [1e-3, 3e-3], "seed": [0, 1]})


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"axes": 1, "ended": 2}', b"[" * 100_000, "pipe", "hole"])
def test_a_document_that_cannot_be_its_own_is_refused(tmp_path: Path, content: bytes | str) -> None:
    document = tmp_path / DOCUMENT
    if content == "pipe":
        os.mkfifo(document)
    else:
        document.write_bytes(content if isinstance(content, bytes) else b"")
    if content == "hole":
        os.truncate(document, 1 << 40)
    with pytest.raises(ConflictError, match="is damaged; start another sweep"):
        run_sweep(SWEEP, tmp_path, lambda point, out: {}, resume=True)


def test_an_untouched_one_is_continued(tmp_path: Path) -> None:
    assert len(run_sweep(SWEEP, tmp_path, lambda point, out: {}, resume=False)) == 4
    assert len(run_sweep(SWEEP, tmp_path, lambda point, out: {}, resume=True)) == 4


@pytest.mark.parametrize(
    "axes",
    [
        {"lr": [0.0010000001, 0.0010000002]},
        {"codec": ["a" * 130], "seed": [0, 1]},
        {"codec": ["a/b", "a_b"]},
        {"codec": ["A", "a"]},
    ],
)
def test_no_two_points_share_a_folder(axes: dict) -> None:
    sweep = Sweep(axes)
    names = sweep.names
    assert len({name.casefold() for name in names}) == len(names)
    assert all(len(name) <= 120 for name in names)
    assert Sweep(axes).names == names
    assert SWEEP.names[1] == "lr=0.001,seed=1"
