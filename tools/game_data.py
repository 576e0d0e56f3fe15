"""Read the numbers of SMAC's units from the game's own XML, and write them as JSON.

    python tools/game_data.py --game SC2GameData/.git --maps smac/env/starcraft2/maps/SMAC_Maps

`--game` is a git directory of github.com/SC2Mapster/SC2GameData. SMAC's maps depend on Liberty, and the running game
lays VoidMulti over it; Swarm does not apply. `--maps` are SMAC's map files, which bring units of their own for the
agents (read with mpyq, which PySC2 installs).

An entry of a catalogue is what the default of its class says, then its parent, then itself in each mod in turn. What
is written are the numbers of each unit and of all that its weapons and its healing lead to, without what has no part
in a battle (`NO_PART`): the extract that tests/starcraft/test_units.py holds the engine's tables against.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

EXTRACT = Path(__file__).parents[1] / "tests" / "starcraft" / "game_data.json"
COMMIT = "c97833a005e711989180e4d46ff9fc597e1269cc"  # game 4.10.4.76811
MODS = ("core", "liberty", "voidmulti")
UNITS = {
    "marine": "Marine",
    "marauder": "Marauder",
    "medivac": "Medivac",
    "stalker": "Stalker",
    "zealot": "Zealot",
    "colossus": "Colossus",
    "hydralisk": "Hydralisk",
    "zergling": "Zergling",
    "baneling": "Baneling",
    "spine_crawler": "SpineCrawler",
}
ABILITIES = ("MedivacHeal",)  # of what SMAC can order; attack, move and stop have no numbers of a unit's own
KINDS = ("Unit", "Weapon", "Effect", "Mover", "Abil", "Validator", "Game")
GAME = (
    "AcquireMovementLimit",
    "AcquireLeashRadius",
    "AcquireLeashResetRadius",
    "CallForHelpPeriod",
    "CallForHelpRadius",
    "DamageMinimum",
)
# Pictures, sounds, names, buttons and menus; costs, cargo, scores and experience; what computer opponents weigh; fog,
# creep, placing and revival; what upgrades, abilities and buildings would need that nobody has in SMAC.
NO_PART = re.compile(
    r"^AI|\.AI|Abort|Acquire(Player|Priority)$|Alert|Alias|Alignment|ArmorDisabled|ArmySelect|AbilSetId|Behavior|Button|"
    r"Camera|CardLayouts|Cargo|Categor|Chance|ClearRally|Cost(?!Factor)|Count$(?<!PeriodCount)|Death(?!Type)|Description|"
    r"Display|Editor|Equipment|Error|Facing|Fidget|Fog|Food|Footprint|Glossary|Hotkey|Icon|Info|Invulnerable|Kill|Leader|"
    r"Marker|Message|Minimap|Mob$|Name|Notif|Occlude|OrderArray|Pauseable|Pawn|Penalty|Placement|Portrait|Power|"
    r"Preemptable|PreventDe|Progress|Race|Rank|Refund|Repair|Resource|RestoreHeight|Return|Reviv|Rotation|Score|SetLast|"
    r"SharedFlags|Show|Smart|Sound|Subgroup|Tactical|Taunt|Teleport|Tip|Tooltip|TownAlert|^Turret|Unclick|Unhigh|Untool|"
    r"UpdateCharges|UseMarker|Validate|Visibility|VisionHeight|WaitToSpend|XP$|Creep$|ActorTracking|IgnoresTerrain|YawPitch"
)
# Of the fields that hold words, those that say what a unit does; the others name entries, which are followed.
WORDS = {
    *("AcquireFilters", "AcquirePrioritization", "AllowedMovement", "AutoCastAcquireLevel", "AutoCastFilters"),
    *("DefaultAcquireLevel", "Driver", "ImpactLocation", "PathMode", "Response", "SearchFilters", "SortArray"),
    *("TargetFilters", "WeaponArray", "WhichLocation"),
}
Fields = dict[str, Any]


def number(text: str) -> Any:
    """A number, a list of them, or the text where it is neither."""
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        return text
    numbers = [int(value) if value == int(value) else value for value in values]
    return numbers if len(numbers) > 1 else numbers[0]


def value_of(element: ET.Element) -> Any:
    """What a field says: its value, or its attributes and children by name."""
    attributes = {key: number(text) for key, text in element.attrib.items() if key not in ("index", "removed")}
    if len(attributes) == 1 and not len(element) and set(attributes) <= {"value", "Value", "Link"}:
        return next(iter(attributes.values()))
    for child in element:
        put(attributes, child)
    return attributes


def put(fields: Fields, element: ET.Element) -> None:
    """Lay one field of an entry over what is known of it: under its index, appended to a list, or in its place."""
    name, index = element.tag, element.get("index")
    if NO_PART.search(name if index is None else f"{name}.{index}"):
        return
    if index is not None and not index.isdigit():
        fields[f"{name}.{index}"] = value_of(element)
    elif name.endswith("Array") or name in ("Movers", "MotionPhases"):
        entries = fields[name] = list(fields.get(name, ()))
        if index is None or int(index) >= len(entries):
            entries.append(value_of(element))
        elif element.get("removed"):
            del entries[int(index)]
        else:
            entries[int(index)] = value_of(element)
    else:
        fields[name] = value_of(element)


def leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The single values below a field, each with its name."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from leaves(f"{name}.{key}", part)
    elif isinstance(value, list) and not all(isinstance(part, int | float) for part in value):
        for place, part in enumerate(value):
            yield from leaves(f"{name}.{place}", part)
    else:
        yield name, value


def all_leaves(fields: Fields) -> list[tuple[str, Any]]:
    return [leaf for name, value in fields.items() for leaf in leaves(name, value)]


def numbers(fields: Fields) -> Fields:
    """What an entry says in numbers, and in the words that count."""
    return {
        name: value
        for name, value in sorted(all_leaves(fields))
        if (value != "Unknown" and not WORDS.isdisjoint(name.split(".")))
        or (value != [] and not isinstance(value, str))
    }


def catalogue_of(kind: str, field: str) -> str:
    """In which catalogue the words stand that a field of an entry of this kind holds; an empty string for none."""
    field = field.split(".")[0]
    if kind == "Unit":
        return {"WeaponArray": "Weapon", "AbilArray": "Abil", "Mover": "Mover"}.get(field, "")
    if "Effect" in field or field in ("AreaArray", "CaseArray"):
        return "Effect"
    return {"AmmoUnit": "Unit", "Movers": "Mover", "AutoCastValidatorArray": "Validator"}.get(field, "")


class Catalogues:
    """The entries of all mods by kind and id, and the defaults of their classes."""

    def __init__(self) -> None:
        self.entries: dict[tuple[str, str], list[ET.Element]] = {}
        self.defaults: dict[str, list[ET.Element]] = {}

    def add(self, kind: str, text: str) -> None:
        for element in ET.fromstring(text):
            if not element.tag.startswith("C"):  # a constant
                continue
            if ident := element.get("id"):
                self.entries.setdefault((kind, ident), []).append(element)
            elif element.get("default"):
                self.defaults.setdefault(element.tag, []).append(element)

    def fields(self, kind: str, ident: str) -> Fields:
        return json.loads(json.dumps(self.laid(kind, ident)).replace("##id##", ident))

    def laid(self, kind: str, ident: str) -> Fields:
        """The fields of an entry: its parent's or its class's, and over them its own of each mod in turn."""
        layers = self.entries[kind, ident]
        fields: Fields = {}
        if parent := layers[0].get("parent"):
            fields = self.laid(kind, parent)
        else:
            classes = sorted((name for name in self.defaults if layers[0].tag.startswith(name)), key=len)
            layers = [element for name in classes for element in self.defaults[name]] + layers
        for child in (child for element in layers for child in element):
            put(fields, child)
        return fields

    def game(self) -> Fields:
        """What holds for the whole game."""
        rules = {
            child.tag: child for kind in ("CGame", "CGameplay") for e in self.defaults.get(kind, ()) for child in e
        }
        if missing := sorted(set(GAME) - set(rules)):
            raise SystemExit(f"the game's data have no {', '.join(missing)}; known are {', '.join(sorted(rules))}")
        return {name: value_of(rules[name]) for name in GAME}

    def reach(self, kind: str, ident: str, found: dict[str, Fields]) -> None:
        """Add the numbers of an entry, and of all entries it leads to, to `found`."""
        key = f"{kind} {ident}"
        if key in found or (kind, ident) not in self.entries or (kind == "Abil" and ident not in ABILITIES):
            return
        fields = self.fields(kind, ident)
        found[key] = {} if fields.get("FlagArray.Missile") else numbers(fields)
        for name, value in all_leaves(fields):
            if isinstance(value, str) and (catalogue := catalogue_of(kind, name)):
                self.reach(catalogue, value, found)


def git(folder: Path, *arguments: str) -> str:
    answer = subprocess.run(["git", "--git-dir", str(folder), *arguments], capture_output=True, text=True)
    if answer.returncode:
        raise SystemExit(f"{folder} does not give {arguments[-1]}: {answer.stderr.strip()}")
    return answer.stdout


def differences(ours: Fields, theirs: Fields) -> Fields:
    return {key: ours.get(key) for key in sorted(ours | theirs) if ours.get(key) != theirs.get(key)}


def agents(folder: Path, game: Catalogues, units: dict[str, dict[str, Fields]]) -> dict[str, Fields]:
    """What the maps' own units have otherwise than the game's. All maps agree."""
    import mpyq

    names = {ident: name for name, ident in UNITS.items()}
    found: dict[str, Fields] = {}
    for path in sorted(folder.glob("*.SC2Map")):
        catalogue = mpyq.MPQArchive(str(path)).read_file("Base.SC2Data\\GameData\\UnitData.xml").decode()
        for element in ET.fromstring(catalogue):
            copied = element.find("ReviveType")
            if copied is None:  # a field of the game's own unit: that it counts for no supply
                assert {child.tag for child in element} == {"Food"}, f"{path.name} changes {element.get('id')}"
                continue
            name = names[copied.attrib["value"]]
            game.entries["Unit", "agent"] = [element]
            changed = differences(numbers(game.fields("Unit", "agent")), units[name][f"Unit {UNITS[name]}"])
            assert found.setdefault(name, changed) == changed, f"{path.name} has another {name}: {changed}"
    if not found:
        raise SystemExit(f"{folder} has no .SC2Map with units of its own; give the folder SMAC_Maps of SMAC")
    return {name: found[name] for name in UNITS if name in found}


def document(game: Path, commit: str, maps: Path) -> dict[str, Any]:
    catalogues = Catalogues()
    for mod, kind in itertools.product(MODS, KINDS):
        path = f"mods/{mod}.sc2mod/base.sc2data/GameData/{kind}Data.xml"
        catalogues.add(kind, git(game, "show", f"{commit}:{path}"))
    units: dict[str, dict[str, Fields]] = {name: {} for name in UNITS}
    for name, ident in UNITS.items():
        catalogues.reach("Unit", ident, units[name])
        units[name] = {key: fields for key, fields in units[name].items() if fields}
    source = {
        "repository": "github.com/SC2Mapster/SC2GameData",
        "commit": git(game, "rev-parse", commit).strip(),
        "subject": git(game, "log", "-1", "--format=%s", commit).strip(),
        "mods": list(MODS),
        "maps": sorted(path.stem for path in maps.glob("*.SC2Map")),
    }
    theirs = agents(maps, catalogues, units)
    return {"source": source, "game": catalogues.game(), "units": units, "agents": theirs}


def written(value: Any, depth: int = 0) -> str:
    """JSON with one line for each entry of a catalogue."""
    if not isinstance(value, dict) or not any(isinstance(part, dict) for part in value.values()):
        return json.dumps(value)
    rows = (f"{' ' * (depth + 1)}{json.dumps(key)}: {written(part, depth + 1)}" for key, part in value.items())
    return "{\n" + ",\n".join(rows) + f"\n{' ' * depth}}}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--game", type=Path, required=True, help="git directory of SC2Mapster/SC2GameData")
    parser.add_argument("--commit", default=COMMIT, help="its commit (default: %(default)s)")
    parser.add_argument("--maps", type=Path, required=True, help="folder with SMAC's map files")
    parser.add_argument("--out", type=Path, default=EXTRACT, help="where to write (default: %(default)s)")
    options = parser.parse_args()
    options.out.write_text(written(document(options.game, options.commit, options.maps)) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
