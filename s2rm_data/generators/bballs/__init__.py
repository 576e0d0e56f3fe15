"""Bouncing balls: `plan` says which splits a data set has, and each split makes its own sequences."""

from s2rm_data.generators.bballs.config import BallsConfig
from s2rm_data.generators.bballs.source import BallsSplit, plan

__all__ = ["BallsConfig", "BallsSplit", "plan"]
