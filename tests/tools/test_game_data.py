"""The tool that reads the game's XML: how an entry's fields follow from classes, parents and mods."""

import importlib
from pathlib import Path
from types import ModuleType

import pytest

CORE = """<Catalog>
    <CWeapon default="1"><Range value="5"/><Icon value="a.dds"/><Effect value="##id##"/></CWeapon>
    <CWeaponLegacy default="1"><Options index="Melee" value="0"/></CWeaponLegacy>
    <CWeaponLegacy default="1" id="HAND"><Options index="Melee" value="1"/><Range value="0.1"/></CWeaponLegacy>
</Catalog>"""
LIBERTY = """<Catalog>
    <const id="Claws" value="1"/>
    <CWeaponLegacy id="Claws" parent="HAND"><Period value="0.7"/></CWeaponLegacy>
    <CWeaponLegacy id="Rifle"><Period value="0.8"/><TargetFilters value="Ground"/></CWeaponLegacy>
</Catalog>"""
MULTI = """<Catalog>
    <CWeaponLegacy id="Rifle"><Period value="0.9"/><Options index="Melee" value="1"/></CWeaponLegacy>
</Catalog>"""


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "tools")
    return importlib.import_module("game_data")


def test_an_entry_is_its_class_its_parent_and_itself_in_each_mod(tool: ModuleType) -> None:
    catalogues = tool.Catalogues()
    for text in (CORE, LIBERTY, MULTI):
        catalogues.add("Weapon", text)
    rifle = {"Range": 5, "Effect": "Rifle", "Options.Melee": 1, "Period": 0.9, "TargetFilters": "Ground"}
    assert catalogues.fields("Weapon", "Rifle") == rifle
    assert catalogues.fields("Weapon", "Claws") == {"Range": 0.1, "Effect": "Claws", "Options.Melee": 1, "Period": 0.7}


def test_lists_grow_and_change_by_index(tool: ModuleType) -> None:
    catalogues = tool.Catalogues()
    catalogues.add("Effect", '<C><CEffect id="Burst"><PArray value="0"/><PArray value="0.28"/></CEffect></C>')
    catalogues.add("Effect", '<C><CEffect id="Burst"><PArray index="0" value="0.1"/></CEffect></C>')
    assert catalogues.fields("Effect", "Burst")["PArray"] == [0.1, 0.28]
    catalogues.add("Effect", '<C><CEffect id="Burst"><PArray index="1" removed="1"/></CEffect></C>')
    assert catalogues.fields("Effect", "Burst")["PArray"] == [0.1]


def test_what_a_unit_leads_to_is_found_and_words_that_name_entries_are_left_out(tool: ModuleType) -> None:
    catalogues = tool.Catalogues()
    catalogues.add("Unit", '<C><CUnit id="Marine"><WeaponArray Link="Rifle"/><Radius value="0.375"/></CUnit></C>')
    catalogues.add("Weapon", '<C><CWeapon id="Rifle"><Effect value="Hit"/><Range value="5"/></CWeapon></C>')
    catalogues.add("Effect", '<C><CEffect id="Hit"><Amount value="6"/></CEffect></C>')
    found: dict[str, dict[str, object]] = {}
    catalogues.reach("Unit", "Marine", found)
    assert found == {
        "Unit Marine": {"Radius": 0.375, "WeaponArray.0": "Rifle"},
        "Weapon Rifle": {"Range": 5},
        "Effect Hit": {"Amount": 6},
    }


def test_the_games_rules_must_be_there(tool: ModuleType) -> None:
    catalogues = tool.Catalogues()
    catalogues.add("Game", '<C><CGame default="1"><CallForHelpRadius value="4"/></CGame></C>')
    with pytest.raises(SystemExit, match="DamageMinimum"):
        catalogues.game()
