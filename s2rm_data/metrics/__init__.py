"""Metrics of the paper and the references they are read beside; pure functions of tensors, on any device.

Counts are pooled over sequences, steps, queries and pixels before a score is taken of them.
"""

from __future__ import annotations

from s2rm_data.errors import missing_component

try:
    import torch as _torch  # noqa: F401
except ModuleNotFoundError:
    raise missing_component("torch", "train", "a metric") from None

from s2rm_data.metrics.balls import BALL_SCORES, BallCounts
from s2rm_data.metrics.binary import BinaryCounts
from s2rm_data.metrics.classes import ClassCounts
from s2rm_data.metrics.polar import PolarCounts
from s2rm_data.metrics.references import last_seen_canvas, seen_pixels

__all__ = [
    "BALL_SCORES",
    "BallCounts",
    "BinaryCounts",
    "ClassCounts",
    "PolarCounts",
    "last_seen_canvas",
    "seen_pixels",
]
