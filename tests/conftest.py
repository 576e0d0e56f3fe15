"""Fixtures for the whole tree."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

# Tests share the cores, and models this small lose time with a second thread. Read when torch is imported, also by the
# programs that tests start.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from small_stores import make_small_store
from toy import ToySplit

from s2rm_data.making import generate
from s2rm_data.store import Store

# A shell that starts the tests in the background has them ignore SIGINT, and so the programs they start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# Files with long tests, the longest first.
LONG = (
    "test_docs.py",
    "training/test_processes.py",
    "cli/test_eval.py",
    "torture/test_share.py",
    "test_notebooks.py",
    "training/test_stepper.py",
    "store/test_damage.py",
    "cli/test_data.py",
    "cli/test_cloud.py",
    "test_plugins.py",
    "cli/test_sc2_server.py",
    "training/test_protocol.py",
)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Long files come first in the share of each process, so that none of them begins when the others have finished.

    `--dist worksteal` cuts the tests into equal shares in order, and whoever is done takes from the end of another's.
    """
    count = getattr(config, "workerinput", {}).get("workercount", 1)
    places = {Path(__file__).parent / name: place for place, name in enumerate(LONG)}
    shares: list[list[pytest.Item]] = [[] for _ in range(count)]
    for item in sorted((item for item in items if item.path in places), key=lambda item: places[item.path]):
        shares[places[item.path] % count].append(item)
    others = iter([item for item in items if item.path not in places])
    for share in shares:
        share += islice(others, max(0, len(items) // count - len(share)))
    items[:] = [item for share in shares for item in share] + list(others)


@pytest.fixture
def toy() -> ToySplit:
    return ToySplit()


@pytest.fixture(scope="session")
def toy_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("toy") / "toy.zarr"
    generate([ToySplit(), ToySplit(group="toy/val", count=5)], path, shard_size=4)
    return path


@pytest.fixture
def toy_store(tmp_path: Path, toy_template: Path) -> Path:
    """A store of two toy splits, of three shards and two; each test has its own copy."""
    return Path(shutil.copytree(toy_template, tmp_path / "toy.zarr"))


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A small store of both worlds; see small_stores.py. Tests only read it."""
    return Store(make_small_store(Path(tmp_path_factory.mktemp("store")) / "data.zarr"))


@pytest.fixture
def small() -> Callable[..., dict[str, Any]]:
    """Overrides that make a model quick: small(name, task, **more)."""
    from random_batches import small_overrides

    return small_overrides


@pytest.fixture
def make_batch() -> Callable[..., Any]:
    """make_batch(task, B=2, T=3, ...)."""
    from random_batches import random_batch

    return random_batch


@pytest.fixture(scope="session")
def s3_address() -> Iterator[str]:
    """An S3 server on this machine."""
    from buckets import s3_server

    with s3_server() as address:
        yield address


@pytest.fixture
def bucket(s3_address: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of a new bucket, such as s3://tests-3; the environment leads there."""
    from buckets import ENVIRONMENT, make_bucket

    for name, value in {**ENVIRONMENT, "AWS_ENDPOINT_URL": s3_address}.items():
        monkeypatch.setenv(name, value)
    name = f"tests-{secrets.token_hex(6)}"
    make_bucket(s3_address, name)
    return f"s3://{name}"
