"""Compiles what most tests need, once, before they are dealt out to processes that would each do it."""

from __future__ import annotations

import tempfile
from pathlib import Path

from small_stores import make_small_store

import s2rm_data

with tempfile.TemporaryDirectory() as folder:
    make_small_store(Path(folder) / "data.zarr")
battle = s2rm_data.Battle("3m")
battle.step(battle.available_actions().argmax(axis=1).tolist())
