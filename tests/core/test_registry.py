import importlib
from pathlib import Path

import pytest

from s2rm_data.core.errors import UsageError
from s2rm_data.core.registry import Registry, load_plugin
from s2rm_data.starcraft.policies import POLICIES

FORMATS = Registry(package="s2rm_data.inspection.export", kind="export format", hint="look in the folder")


def test_every_module_of_the_package_is_an_entry() -> None:
    assert {"gif", "hdf5", "npz"} <= set(FORMATS.names())
    assert FORMATS.load("npz") is importlib.import_module("s2rm_data.inspection.export.npz").EXPORT_FORMAT


def test_names_of_exports_and_entry_points_follow_from_the_kind() -> None:
    assert (FORMATS.attribute, FORMATS.entry_points) == ("EXPORT_FORMAT", "s2rm_data.export_formats")
    assert POLICIES.entry_points == "s2rm_data.policies"


def test_an_unknown_name_gets_a_suggestion_and_the_choices() -> None:
    said = r"no export format 'hdf'; did you mean 'hdf5'\? The choices are .*look in the folder"
    with pytest.raises(UsageError, match=said):
        FORMATS.load("hdf")


@pytest.mark.parametrize("listed", ["[1, 2]", "{1: 2}", "'x'", "3"])
def test_a_plug_in_that_lists_what_is_no_table_is_named(tmp_path: Path, listed: str) -> None:
    plugin = tmp_path / f"lists_{abs(hash(listed))}.py"
    plugin.write_text(f"MODELS = {listed}\n")
    with pytest.raises(UsageError, match=r"has a MODELS that is not a dict such as"):
        load_plugin(str(plugin))
