"""Configs: the paper's tables are the defaults, and wrong values get a clear message."""

from __future__ import annotations

from itertools import product

import pytest

from s2rm_data.core.check import from_json, to_json
from s2rm_data.core.errors import UsageError
from s2rm_data.core.registry import MODELS
from s2rm_data.models import build, config_for, summaries

# Tables tab:bb_hparams and tab:sc2_hparams, by the config's names.
S2RM = {"modules": 10, "hidden_size": 128, "bandwidth": 1.0, "input_heads": 2, "cell_heads": 4, "key_size": 16}
PAPER = {
    ("s2gru", "bballs"): {**S2RM, "encoding_size": 128, "embedding_size": 16, "truncation": 0.6},
    ("s2gru", "sc2"): {**S2RM, "encoding_size": 128, "embedding_size": 8, "truncation": 0.5},
    ("s2rmc", "sc2"): {
        **S2RM,
        "embedding_size": 8,
        "truncation": 0.5,
        "heads": 4,
        "head_size": 64,
        "slots": 4,
        "memory_key_size": 64,
    },
    ("rmc", "bballs"): {"heads": 4, "head_size": 128, "slots": 1, "key_size": 128},
    ("rmc", "sc2"): {"heads": 4, "head_size": 128, "slots": 1, "key_size": 16},
    ("lstm", "bballs"): {"hidden_size": 512},
    ("lstm", "sc2"): {"hidden_size": 2048},
    ("rims", "bballs"): {
        "blocks": 6,
        "active_blocks": 5,
        "hidden_size": 510,
        "input_key_size": 32,
        "input_value_size": 400,
    },
    ("tto", "bballs"): {"hidden_size": 512},
    ("tto", "sc2"): {"hidden_size": 512},
}


def test_defaults_are_those_of_the_papers_tables():
    for (name, task), fields in PAPER.items():
        config = config_for(name, task)
        assert {key: getattr(config, key) for key in fields} == fields, (name, task)


def test_the_six_models_and_the_reference_are_found_by_name():
    assert MODELS.names() == ["conv_gru", "lstm", "no_memory", "rims", "rmc", "s2gru", "s2rmc", "tto"]


def test_configs_go_to_json_and_back():
    for name, task in product(MODELS.names(), ("bballs", "sc2")):
        config = config_for(name, task)
        assert from_json(type(config), to_json(config)) == config, (name, task)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"hiden_size": 3}, "did you mean 'hidden_size'"),
        ({"hidden_size": 0}, "hidden_size is 0; it must be a whole number from 1 to 65536$"),
        ({"hidden_size": 2.5}, "a whole number"),
        ({"hidden_size": 10**6}, "from 1 to 65536"),
        ({"modules": 10**4}, "from 1 to 1024"),
        ({"codec": "convolution"}, "no codec 'convolution'"),
        ({"embedding_size": 6}, "a multiple of 4"),
        ({"truncation": 1.0}, "a number of at least -1 and below 1"),
        ({"truncation": "high"}, "a number"),
        ({"image_size": (11,)}, "a list of 2, each a whole number"),
        ({"image_size": 11}, "a list of 2, each a whole number"),
        ({"position_scale": float("nan")}, "a number above 0"),
        ({"inject_position": 1}, "true or false"),
    ],
)
def test_a_wrong_override_is_named_with_what_is_allowed(overrides, message):
    with pytest.raises(UsageError, match=message):
        build("s2gru", task="bballs", **overrides)


def test_unknown_models_and_tasks_get_a_suggestion():
    with pytest.raises(UsageError, match="did you mean 's2gru'"):
        build("s2gr", task="bballs")
    with pytest.raises(UsageError, match="did you mean 'bballs'"):
        build("s2gru", task="bball")


def test_rims_blocks_must_divide_the_hidden_size_and_bound_the_active():
    with pytest.raises(UsageError, match="multiple of blocks"):
        build("rims", task="bballs", blocks=7)
    with pytest.raises(UsageError, match="at most blocks"):
        build("rims", task="bballs", active_blocks=7)


def test_the_list_of_models_counts_parameters_without_making_them():
    listed = {(s.name, s.task): s.parameters for s in summaries()}
    assert len(listed) == 16
    assert listed["s2gru", "bballs"] == build("s2gru", task="bballs").parameter_count()
    assert listed["rims", "sc2"] == build("rims", task="sc2").parameter_count()
