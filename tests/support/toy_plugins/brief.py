"""A preset in one file: two steps of what `smoke` does."""

from __future__ import annotations

from s2rm_data.extend import Preset

PRESET = Preset(like="smoke", fields={"steps": 2, "validate_every": 2})
