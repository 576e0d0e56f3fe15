"""Trained agents as files that `s2rm-data sc2 --policy FILE` rolls out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from s2rm_data.envs.battles import BattleBatch
from s2rm_data.envs.options import EnvOptions
from s2rm_data.errors import UsageError
from s2rm_data.generators.sc2.policies._network import SUFFIX, load_network, save_network


def save_policy(path: str | Path, layers: Sequence[tuple[Any, Any]], map_name: str) -> None:
    """Save a network of fully connected layers with ReLU between them.

    `layers`: (weight (outputs, inputs), bias (outputs,)) each, arrays or tensors on the CPU. The first takes an agent's
    observation with SMAC's default options and its number, one-hot; the last gives a score for each action.
    """
    path = Path(path)
    if path.suffix != SUFFIX:
        raise UsageError(f"the policy file is called {path.name!r}; its name must end with {SUFFIX}")
    battles = BattleBatch(EnvOptions(map_name=map_name), 1)
    sizes = battles.features.observation_size, battles.agents, battles.actions
    save_network(path, layers, map_name, lambda network: network.require(map_name, *sizes))


def load_policy(path: str | Path) -> Callable[[NDArray[np.float32], NDArray[np.bool_]], NDArray[np.int64]]:
    """The agents of a policy file: a function of observation (n, N, O) and available (n, N, A) to actions (n, N)."""
    network = load_network(Path(path))

    def act(observation: NDArray[np.float32], available: NDArray[np.bool_]) -> NDArray[np.int64]:
        network.require("this environment", observation.shape[2], observation.shape[1], available.shape[2])
        everywhere = np.ones(len(observation), dtype=np.bool_)
        return network.choose(everywhere, observation, available).astype(np.int64)

    return act
