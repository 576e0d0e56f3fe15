"""Compiles what most tests need, once, before they are dealt out to processes that would each do it."""

from __future__ import annotations

import tempfile
from pathlib import Path

from s2clientprotocol import sc2api_pb2 as api
from sc2_clients import Talker
from small_stores import make_small_store

import s2rm_data
from s2rm_data.starcraft.envs import vector_env

with tempfile.TemporaryDirectory() as folder:
    make_small_store(Path(folder) / "data.zarr")
battle = s2rm_data.Battle("3m")
battle.step(battle.available_actions().argmax(axis=1).tolist())
envs = vector_env("3m", 2)
_, info = envs.reset(seed=0)
envs.step(info["available"].argmax(axis=-1))
Talker().play("3m").ask(step=api.RequestStep(count=2))
