"""A finished run as a small folder: evaluated as it is, also on data made with another seed."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path

import pytest
import torch
from forking import Forked
from program import run_forked
from small_stores import FRAMES

from s2rm_data.core.errors import ConflictError, DamagedStoreError, UsageError
from s2rm_data.evaluation.runs import load_runs
from s2rm_data.generators.bballs.making.ball_source import plan
from s2rm_data.making.run import generate
from s2rm_data.models.weights import load_model
from s2rm_data.training.folder import export_run


@pytest.fixture(scope="module")
def run(tiny, train, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("finished") / "run"
    train(tiny(steps=4, validate_every=2), out)
    return out


@pytest.fixture(scope="module")
def exported(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("exported") / "bballs-s2gru"
    assert export_run(run, out) == sum(path.stat().st_size for path in out.iterdir())
    return out


def test_an_exported_run_is_small_and_names_no_place_on_the_machine_that_made_it(run: Path, exported: Path) -> None:
    kept = {path.name for path in exported.iterdir()}
    assert kept == {
        "run.json",
        "config.json",
        "environment.json",
        "log.jsonl",
        "best.safetensors",
        "summary.json",
        "curves.png",
        "files.json",
    }
    assert (exported / "best.safetensors").stat().st_size < 0.55 * (run / "best.safetensors").stat().st_size
    assert json.loads((exported / "config.json").read_text())["store"]["path"] == ""
    assert str(run.parent) not in "".join(path.read_text() for path in exported.glob("*.json*"))


def test_its_weights_are_those_of_the_run_in_half_precision(run: Path, exported: Path) -> None:
    ours, theirs = load_model(run / "best.safetensors"), load_model(exported / "best.safetensors")
    assert next(theirs.parameters()).dtype == torch.float32
    for mine, half in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(half, mine.half().float(), rtol=0, atol=0)


def test_it_is_evaluated_at_once_on_a_store_of_another_seed(exported: Path, tmp_path: Path) -> None:
    generate(plan(balls=(3, 6), train=0, val=0, test=3, frames=FRAMES, seed=9), tmp_path / "other.zarr", shard_size=16)
    words = ["--quick", "--threads", "1", "--out", "report", "--json"]
    status, shown, err = run_forked("s2rm-eval", "--run", str(exported), "--store", "other.zarr", *words, cwd=tmp_path)
    assert status == 0, err
    assert "f1" in shown
    assert (tmp_path / "report" / "report.html").exists()


def test_what_cannot_be_exported_is_refused(run: Path, exported: Path, tmp_path: Path) -> None:
    with pytest.raises(ConflictError, match="is not empty"):
        export_run(run, exported)
    unfinished = tmp_path / "unfinished"
    unfinished.mkdir()
    for name in ("run.json", "config.json"):
        (unfinished / name).write_bytes((run / name).read_bytes())
    with pytest.raises(UsageError, match="is not finished"):
        export_run(unfinished, tmp_path / "out")
    assert load_runs([exported])[0].model_name == "s2gru"


def test_an_export_that_was_killed_is_given_again(run: Path, exported: Path, tmp_path: Path) -> None:
    """Whatever the kill left: it comes right before the last file, when all others are there."""
    code = (
        "import os, signal, sys; from pathlib import Path; from s2rm_data.training import folder;"
        "folder.RunFolder.write_json = lambda *rest: os.kill(os.getpid(), signal.SIGKILL);"
        "folder.export_run(Path(sys.argv[1]), Path(sys.argv[2]))"
    )
    out = tmp_path / "out"
    killed = Forked("python", "-c", code, str(run), str(out))
    assert killed.wait() == -signal.SIGKILL
    assert not out.exists()
    export_run(run, out)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == {
        path.name: path.read_bytes() for path in exported.iterdir()
    }
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("name", ["environment.json", "curves.png"])
def test_an_export_follows_no_link_out_of_the_run(name: str, run: Path, tmp_path: Path) -> None:
    copy, secret = tmp_path / "run", tmp_path / "secret"
    shutil.copytree(run, copy)
    secret.write_text("a secret")
    (copy / name).unlink()
    (copy / name).symlink_to(secret)
    with pytest.raises(DamagedStoreError, match=f"{name}: is a link"):
        export_run(copy, tmp_path / "out")
    assert not (tmp_path / "out").exists()
