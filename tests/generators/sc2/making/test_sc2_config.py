"""Bad settings are refused with a message that names them; good ones survive JSON."""

from typing import Any

import pytest

from s2rm_data.core.check import from_json, to_json
from s2rm_data.core.errors import UsageError
from s2rm_data.generators.sc2.making.battle_config import PAPER_TEST, PAPER_TRAINING, Sc2Config


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"scenario": "3s5x"}, "3s5z"),
        ({"steps": 0}, "steps is 0"),
        ({"policy": "kiet"}, "kite"),
        ({"epsilon": 1.5}, "epsilon is 1.5"),
        ({"epsilon": float("nan")}, "epsilon"),
        ({"radial": 1}, "radial is 1"),
        ({"angular": 33}, "angular is 33"),
        ({"radius": -1.0}, "radius is -1"),
    ],
)
def test_bad_values_are_refused_by_name(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Sc2Config(**{"scenario": "3s5z", **wrong})


def test_epsilon_defaults_to_the_policys_own() -> None:
    assert Sc2Config(scenario="3s5z").epsilon == 0.05
    assert Sc2Config(scenario="3s5z", policy="smac").epsilon == 0.0
    assert Sc2Config(scenario="3s5z", policy="smac", epsilon=0.2).epsilon == 0.2


@pytest.mark.parametrize("scenario", PAPER_TRAINING + PAPER_TEST)
def test_a_config_comes_back_from_json_unchanged(scenario: str) -> None:
    config = Sc2Config(scenario=scenario, radius=8)
    assert from_json(Sc2Config, to_json(config)) == config
