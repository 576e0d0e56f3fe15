from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from s2rm_data.store import Store
from s2rm_data.training.config import TrainConfig
from s2rm_data.training.listener import Listener
from s2rm_data.training.protocol import RunOptions, Session
from s2rm_data.training.resolve import Overrides, resolve

TINY = {"window": 4, "views": 5, "queries": 3, "batch_size": 4, "width": 2, "threads": 1, "held_out_sequences": 2}


@pytest.fixture(scope="session")
def tiny(store: Store) -> Callable[..., TrainConfig]:
    """A config of a few seconds at most: the smoke preset, smaller still."""

    def make(task: str = "bballs", model: str = "s2gru", preset: str = "smoke", **fields: Any) -> TrainConfig:
        overrides = Overrides(
            task=task, model=model, preset=preset, device="cpu", fields={**TINY, "steps": 6, **fields}
        )
        return resolve(store, overrides, lambda text: None)

    return make


@pytest.fixture(scope="session")
def train(store: Store) -> Callable[..., dict[str, Any]]:
    def run(config: TrainConfig, out: Path, listener: Listener | None = None, **order: Any) -> dict[str, Any]:
        return Session(listener).train(config, store, RunOptions(out=out, **order))

    return run


@pytest.fixture(scope="module", autouse=True)
def no_pictures(undrawn: dict[str, Any]) -> None:
    """A test that looks at pictures asks for the fixture `drawn`."""
