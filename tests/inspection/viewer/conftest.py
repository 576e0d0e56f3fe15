from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from browser import browser
from tiny_runs import make_run

from s2rm_data.inspection.viewer.answers import Answers
from s2rm_data.inspection.viewer.server import ViewerServer
from s2rm_data.store import Store


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    with browser() as made:
        yield made


@contextlib.contextmanager
def served(answers: Answers) -> Iterator[str]:
    with ViewerServer(answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.url
        server.shutdown()


@pytest.fixture(scope="session")
def answers_with_runs(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """Both worlds, each with a small untrained model."""
    from s2rm_data.evaluation.runs import load_runs
    from s2rm_data.evaluation.viewer_predictions import RunPredictor

    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("runs")
    runs = [make_run(folder / name, "s2gru", task) for name, task in (("balls", "bballs"), ("battles", "sc2"))]
    return Answers(store, RunPredictor(load_runs(runs), torch.device("cpu")))


@pytest.fixture(scope="module")
def url(answers_with_runs: Answers) -> Iterator[str]:
    with served(answers_with_runs) as found:
        yield found


@pytest.fixture
def serving() -> Iterator[Callable[[Answers], str]]:
    """Serve something else for one test."""
    with contextlib.ExitStack() as stack:
        yield lambda answers: stack.enter_context(served(answers))


@pytest.fixture
def renamed(store: Store, tmp_path: Path) -> Callable[[str], Path]:
    """A copy of the small store under another name."""
    import shutil

    return lambda name: Path(shutil.copytree(store.path, tmp_path / name))
