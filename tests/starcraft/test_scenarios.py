from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from s2rm_data.core.errors import UsageError
from s2rm_data.starcraft import scenarios
from s2rm_data.starcraft.formation import formation, formations
from s2rm_data.starcraft.scenarios import SMAC, parse
from s2rm_data.starcraft.units import UNIT_TYPES, contact_distance

# SMAC's map registry: agents, enemies, limit
REGISTRY = {
    "3m": (3, 3, 60),
    "8m": (8, 8, 120),
    "25m": (25, 25, 150),
    "5m_vs_6m": (5, 6, 70),
    "8m_vs_9m": (8, 9, 120),
    "10m_vs_11m": (10, 11, 150),
    "27m_vs_30m": (27, 30, 180),
    "MMM": (10, 10, 150),
    "MMM2": (10, 12, 180),
    "2s3z": (5, 5, 120),
    "3s5z": (8, 8, 150),
    "3s5z_vs_3s6z": (8, 9, 170),
    "3s_vs_3z": (3, 3, 150),
    "3s_vs_4z": (3, 4, 200),
    "3s_vs_5z": (3, 5, 250),
    "1c3s5z": (9, 9, 180),
    "2m_vs_1z": (2, 1, 150),
    "corridor": (6, 24, 400),
    "6h_vs_8z": (6, 8, 150),
    "2s_vs_1sc": (2, 1, 300),
    "so_many_baneling": (7, 32, 100),
    "bane_vs_bane": (24, 24, 200),
    "2c_vs_64zg": (2, 64, 400),
}


def army(scenario: scenarios.Scenario, side: str) -> dict[str, int]:
    counts: dict[str, int] = {}
    for squad in getattr(scenario, side):
        name = UNIT_TYPES[squad.unit_type].name
        counts[name] = counts.get(name, 0) + squad.count
    return counts


def test_all_23_smac_maps_have_the_registrys_sizes_and_limits() -> None:
    known = {name: (s.agent_count, s.enemy_count, s.limit_steps) for name, s in SMAC.items()}
    assert known == REGISTRY


@pytest.mark.parametrize(
    ("name", "agents", "enemies"),
    [
        ("1c3s5z", {"colossus": 1, "stalker": 3, "zealot": 5}, None),
        ("MMM2", {"marine": 7, "marauder": 2, "medivac": 1}, {"marine": 8, "marauder": 3, "medivac": 1}),
        ("5s3z", {"stalker": 5, "zealot": 3}, None),
        ("1s2z", {"stalker": 1, "zealot": 2}, None),
        ("2s5z", {"stalker": 2, "zealot": 5}, None),
        ("7s4z_vs_3c", {"stalker": 7, "zealot": 4}, {"colossus": 3}),
        (
            "2m1mr1mv_vs_4h2zg1b",
            {"marine": 2, "marauder": 1, "medivac": 1},
            {"hydralisk": 4, "zergling": 2, "baneling": 1},
        ),
        ("bane_vs_bane", {"zergling": 20, "baneling": 4}, None),
        ("3m_vs_1sc", {"marine": 3}, {"spine_crawler": 1}),
    ],
)
def test_a_name_spells_both_armies(name: str, agents: dict[str, int], enemies: dict[str, int] | None) -> None:
    assert army(parse(name), "agents") == agents
    assert army(parse(name), "enemies") == (enemies or agents)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("3s5x", r"no scenario .3s5x.; did you mean .3s5z.\?"),
        ("", "no scenario ''"),
        ("3s_vs_", "no scenario"),
        ("s3", "no scenario"),
        ("3s 5z", "no scenario"),
        ("0s5z", "counts zero"),
        ("3s2s", "names a unit twice"),
        ("2mv", "no unit that can fight"),
        ("1sc", "enemies' side only"),
    ],
)
def test_a_name_that_spells_nothing_is_a_clear_error(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse(name)


def test_an_army_that_does_not_fit_the_map_is_a_clear_error() -> None:
    with pytest.raises(UsageError, match=r"does not fit.*room for [0-9]+.*take fewer"):
        formation(parse("500z"))


def test_agents_stand_in_smacs_order_of_type_then_x_then_y() -> None:
    for name in (*SMAC, *scenarios.PAPER_EXTRA):
        scenario = parse(name)
        start = formation(scenario)
        n = scenario.agent_count
        names = [UNIT_TYPES[int(number)].name for number in start.unit_type[:n]]
        keys = [(kind, *point) for kind, point in zip(names, start.position[:n].tolist(), strict=True)]
        assert keys == sorted(keys)


def test_nobody_starts_inside_another() -> None:
    for name in (*SMAC, *scenarios.PAPER_EXTRA):
        for _, start in formations(parse(name)):
            kinds = [UNIT_TYPES[int(number)] for number in start.unit_type]
            apart = np.array([[contact_distance(unit, other) for other in kinds] for unit in kinds])
            gaps = np.sqrt(((start.position[:, None] - start.position[None]) ** 2).sum(axis=-1))
            np.fill_diagonal(gaps, np.inf)
            assert (gaps >= apart - 1e-9).all(), name


def offsets(name: str, *, mirrored: bool = False) -> tuple[set[tuple[float, ...]], set[tuple[float, ...]]]:
    (_, start), *_ = formations(parse(name), mirrored=mirrored)
    n = parse(name).agent_count
    shift = np.array([7.0, 0.0])
    west, east = start.position[:n] + shift, start.position[n:] - shift
    return tuple(
        {(int(kind), *point) for kind, point in zip(kinds, np.round(points, 9).tolist(), strict=True)}
        for kinds, points in ((start.unit_type[:n], west), (start.unit_type[n:], east))
    )  # type: ignore[return-value]


def test_the_enemies_stand_as_the_agents_do_shifted() -> None:
    west, east = offsets("8m")
    assert west == east


def test_mirrored_armies_start_as_mirror_images() -> None:
    west, east = offsets("3s5z", mirrored=True)
    assert west == {(kind, -x + 0.0, y) for kind, x, y in east}


FACTS = json.loads((Path(__file__).parent / "recordings" / "game.json").read_text(encoding="utf-8"))["formations"]


@pytest.mark.parametrize("name", FACTS)
def test_formations_are_the_recorded_ones(name: str) -> None:
    """Every recorded spot is one of the formations', to 0.001 (0.006 where only the cell was recorded), as often."""
    scenario = parse(name)
    slack = 0.006 if name == "2c_vs_64zg" else 0.001
    for squad in scenario.agents:
        kind = UNIT_TYPES[squad.unit_type].name
        for spots in FACTS[name][kind]:
            for (dx, dy), share in spots:
                point = np.array(squad.spawn) + np.array([dx, dy]) - 16
                chance = sum(
                    weight
                    for weight, start in formations(scenario)
                    if (np.abs(start.position[start.unit_type == squad.unit_type][: squad.count] - point) < slack)
                    .all(axis=1)
                    .any()
                )
                assert chance == pytest.approx(share, abs=0.1)
