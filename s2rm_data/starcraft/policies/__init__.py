"""Scripted policies, one per file, found by the file's name: `POLICIES.load("focus")` is the `Policy` of focus.py.

A policy is one compiled function of what a single agent may know (the signature is `_view.CHOOSE`): the rows of the
units within its sight, itself first; where the two armies started, seen from where it stands; its mask of available
actions; a little memory of its own; one random word. It returns a SMAC action number. A new policy is a new file here.

A trained policy is a file of the user's (`_network.py`), named by its path: `find("ippo_3m.safetensors")`."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from s2rm_data.core.registry import Registry

if TYPE_CHECKING:
    from s2rm_data.starcraft.policies._view import Policy, policy

__all__ = ["POLICIES", "Policy", "find", "is_file", "label", "policy"]

POLICIES = Registry(package=__name__, kind="policy", hint="s2rm-data sc2 --list shows them")


def is_file(name: str) -> bool:
    return name.endswith(".safetensors")


def label(name: str) -> str:
    """What a policy is called in stores: its name, or that of its file, wherever it lies."""
    return Path(name).name if is_file(name) else name


def find(name: str) -> Policy:
    if not is_file(name):
        return POLICIES.load(name)
    from s2rm_data.starcraft.policies._network import load_network
    from s2rm_data.starcraft.policies._view import Policy

    network = load_network(Path(name))
    return Policy(description=f"trained on {network.scenario}", network=network)


def __getattr__(name: str) -> Any:
    """`Policy` and `policy`, what a policy file is made of; imported when asked for, because they compile code."""
    if name in ("Policy", "policy"):
        return getattr(importlib.import_module(f"{__name__}._view"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
