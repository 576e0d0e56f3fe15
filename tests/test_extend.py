"""What plug-ins may import: every name is there, and the page on Python lists it."""

from __future__ import annotations

import re
from pathlib import Path

from s2rm_data import extend

PAGE = Path(__file__).parents[1] / "docs/api.md"


def test_every_name_can_be_loaded_and_is_what_it_says() -> None:
    assert set(extend._MODULES) == set(extend.__all__)
    for name in extend.__all__:
        assert getattr(extend, name) is not None, name


def test_the_page_lists_every_name_and_no_other() -> None:
    section = PAGE.read_text().split("## What plug-ins may import")[1].split("\n## ")[0].split("```")[0]
    named = set(re.findall(r"`(\w+)`", section))
    assert set(extend.__all__) <= named
    assert named - set(extend.__all__) <= {"s2"}
