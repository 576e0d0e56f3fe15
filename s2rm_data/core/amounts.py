"""Amounts as people write and read them: sizes and durations."""

from __future__ import annotations

import re

from s2rm_data.core.errors import UsageError

_UNITS = {"": 1, **{f"{prefix}b": 1000**n for n, prefix in enumerate(("", "k", "m", "g", "t"))}}
_UNITS |= {f"{prefix}ib": 1024**n for n, prefix in enumerate(("", "k", "m", "g", "t")) if n}


def human(nbytes: float) -> str:
    """1234567 -> `1.2 MB` (powers of ten)."""
    for unit in ("B", "kB", "MB", "GB"):
        if nbytes < 1000:
            return f"{nbytes:.0f} {unit}" if unit == "B" else f"{nbytes:.1f} {unit}"
        nbytes /= 1000
    return f"{nbytes:.1f} TB"


def size_nbytes(text: str) -> int:
    """`50GB` -> 50,000,000,000; also MB, TB, and GiB of powers of two."""
    match = re.fullmatch(r"\s*(\d{1,15}(?:\.\d{1,6})?)\s*([A-Za-z]*)\s*", text)
    if match is None or match[2].lower() not in _UNITS or float(match[1]) * _UNITS[match[2].lower()] < 1:
        raise UsageError(f"{text!r} is not a size; write it as 50GB, 800MB or 1.5TB")
    return int(float(match[1]) * _UNITS[match[2].lower()])


def duration(seconds: float) -> str:
    """`40 s`, `3 min 40 s` or `2 h 08 min`."""
    seconds = int(seconds)
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60:02d} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60:02d} min"
