"""The command as a user types it; in this process unless the exit status is what is tested."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from small_stores import make_small_store

import s2rm_data as s2
from s2rm_data.cli.train import train
from s2rm_data.core.errors import ConflictError, S2RMError, UsageError
from s2rm_data.core.registry import MODELS, PRESETS
from s2rm_data.display import training

TINY = ["--preset", "smoke", "--steps", "2", "--set", "width=2", "--set", "threads=1", "--set", "held_out_sequences=2"]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_small_store(tmp_path_factory.mktemp("train") / "data.zarr")


def typed(*words: object) -> Result:
    return CliRunner().invoke(train, [str(word) for word in words], standalone_mode=False)


def refused(*words: object) -> S2RMError:
    result = typed(*words)
    assert isinstance(result.exception, S2RMError), result.output + repr(result.exception)
    return result.exception


def test_it_says_what_it_chose_and_gives_scores_beside_their_references(store: Path, tmp_path: Path) -> None:
    result = typed("--store", store, *TINY, "--out", tmp_path / "run")
    assert result.exception is None
    assert "task bballs, the first one in" in result.stderr
    assert "validation at step 2: loss" in result.stderr
    assert result.stdout.count("last seen") == 4  # val and test_3, with and without the fixed ball
    assert "best weights, of step 2" in result.stdout


def test_sequences_shorter_than_the_presets_windows_are_taken_whole(tmp_path: Path) -> None:
    s2.generate("bballs", tmp_path / "short.zarr", balls=[3], train=4, val=2, test=0, frames=6, quiet=True)
    result = typed("--store", tmp_path / "short.zarr", "--preset", "laptop", "--dry-run", "--set", "threads=1")
    assert result.exception is None
    assert "windows of 5 steps, the whole sequences, which are shorter than the preset's 8" in result.stderr


def test_what_is_chosen_is_told_with_the_command_for_the_other_world(store: Path, tmp_path: Path) -> None:
    result = typed(store, *TINY, "--out", tmp_path / "run")
    assert result.exception is None
    assert f"task bballs, the first one in {store} (for the other: s2rm-train {store} --task sc2)" in result.stderr
    assert result.stderr.index("reading the sequences") < result.stderr.index("training from step 0")


def test_json_is_all_that_goes_to_standard_output(store: Path, tmp_path: Path) -> None:
    result = typed("--store", store, "--task", "sc2", *TINY, "--out", tmp_path / "run", "-q", "--json")
    summary = json.loads(result.stdout)
    assert (summary["task"], summary["model"], summary["steps"]) == ("sc2", "s2gru", 2)
    assert result.stderr == ""


def test_resume_needs_no_more_than_the_folder(store: Path, tmp_path: Path) -> None:
    typed("--store", store, *TINY, "--out", tmp_path / "run")
    (tmp_path / "run" / "summary.json").unlink()
    result = typed("--resume", "--out", tmp_path / "run", "--json")
    assert result.exception is None
    assert "resuming from step 2 to 2" in result.stderr
    error = refused("--resume", "--out", tmp_path / "run", "--model", "lstm")
    assert isinstance(error, ConflictError)
    assert "model = 's2gru', not 'lstm'" in str(error)


def test_a_dry_run_shows_config_parameters_and_time_and_writes_nothing(store: Path, tmp_path: Path) -> None:
    result = typed("--store", store, *TINY, "--out", tmp_path / "run", "--dry-run")
    assert "parameters; 2 steps of" in result.stdout
    assert "hidden_size" in result.stdout
    assert not (tmp_path / "run").exists()
    estimate = json.loads(typed("--store", store, *TINY, "--dry-run", "--json").stdout)
    assert estimate["config"]["lr"] == 2e-3
    assert estimate["seconds"] > 0


def test_a_dry_run_under_torchrun_is_of_one_process(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for rank, says in (("0", True), ("1", False)):
        monkeypatch.setenv("RANK", rank)
        monkeypatch.setenv("WORLD_SIZE", "2")
        assert bool(typed("--store", store, *TINY, "--dry-run").stdout) == says


def test_list_models_shows_all_with_their_parameters() -> None:
    result = typed("--list-models")
    for name in ("s2gru", "s2rmc", "lstm", "rmc", "rims", "tto", "no_memory"):
        assert name in result.stdout
    assert len(json.loads(typed("--list-models", "--json").stdout)) == 16
    completed = {p.name: p.shell_complete(click.Context(train), "") for p in train.params}
    assert sorted(item.value for item in completed["model"]) == sorted(MODELS.names())
    assert [item.value for item in completed["preset"]] == PRESETS.names()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "no store given"),
        (["--store", "nowhere.zarr"], "there is no store at nowhere.zarr"),
        (["--store", "STORE", "--model", "s2gro"], "did you mean 's2gru'"),
        (["--store", "STORE", "--preset", "lapto"], "did you mean 'laptop'"),
        (
            ["--store", "STORE", "--task", "balls"],
            "no world 'balls'; did you mean 'bballs'? The choices",
        ),
        (["--resume"], "name its folder, as in --out runs/NAME"),
        (["--store", "STORE", "--set", "hiddensize=3"], "did you mean 'hidden_size'"),
        (["--store", "STORE", "--set", "hidden_size"], "write --set key=value"),
        (["--store", "STORE", "--lr", "-1"], "lr is -1.0; it must be a number above 0"),
        (["--store", "STORE", "--lr", "1", "--set", "lr=2"], "given twice"),
        (["--store", "STORE", "--epochs", "1", "--steps", "2"], "both --epochs and --steps"),
        (["--store", "STORE", "--batch-size", "0"], "batch_size is 0"),
        (["--store", "STORE", "--set", "window=500"], "windows of 500 steps do not fit"),
        (["--store", "STORE", "--preset", "smoke", "--set", "image_size=[9, 9]"], "the images of"),
        (["--store", "STORE", "--device", "cuda"], "--device cuda was asked for, but"),
        (["--store", "STORE", "--device", "tpu"], "device"),
        (["--store", "STORE", "--set", "device=cuda"], "device is not for --set; give --device cuda"),
        (["--store", "STORE", "--seed", "-1"], "--seed -1 is not possible"),
        (["--resume", "--overwrite"], "exclude each other"),
        (["--resume", "--out", "nowhere"], "there is no run at nowhere to resume"),
    ],
)
def test_bad_input_gets_one_clear_message(store: Path, words: list[str], message: str, tmp_path: Path) -> None:
    words = [str(store) if word == "STORE" else word for word in words]
    words += ["--out", str(tmp_path / "run")] if "--out" not in words and words != ["--resume"] else []
    error = refused(*words)
    assert isinstance(error, UsageError)
    assert message in str(error)
    assert not (tmp_path / "run" / "config.json").exists()


def test_an_existing_run_is_a_conflict(store: Path, tmp_path: Path) -> None:
    typed("--store", store, *TINY, "--out", tmp_path / "run")
    error = refused("--store", store, *TINY, "--out", tmp_path / "run")
    assert error.exit_status == 5
    assert "--resume" in str(error)


def test_help_is_quick_and_shows_examples_and_exit_statuses() -> None:
    code = (
        "import sys; sys.argv = ['s2rm-train', '--help']\n"
        "from s2rm_data.cli.train import main\n"
        "try: main()\n"
        "except SystemExit: sys.exit(1 if 'torch' in sys.modules or 'numba' in sys.modules else 0)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0
    assert "Examples:" in result.stdout
    assert "training diverged" in result.stdout


def test_without_the_extra_the_message_says_what_to_install(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "sys.argv = ['s2rm-train', '--store', 'data.zarr']\n"
        "from s2rm_data.cli.train import main; main()"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert result.returncode == 4
    assert "pip install 's2rm-data[train]'" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_run_is_trained_longer_with_a_larger_budget(store: Path, tmp_path: Path) -> None:
    out = ("--out", tmp_path / "run")
    typed("--store", store, *TINY, *out)
    assert isinstance(refused("--resume", *out, "--steps", 1), ConflictError)
    result = typed("--resume", *out, "--steps", 3)
    assert result.exception is None
    assert "budget raised from 2 to 3 steps; the rate follows the cosine of the new budget" in result.stderr
    assert "resuming from step 2 to 3" in result.stderr
    assert "complete already" in typed("--resume", *out).stderr
    assert typed("--resume", *out, "--epochs", 1, "--json").exception is None  # of six steps


def test_scenarios_choose_groups_and_the_world_that_has_them(store: Path, tmp_path: Path) -> None:
    out = ("--out", tmp_path / "run")
    result = typed("--store", store, *TINY, *out, "--scenario", "2s3z")
    assert result.exception is None
    assert "task sc2" in result.stderr
    saved = json.loads((tmp_path / "run" / "config.json").read_text())
    assert list(saved["store"]["groups"]) == ["sc2/2s3z/train", "sc2/2s3z/val"]
    result = typed("--resume", *out, "--steps", 3)  # on the same groups, whatever else is in the store
    assert result.exception is None
    assert typed("--resume", *out, "--scenario", "2s3z").exception is None
    error = refused("--resume", *out, "--scenario", "1s2z,2s3z")
    assert isinstance(error, ConflictError)
    assert "was started on sc2/2s3z/train, sc2/2s3z/val" in str(error)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--scenario", "2s4z"], "the store has no scenario '2s4z'; did you mean '2s3z'? It has 1s2z, 2s3z"),
        (["--scenario", "2s3z", "--task", "bballs"], "--scenario is not an option of training on bballs"),
    ],
)
def test_scenarios_that_are_not_there_are_refused(store: Path, tmp_path: Path, words: list[str], message: str) -> None:
    assert message in str(refused("--store", store, *TINY, "--out", tmp_path / "run", *words))
    assert not (tmp_path / "run").exists()


def test_a_store_that_was_moved_is_asked_for(tmp_path: Path) -> None:
    out = ("--out", tmp_path / "run")
    store = make_small_store(tmp_path / "data.zarr")
    typed("--store", store, *TINY, *out)
    store.rename(tmp_path / "moved.zarr")
    assert "is not there; if it was moved, name it with --store" in str(refused("--resume", *out, "--steps", 3))
    assert typed("--resume", *out, "--steps", 3, "--store", tmp_path / "moved.zarr").exception is None


def test_the_scoring_after_the_last_step_tells_how_far_it_has_come(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "LINE_SECONDS", 0.0)
    result = typed("--store", store, *TINY, "--out", tmp_path / "run")
    # two sequences each of val and test_3, by the model and by the references
    assert "scoring the best weights, 8 of 8 sequences, 0 s left" in result.stderr
