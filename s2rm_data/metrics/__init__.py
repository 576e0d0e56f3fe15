"""Scores from pooled counts, and losses; pure functions of tensors, on any device. Worlds build theirs of these.

Counts are pooled over sequences, steps, queries and pixels before a score is taken of them.
"""

from __future__ import annotations

from s2rm_data.errors import missing_component

try:
    import torch as _torch  # noqa: F401
except ModuleNotFoundError:
    raise missing_component("torch", "train", "a metric") from None

from s2rm_data.metrics.binary import BinaryCounts
from s2rm_data.metrics.classes import ClassCounts

__all__ = ["BinaryCounts", "ClassCounts"]
