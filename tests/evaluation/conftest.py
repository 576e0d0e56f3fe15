from __future__ import annotations

from pathlib import Path

import pytest
from small_stores import make_small_store

from s2rm_data.store import Store


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(make_small_store(Path(tmp_path_factory.mktemp("evaluation")) / "data.zarr"))
