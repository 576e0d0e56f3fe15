"""Scripted policies, one per file, found by the file's name: `POLICIES.load("focus")` is the `Policy` of focus.py.

A policy is one compiled function of what a single agent may know (the signature is `_view.CHOOSE`): the rows of the
units within its sight, itself first; where the two armies started, seen from where it stands; its mask of available
actions; a little memory of its own; one random word. It returns a SMAC action number. A new policy is a new file here.
"""

from __future__ import annotations

from s2rm_data.registry import Registry

POLICIES = Registry(
    package=__name__,
    attribute="POLICY",
    kind="policy",
    entry_points="s2rm_data.policies",
    hint="s2rm-data sc2 --list shows them",
)
