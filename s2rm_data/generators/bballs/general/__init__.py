"""Bouncing balls beyond the paper's: gravity, unequal balls, several fixed balls, inner walls, grey and colour."""
