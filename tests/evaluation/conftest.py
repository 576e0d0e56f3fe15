from __future__ import annotations

from pathlib import Path

import pytest
import torch
from small_stores import make_small_store

from s2rm_data.store import Store

torch.set_num_threads(1)  # models this small lose time with more


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(make_small_store(Path(tmp_path_factory.mktemp("evaluation")) / "data.zarr"))
