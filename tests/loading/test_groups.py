from __future__ import annotations

import pytest

from s2rm_data.errors import UsageError
from s2rm_data.loading import groups_of, open_source, tasks_of
from s2rm_data.store import Store


def test_the_groups_of_a_split_are_those_of_all_scenarios(store: Store) -> None:
    assert groups_of(store, "bballs", "train") == ["bballs/train"]
    assert groups_of(store, "sc2", "train") == ["sc2/1s2z/train", "sc2/2s3z/train"]
    assert tasks_of(store) == ["bballs", "sc2"]


def test_a_split_that_is_not_there_is_refused_with_what_is(store: Store) -> None:
    with pytest.raises(UsageError, match=r"no split 'test_9'.*did you mean 'test_.'.*bballs/test_1"):
        open_source(store, "bballs", "test_9")


def test_limit_takes_the_first_sequences(store: Store) -> None:
    assert len(open_source(store, "bballs", "train", limit=5)) == 5
    assert len(open_source(store, "sc2", "train", limit=2)) == 4
