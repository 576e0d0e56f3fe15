"""Numbers for people."""

from __future__ import annotations


def human(nbytes: float) -> str:
    """1234567 -> `1.2 MB` (powers of ten)."""
    for unit in ("B", "kB", "MB", "GB"):
        if nbytes < 1000:
            return f"{nbytes:.0f} {unit}" if unit == "B" else f"{nbytes:.1f} {unit}"
        nbytes /= 1000
    return f"{nbytes:.1f} TB"
