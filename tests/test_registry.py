from pathlib import Path

import pytest

from s2rm_data.errors import UsageError
from s2rm_data.registry import Registry, load_plugin

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


@pytest.mark.parametrize("listed", ["[1, 2]", "{1: 2}", "'x'", "3"])
def test_a_plug_in_that_lists_what_is_no_table_is_named(tmp_path: Path, listed: str) -> None:
    plugin = tmp_path / f"lists_{abs(hash(listed))}.py"
    plugin.write_text(f"MODELS = {listed}\n")
    with pytest.raises(UsageError, match=r"has a MODELS that is not a dict such as"):
        load_plugin(str(plugin))
