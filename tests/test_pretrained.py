"""The weights in pretrained/: small, complete, and better on new data than a copy of what was seen last."""

from __future__ import annotations

import json
import shutil
import tomllib
from pathlib import Path

import pytest

import s2rm_data as s2
from s2rm_data.core.errors import UsageError
from s2rm_data.evaluation.runs import find_runs

FOLDERS = sorted(path for path in (Path(__file__).parents[1] / "pretrained").iterdir() if path.is_dir())
MOST_BYTES = 3 * 10**6


def test_there_are_weights_of_five_models_for_both_worlds_and_of_what_leads() -> None:
    wanted = {f"{world}-{model}" for world in ("bballs", "sc2") for model in ("s2gru", "s2rmc", "lstm", "rmc", "rims")}
    leading = {"bballs-conv_gru", "sc2-s2gru-skip", "sc2-lstm-skip", "sc2-no_memory"}
    assert {folder.name for folder in FOLDERS} == wanted | leading


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_weights_are_small_and_tell_no_paths(folder: Path) -> None:
    assert sum(path.stat().st_size for path in folder.iterdir()) < MOST_BYTES
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    run = config["config"]
    skips = run["model_fields"].get("skip", False)
    assert folder.name == f"{run['task']}-{run['model']}{'-skip' * skips}"
    assert all(b"/tmp" not in path.read_bytes() for path in folder.glob("*.json*"))


def test_weights_are_found_by_name_and_a_folder_of_that_name_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    count = s2.load_model("bballs-s2gru").parameter_count()
    assert count == s2.load_model(FOLDERS[0].parent / "bballs-s2gru").parameter_count()
    assert [path.name for path in find_runs([Path("sc2-s2gru"), Path("bballs-lstm")])] == ["sc2-s2gru", "bballs-lstm"]
    with pytest.raises(UsageError, match="did you mean 'sc2-s2gru'"):
        s2.load_model("sc2-s2gr")
    shutil.copytree(FOLDERS[0].parent / "bballs-lstm", "bballs-s2gru")
    assert s2.load_model("bballs-s2gru").parameter_count() != count


def test_the_wheel_and_the_sdist_bring_the_weights_of_s2gru() -> None:
    build = tomllib.loads((FOLDERS[0].parents[1] / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]
    named = {f"{world}-s2gru" for world in ("bballs", "sc2")}
    assert build["wheel"]["force-include"] == {f"pretrained/{name}": f"s2rm_data/pretrained/{name}" for name in named}
    assert "pretrained" in build["sdist"]["include"]


def test_the_weights_for_balls_beat_the_copy_on_new_balls(tmp_path: Path) -> None:
    store = tmp_path / "new.zarr"
    s2.generate("bballs", store, balls=3, train=0, val=0, test=6, seed=11, quiet=True)
    runs = [FOLDERS[0].parent / "bballs-s2gru", FOLDERS[0].parent / "bballs-conv_gru"]
    found = s2.evaluate(runs, store, sequences=6, quick=True, quiet=True)
    scores = found.results["bballs"]["one_step"]["test_3"]
    f1 = {name: run["f1"] for name, run in scores["runs"].items()}
    assert f1["bballs-conv_gru"] > 0.86 > f1["bballs-s2gru"] > 0.8 > scores["references"]["copy_previous"]["f1"]


def test_the_weights_for_battles_beat_the_copy_on_new_battles(tmp_path: Path) -> None:
    store = tmp_path / "new.zarr"
    s2.generate("sc2", store, scenario=["3s5z"], train=0, val=4, radial=8, angular=24, seed=11, quiet=True)
    folder = FOLDERS[0].parent / "sc2-s2gru"
    scores = s2.evaluate([folder], store, dropped_views=[0.0], quick=True, quiet=True).results["sc2"]["robustness"][
        "100"
    ]
    own, copy = scores["runs"]["sc2-s2gru"], scores["references"]["copy_previous"]
    assert own["fm_f1"] > copy["fm_f1"]
    assert own["ut_f1_units"] > copy["ut_f1_units"]
    assert own["ll"] > copy["ll"]
