"""StarCraft II micro battles, played by scripted policies and seen through each agent's polar images."""

from s2rm_data.generators.sc2.world import WORLD

__all__ = ["WORLD"]
