"""A third world, one folder that nothing else knows, goes through every command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from s2rm_data.cli.data import data
from s2rm_data.cli.eval import evaluate
from s2rm_data.cli.train import train
from s2rm_data.core import registry

PLUGIN = ["--plugin", "tiny_world"]


@pytest.fixture(autouse=True)
def forget_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_loaded", list(registry._loaded))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of dots and a smoke run on it, made by the commands."""
    path = tmp_path_factory.mktemp("dots")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "_loaded", list(registry._loaded))
        run(data, ["dots", "-o", str(path / "dots.zarr"), "-q", *PLUGIN])
        options = ["--preset", "smoke", "--set", "threads=1", "--steps", "4", "--set", "validate_every=2"]
        run(train, ["--store", str(path / "dots.zarr"), *options, "--out", str(path / "run"), "-q", *PLUGIN])
    return path


def run(command, arguments: list[str]) -> Result:
    result = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


def test_the_world_is_listed_and_explains_itself(folder: Path) -> None:
    assert "dots" in run(data, [*PLUGIN, "--help"]).output
    shown = run(data, ["dots", *PLUGIN, "--help"]).output
    assert "Generate dots that walk over a torus." in shown and "--val" in shown and "[default: 24]" in shown


def test_its_store_is_verified_and_described(folder: Path) -> None:
    run(data, ["verify", str(folder / "dots.zarr")])
    groups = json.loads(run(data, ["info", str(folder / "dots.zarr"), "--json"]).output)["groups"]
    assert sorted(groups) == ["dots/test", "dots/train", "dots/val"]


def test_the_same_command_again_makes_nothing(folder: Path) -> None:
    again = run(data, ["dots", "-o", str(folder / "dots.zarr"), "--json", *PLUGIN])
    assert json.loads(again.stdout)["made"] == 0


def test_it_is_previewed_counted_and_exported(folder: Path) -> None:
    run(data, ["preview", str(folder / "dots.zarr"), "dots/val", "-o", str(folder / "previews"), *PLUGIN])
    assert {path.suffix for path in (folder / "previews").iterdir()} == {".gif", ".png"}
    run(data, ["stats", str(folder / "dots.zarr"), "-o", str(folder / "stats"), *PLUGIN])
    assert (folder / "stats/stats.json").exists() and (folder / "stats/dots.png").exists()
    run(data, ["export", str(folder / "dots.zarr"), "dots/val", "-f", "gif", "-o", str(folder / "gifs"), *PLUGIN])
    assert len(list((folder / "gifs/dots-val").glob("*.gif"))) == 6


def test_it_is_shown_with_its_model(folder: Path) -> None:
    page = folder / "page.html"
    run(data, ["view", str(folder / "dots.zarr"), "--run", str(folder / "run"), "--export", str(page), *PLUGIN])
    assert "dots/train" in page.read_text()


def test_a_model_is_trained_and_scored_beside_references(folder: Path) -> None:
    summary = json.loads((folder / "run/summary.json").read_text())
    assert summary["task"] == "dots" and set(summary["held_out"]) == {"val", "test"}
    assert set(summary["held_out"]["test"]["references"]) == {"copy_previous", "always_off"}
    assert json.loads((folder / "run/environment.json").read_text())["plugins"] == {"dots": "tiny_world 1.2"}


def test_it_is_evaluated_and_reported(folder: Path) -> None:
    run(evaluate, ["--run", str(folder / "run"), "--quick", "-o", str(folder / "report"), "-q", *PLUGIN])
    page = (folder / "report/report.html").read_text()
    assert "S2GRU" in page and "copy of the last view at the place" in page
    assert "f1" in json.dumps(json.loads((folder / "report/results.json").read_text())["dots"])


def test_without_the_plugin_the_message_says_what_is_missing(folder: Path) -> None:
    result = CliRunner().invoke(data, ["preview", str(folder / "dots.zarr"), "dots/val"])
    assert "--plugin" in str(result.exception)
