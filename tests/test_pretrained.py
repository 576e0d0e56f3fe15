"""The weights in pretrained/: small, complete, and better on new data than a copy of what was seen last."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import s2rm_data as s2

FOLDERS = sorted(path for path in (Path(__file__).parents[1] / "pretrained").iterdir() if path.is_dir())
MOST_BYTES = 3 * 10**6


def test_there_are_weights_of_five_models_for_both_worlds() -> None:
    wanted = {f"{world}-{model}" for world in ("bballs", "sc2") for model in ("s2gru", "s2rmc", "lstm", "rmc", "rims")}
    assert {folder.name for folder in FOLDERS} == wanted


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_weights_are_small_and_tell_no_paths(folder: Path) -> None:
    assert sum(path.stat().st_size for path in folder.iterdir()) < MOST_BYTES
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert folder.name == f"{config['config']['task']}-{config['config']['model']}"
    assert all(b"/tmp" not in path.read_bytes() for path in folder.glob("*.json*"))


def test_the_weights_for_balls_beat_the_copy_on_new_balls(tmp_path: Path) -> None:
    store = tmp_path / "new.zarr"
    s2.generate("bballs", store, balls=3, train=0, val=0, test=6, seed=11, quiet=True)
    found = s2.evaluate([FOLDERS[0].parent / "bballs-s2gru"], store, sequences=6, quick=True, quiet=True)
    scores = found.results["bballs"]["one_step"]["test_3"]
    assert scores["runs"]["bballs-s2gru"]["f1"] > 0.8 > scores["references"]["copy_previous"]["f1"]


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
