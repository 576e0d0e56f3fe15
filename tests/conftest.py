"""Fixtures for the whole tree."""

from __future__ import annotations

import hashlib
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
from patience import computed_seconds
from small_stores import make_small_store
from toy import ToySplit

from s2rm_data.making.run import generate
from s2rm_data.store import Store

# A shell that starts the tests in the background has them ignore SIGINT, and so the programs they start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cpu", type=int, default=0, metavar="N", help="show the N tests that compute most")


COMPUTED: dict[str, float] = {}  # test -> seconds of the processor, with its fixtures and the processes it started


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """After each of its three phases, the first of which begins where the test before has ended."""
    report = yield
    if item.config.option.cpu:
        now = computed_seconds(os.getpid())
        report.computed = now - COMPUTED.get("before", now)  # type: ignore[attr-defined]
        COMPUTED["before"] = now
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    COMPUTED[report.nodeid] = COMPUTED.get(report.nodeid, 0.0) + getattr(report, "computed", 0.0)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if config.option.cpu:
        COMPUTED.pop("before", None)
        terminalreporter.section(f"processor time: {sum(COMPUTED.values()):.0f} s in all")
        for name in sorted(COMPUTED, key=lambda name: -COMPUTED[name])[: config.option.cpu]:
            terminalreporter.line(f"{COMPUTED[name]:8.2f}s {name}")


@pytest.hookimpl(tryfirst=True)  # before pytest leaves out what `-m "not whole"` leaves out
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    mark_beyond_samples(items)
    if config.option.markexpr == "not whole":
        kept = [item for item in items if not item.get_closest_marker("whole")]
        unseen = {test_of(item) for item in items} - {test_of(item) for item in kept}
        if unseen and not any("::" in word for word in config.args):
            raise pytest.UsageError(f"make test shows no case of {', '.join(sorted(unseen))}; leave it a cheap one")
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("whole")])  # counted
        items[:] = kept
    items[:] = dealt(items, getattr(config, "workerinput", {}).get("workercount", 1))


def test_of(item: pytest.Item) -> str:
    """Its name without that of the case."""
    return item.nodeid.partition("[")[0]


def mark_beyond_samples(items: list[pytest.Item]) -> None:
    """Of a test marked `sample(count)`, all cases but `count` become `whole`; or `count` for each value of a parameter.

    Which stay depends on the names of the cases alone, so that a new case leaves the others where they are.
    """
    cases: dict[tuple[Any, ...], list[pytest.Item]] = {}
    for item in items:
        if marker := item.get_closest_marker("sample"):
            value = item.callspec.params[marker.kwargs["each"]] if marker.kwargs else None  # type: ignore[attr-defined]
            cases.setdefault((test_of(item), value, *marker.args), []).append(item)
    for (*_, count), several in cases.items():
        for item in sorted(several, key=lambda item: hashlib.sha256(item.name.encode()).digest())[count:]:
            item.add_marker(pytest.mark.whole)


def dealt(items: list[pytest.Item], count: int) -> list[pytest.Item]:
    """The items in such an order that no process begins with a dear file when the others have finished.

    `--dist worksteal` cuts them into equal shares in order, and whoever is done takes from the end of another's. So
    files whose tests are marked `costs` come first in the shares, the dearest first, and each to the cheapest share.
    """
    costs: dict[Path, float] = {}
    for item in items:
        if marker := item.get_closest_marker("costs"):
            costs[item.path] = costs.get(item.path, 0.0) + marker.args[0]
    shares: list[list[pytest.Item]] = [[] for _ in range(count)]
    sums = [0.0] * count
    for path in sorted(costs, key=lambda path: -costs[path]):
        least = sums.index(min(sums))
        sums[least] += costs[path]
        shares[least] += [item for item in items if item.path == path]
    others = iter([item for item in items if item.path not in costs])
    for share in shares:
        share += islice(others, max(0, len(items) // count - len(share)))
    return [item for share in shares for item in share] + list(others)


@pytest.fixture(scope="module")
def undrawn() -> Iterator[dict[str, Any]]:
    """The runs of this file have no pictures; see undrawn.py."""
    from undrawn import install

    from s2rm_data.training import journal

    with pytest.MonkeyPatch.context() as patch:
        before = {name: getattr(journal, name) for name in ("draw_curves", "_draw_rows")}
        for name, draw in before.items():
            patch.setattr(journal, name, draw)  # restored at the end
        install()
        yield before


@pytest.fixture
def drawn(undrawn: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures for one test of such a file."""
    from s2rm_data.training import journal

    for name, draw in undrawn.items():
        monkeypatch.setattr(journal, name, draw)


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
