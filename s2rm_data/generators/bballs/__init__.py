"""Bouncing balls: 1 to 6 balls in a closed box with a fixed ball in its centre, seen through crops."""

from s2rm_data.generators.bballs.world import WORLD

__all__ = ["WORLD"]
