"""Fixtures for the whole tree."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from toy import ToySplit

from s2rm_data.making import generate

# A shell that starts the tests in the background has them ignore SIGINT, and so the programs they start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def toy() -> ToySplit:
    return ToySplit()


@pytest.fixture
def toy_store(tmp_path: Path, toy: ToySplit) -> Path:
    """A store of two toy splits, three shards each."""
    path = tmp_path / "toy.zarr"
    generate([toy, ToySplit(group="toy/val", count=5)], path, shard_size=4)
    return path
