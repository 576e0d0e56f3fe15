"""Training commands from files, sweeps, and runs told to other services."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from click.testing import CliRunner, Result
from PIL import Image
from program import run_forked
from small_stores import FRAMES

from s2rm_data.cli.run import printable
from s2rm_data.cli.train import parse_seeds, train
from s2rm_data.core.errors import ConflictError, S2RMError, UsageError
from s2rm_data.generators.bballs.making.ball_source import plan as plan_balls
from s2rm_data.making.run import generate
from s2rm_data.training.config import TrainConfig
from s2rm_data.training.config_file import Command, read_command, write_command
from s2rm_data.training.schedule import DivergedError
from s2rm_data.training.sweep import Sweep, rows, run_sweep

TINY = ["--preset", "smoke", "--steps", "2", "--set", "width=2", "--set", "threads=1", "--set", "held_out_sequences=2"]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("train") / "data.zarr"
    generate(plan_balls(balls=(3,), train=12, val=4, test=0, frames=FRAMES), path)
    return path


def typed(*words: object) -> Result:
    return CliRunner().invoke(train, [str(word) for word in words], standalone_mode=False)


def config_of(*words: object) -> dict[str, Any]:
    result = typed(*words, "--dry-run", "--json", "-q")
    assert result.exception is None, result.exception
    return dict(json.loads(result.stdout)["config"])


def test_a_sweep_is_one_command_with_one_table_that_can_be_resumed(store: Path, tmp_path: Path) -> None:
    words = ["--store", store, *TINY, "--set", "lr=1e-3,3e-3", "--seed", "0-1", "--out", tmp_path / "rates"]
    result = typed(*words)
    assert result.exception is None, result.exception
    head, *lines = result.stdout.splitlines()
    assert head.split() == ["setting", "seeds", "validation", "loss", "F1", "on", "val"]
    assert sorted(line.split()[0] for line in lines) == ["lr=0.001", "lr=0.003"]
    assert "run 4 of 4: lr=0.003,seed=1" in result.stderr
    assert (tmp_path / "rates" / "lr=0.001,seed=1" / "summary.json").exists()
    assert isinstance(typed(*words).exception, ConflictError)
    (tmp_path / "rates" / "lr=0.003,seed=1" / "summary.json").unlink()
    again = typed(*words, "--resume")
    assert again.stdout == result.stdout
    assert again.stderr.count("is complete already") == 3
    other = typed(*[word if word != "0-1" else "0-2" for word in words], "--resume")
    assert isinstance(other.exception, ConflictError)


def test_a_run_that_diverges_does_not_end_a_sweep(tmp_path: Path) -> None:
    tried: list[float] = []

    def learn(point: dict[str, Any], out: Path) -> dict[str, Any]:
        tried.append(point["lr"])
        if point["lr"] > 1:
            raise DivergedError("not finite")
        return {"best_validation_loss": point["lr"], "held_out": {"val": {"f1": 0.5}}}

    sweep = Sweep({"lr": [9.0, 0.5, 0.1]})
    found = run_sweep(sweep, tmp_path / "sweep", learn, resume=False)
    assert [row.fields["lr"] for row in rows(found, "f1")] == [0.1, 0.5, 9.0]
    assert [row.diverged for row in rows(found, "f1")] == [0, 0, 1]
    run_sweep(sweep, tmp_path / "sweep", learn, resume=True)
    assert tried == [9.0, 0.5, 0.1, 0.5, 0.1]  # what diverged is not tried again


def test_a_saved_command_gives_the_same_config_again(store: Path, tmp_path: Path) -> None:
    words = ["--store", store, *TINY, "--model", "lstm", "--seed", 3, "--set", "clip_norm=null"]
    file = tmp_path / "train.toml"
    assert typed(*words, "--save-config", file).exception is None
    assert config_of("--config", file) == config_of(*words)
    changed = config_of("--config", file, "--epochs", "2", "--seed", "4")
    assert (changed["epochs"], changed["steps"], changed["seed"], changed["model"]) == (2, None, 4, "lstm")


def test_a_file_may_hold_a_sweep(store: Path, tmp_path: Path) -> None:
    file = tmp_path / "train.toml"
    words = ["--store", store, *TINY, "--out", tmp_path / "runs", "--set", "lr=1e-3,3e-3"]
    assert typed(*words, "--save-config", file).exception is None
    assert "[sweep]\nlr = [0.001, 0.003]\n" in file.read_text()
    assert read_command(file).sweep == {"lr": [1e-3, 3e-3]}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("steps = ", "is not a TOML file"),
        ("runs = 'many'", "runs in .* must be a whole number"),
        ("sweep = 3", r"\[sweep\] of .* must give a list"),
        ("hiden_size = 3", "no config field 'hiden_size'; did you mean 'hidden_size'"),
    ],
)
def test_a_file_that_cannot_be_used_gets_one_message(store: Path, tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "bad.toml").write_text(text)
    with pytest.raises(UsageError, match=words):
        raise (
            typed("--config", tmp_path / "bad.toml", "--store", store, "--preset", "smoke").exception or AssertionError
        )


@pytest.mark.parametrize(("text", "seeds"), [("3", [3]), ("0-2", [0, 1, 2]), ("0,4", [0, 4]), ("7-7", [7])])
def test_seeds_are_a_number_a_range_or_a_list(text: str, seeds: list[int]) -> None:
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize("text", ["", "x", "-1", "2-", "3-1", "0-99999"])
def test_other_seeds_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--seed"):
        parse_seeds(text)


def test_an_unknown_log_is_refused() -> None:
    assert isinstance(typed("--store", "x", "--log", "wandbb").exception, S2RMError)


def test_a_run_is_told_to_wandb_mlflow_and_tensorboard(store: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    words = ["--store", store, *TINY, "--out", out, "--log", "wandb", "--log", "mlflow", "-q"]
    offline = {"WANDB_MODE": "offline", "MLFLOW_DISABLE_TELEMETRY": "true", "WANDB_ERROR_REPORTING": "false"}
    status, _, err = run_forked("s2rm-train", *map(str, words), **offline)
    assert status == 0, err
    assert "wandb" not in err
    loss = json.loads((out / "summary.json").read_text())["best_validation_loss"]
    (metric,) = out.glob("mlflow/*/*/metrics/validation/loss")
    assert float(metric.read_text().split()[1]) == loss
    assert list(out.glob("mlflow/*/*/artifacts/predictions/step-*.png"))
    (written,) = out.glob("wandb/offline-run-*/run-*.wandb")
    assert b"validation/loss" in written.read_bytes()
    assert list(out.glob("wandb/offline-run-*/files/media/images/predictions*.png"))
    _check_tensorboard(out / "tensorboard")


def test_a_longer_run_continues_the_same_run_of_wandb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from s2rm_data.training.loggers.wandb import Wandb

    wandb = mock.MagicMock()
    monkeypatch.setitem(sys.modules, "wandb", wandb)

    def identity(total: int, **config: object) -> str:
        Wandb(tmp_path, config).start(tmp_path.name, 0, total)
        return str(wandb.init.call_args.kwargs["id"])

    first = identity(10, lr=0.1, steps=10, epochs=None)
    assert identity(20, lr=0.1, steps=20, epochs=None) == first
    assert identity(10, lr=0.2, steps=10, epochs=None) != first


def _check_tensorboard(folder: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder))
    events.Reload()
    assert {"predictions", "predictions_moving"} <= set(events.Tags()["images"])
    with Image.open(io.BytesIO(events.Images("predictions_moving")[0].encoded_image_string)) as moving:
        assert moving.n_frames > 1


def test_a_config_file_that_is_none_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.toml")
    with pytest.raises(UsageError, match="cannot be read: it is not a regular file"):
        read_command(tmp_path / "pipe.toml")


def test_a_command_that_is_no_text_is_not_saved(tmp_path: Path) -> None:
    config = TrainConfig(task="bballs", model="s2gru", preset="smoke", steps=1)
    command = Command(options={"store": os.fsdecode(b"\xff.zarr")})
    with pytest.raises(UsageError, match="cannot be saved as TOML"):
        write_command(tmp_path / "saved.toml", config, config, command)
    assert not list(tmp_path.iterdir())


def test_what_a_terminal_would_act_upon_is_spelled_out() -> None:
    assert printable("a\x1b[31mb\r\n\u202ec ä") == "a\\x1b[31mb\\r\n\\u202ec ä"
