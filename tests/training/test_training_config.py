from __future__ import annotations

from itertools import product

import pytest
import torch

from s2rm_data.core.check import from_json, to_json
from s2rm_data.core.errors import UsageError
from s2rm_data.core.registry import MODELS, PRESETS
from s2rm_data.store import Store
from s2rm_data.training.config import TrainConfig, parse_assignments, preset_fields, preset_model_fields, settable_names
from s2rm_data.training.resolve import Overrides, machine_fields, resolve

TASKS = ("bballs", "sc2")


def config(**fields) -> TrainConfig:
    return TrainConfig(**{"task": "bballs", "model": "s2gru", "preset": "paper", **fields})


def test_no_field_of_a_model_has_the_name_of_a_field_of_the_run() -> None:
    for model, task in product(MODELS.names(), TASKS):
        own, of_model = settable_names(model, task)
        assert not set(own) & set(of_model), (model, task)


def test_every_preset_gives_a_valid_config_that_survives_json() -> None:
    for preset, model, task in product(PRESETS.names(), MODELS.names(), TASKS):
        fields = {**preset_fields(preset, model, task), "model_fields": preset_model_fields(preset, model, task)}
        made = TrainConfig(task=task, model=model, preset=preset, **fields)
        assert from_json(TrainConfig, to_json(made)) == made, (preset, model, task)


def test_the_preset_paper_is_the_papers_protocol() -> None:
    balls, battles = (
        TrainConfig(task=t, model="s2gru", preset="paper", **preset_fields("paper", "s2gru", t))
        for t in ("bballs", "sc2")
    )
    assert (balls.lr, balls.epochs, balls.batch_size, battles.batch_size) == (3e-4, 100, 32, 8)
    assert (balls.plateau_factor, balls.plateau_patience, balls.plateau_threshold) == (0.5, 5, 1e-4)
    assert (balls.steps, balls.window, balls.schedule) == (None, None, "plateau")


def test_fine_tuning_follows_the_rate(store: Store) -> None:
    def rates(preset: str, **fields: float) -> tuple[float, float | None]:
        made = resolve(store, Overrides(task="bballs", preset=preset, device="cpu", fields=fields), lambda text: None)
        return made.lr, made.fine_tuning_lr

    assert rates("paper", lr=1e-5) == (1e-5, None)  # the same
    first, tuned = rates("laptop")
    assert rates("laptop", lr=first / 2) == (first / 2, pytest.approx(tuned / 2))
    assert rates("laptop", lr=1e-5, fine_tuning_lr=1e-6) == (1e-5, 1e-6)


@pytest.mark.parametrize("bfloat16", [True, False])
def test_mixed_precision_is_the_default_where_the_gpu_has_bfloat16(
    bfloat16: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, bool]] = []
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda **options: asked.append(options) or bfloat16)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (8, 0))
    assert machine_fields(torch.device("cuda", 0))["precision"] == ("mixed" if bfloat16 else "float32")
    assert asked == [{"including_emulation": False}]


@pytest.mark.parametrize(("capability", "compiles"), [((6, 1), False), ((7, 0), True), ((9, 0), True)])
def test_cards_that_the_compiler_does_not_know_run_without_it(
    capability: tuple[int, int], compiles: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda **options: False)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    assert machine_fields(torch.device("cuda", 0))["compile"] is compiles


def test_an_unknown_field_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(UsageError, match=r"no config field 'hiden_size'; did you mean 'hidden_size'\?"):
        config().with_fields({"hiden_size": 3})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"batch_size": 0}, "batch_size is 0"),
        ({"lr": -1.0}, "lr is -1.0"),
        ({"lr": float("nan")}, "lr is nan"),
        ({"epochs": True}, "epochs is True"),
        ({"schedule": "linear"}, "schedule is 'linear'; it must be one of plateau, cosine"),
        ({"seed": 10**20}, "seed is 1{1}0{20}; it must be a whole number from 0 to 9223372036854775807"),
        ({"threads": 10**6}, "threads is 1000000; it must be a whole number from 1 to 1024"),
        ({"views": 10**9}, "views is 1000000000; it must be a whole number from 1 to 65536"),
        ({"batch_size": 10**9}, "from 1 to 65536"),
        ({"clip_norm": 0}, "clip_norm is 0; it must be a number above 0 and of at most 1e\\+09"),
        ({"plateau_factor": 1.0}, "a number of at least 0 and below 1"),
        ({"compile": 1}, "compile is 1; it must be true or false"),
        ({"model": "s2gro"}, "did you mean 's2gru'"),
        ({"task": "balls"}, "did you mean 'bballs'"),
        ({"model_fields": {"hidden_size": -4}}, "hidden_size"),
    ],
)
def test_a_value_out_of_range_is_refused_by_name(fields: dict, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        config(**fields)


def test_assignments_are_read_as_json_or_as_text() -> None:
    typed = ("steps=20", "lr=1e-3", "window=null", "codec=mlp", "image_size=[8, 16]", "compile=true")
    expected = {"steps": 20, "lr": 1e-3, "window": None, "codec": "mlp", "image_size": [8, 16], "compile": True}
    assert parse_assignments(typed) == expected
    with pytest.raises(UsageError, match="write --set key=value"):
        parse_assignments(("lr",))


def test_a_number_of_hundreds_of_digits_is_refused_in_a_short_message() -> None:
    with pytest.raises(UsageError, match=r"seed is 1{97}\.\.\.; it must be a whole number from 0"):
        config().with_fields(parse_assignments((f"seed={'1' * 900}",)))
