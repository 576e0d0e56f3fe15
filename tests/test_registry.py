import pytest

from s2rm_data.errors import UsageError
from s2rm_data.registry import Registry

STORE = Registry(
    package="s2rm_data.store",
    attribute="__name__",
    kind="part",
    entry_points="s2rm_data.parts",
    hint="look in the folder",
)


def test_every_module_of_the_package_is_an_entry() -> None:
    assert {"codec", "reader", "writer"} <= set(STORE.names())
    assert STORE.load("codec") == "s2rm_data.store.codec"


def test_an_unknown_name_gets_a_suggestion_and_the_choices() -> None:
    with pytest.raises(
        UsageError, match=r"no part 'reder'; did you mean 'reader'\? The choices are .*look in the folder"
    ):
        STORE.load("reder")
