"""Games that the served engine plays."""

from served_games import game_folder, games, sc2path

__all__ = ["game_folder", "games", "sc2path"]
