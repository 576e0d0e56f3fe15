"""What messages say beside the fault itself."""

from __future__ import annotations

import pytest

from s2rm_data.core.errors import did_you_mean

NAMES = ["train", "val"]


@pytest.mark.parametrize(
    ("name", "then", "said"),
    [
        ("trian", "it has train, val", "; did you mean 'train'? It has train, val"),
        ("gravity", "it has train, val", "; it has train, val"),
        ("trian", "", "; did you mean 'train'?"),
        ("gravity", "", ""),
    ],
)
def test_a_suggestion_is_a_sentence_and_what_is_allowed_the_next_one(name: str, then: str, said: str) -> None:
    assert did_you_mean(name, NAMES, then) == said
