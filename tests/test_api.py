"""The front door: names that resolve, calls that do what the commands do, to the byte."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from same_runs import assert_same_run
from torch.utils.data import DataLoader
from toy import tree

import s2rm_data as s2
from s2rm_data.cli.data import data
from s2rm_data.cli.train import train
from s2rm_data.core.errors import UsageError
from s2rm_data.store import Store


def test_every_public_name_of_every_module_resolves() -> None:
    package = Path(s2.__file__).parent
    for path in sorted(package.rglob("*.py")):
        parts = [part for part in path.relative_to(package.parent).with_suffix("").parts if part != "__init__"]
        if parts[-1] != "__main__":
            module = importlib.import_module(".".join(parts))
            for public in getattr(module, "__all__", ()):
                assert getattr(module, public) is not None, f"{public} of {module.__name__}"


def test_every_public_name_has_a_docstring() -> None:
    assert all(getattr(s2, name).__doc__ for name in s2.__all__)
    assert set(s2.__all__) <= set(dir(s2))
    with pytest.raises(AttributeError, match="no attribute 'generat'"):
        s2.generat  # noqa: B018


def test_generate_makes_the_bytes_of_the_command(tmp_path: Path) -> None:
    s2.generate("bballs", out=tmp_path / "a.zarr", balls="1-2", train=6, val=2, test=2, frames=8, seed=3, quiet=True)
    counts = ["--train", "6", "--val", "2", "--test", "2", "--frames", "8", "--seed", "3", "-q"]
    assert (
        CliRunner().invoke(data, ["bballs", "--balls", "1-2", *counts, "-o", str(tmp_path / "b.zarr")]).exit_code == 0
    )
    assert tree(tmp_path / "a.zarr") == tree(tmp_path / "b.zarr")


def test_generate_resumes_and_takes_python_values(tmp_path: Path) -> None:
    options = {"scenario": ["1s2z"], "train": 4, "val": 2, "steps": 8, "radial": 4, "angular": 8, "quiet": True}
    first = s2.generate("sc2", tmp_path / "data.zarr", **options)
    again = s2.generate("sc2", tmp_path / "data.zarr", **options | {"scenario": "1s2z"})
    assert (first.made, again.made, again.found) == (6, 0, 6)
    assert s2.verify(tmp_path / "data.zarr").problems == []


@pytest.mark.parametrize(
    ("world", "options", "message"),
    [
        ("balls", {}, "no world 'balls'; did you mean 'bballs'"),
        ("bballs", {"ball": 3}, "bballs has no option 'ball'; did you mean 'balls'"),
        ("bballs", {"balls": "6-1"}, "balls is '6-1': '6-1' runs backwards; write 1-6"),
        ("bballs", {"train": -1}, "train is -1: it must be a whole number from 0"),
        ("bballs", {"train": 2.5}, "train is 2.5: it must be a whole number"),
        ("bballs", {"part": "1/2", "overwrite": True}, "--overwrite does not go with --part"),
        ("bballs", {"dask": "local", "overwrite": True}, "--overwrite does not go with --dask"),
        ("sc2", {"scenario": "3s5y"}, "3s5y"),
        (
            "sc2",
            {"scenario": "3s5z", "backend": "game"},
            "backend is 'game': it must be one of auto, engine",
        ),
    ],
)
def test_wrong_options_are_refused_by_name(tmp_path: Path, world: str, options: dict, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        s2.generate(world, tmp_path / "data.zarr", quiet=True, **options)
    assert not (tmp_path / "data.zarr").exists()


@pytest.mark.parametrize("group", ["bballs/train", "sc2/2s3z/train"])
def test_a_plain_data_loader_gives_the_same_items_for_any_number_of_workers(store: Store, group: str) -> None:
    windows = s2.dataset(store[group], window=5)
    loaded = [
        [s2.Batch(**items) for items in DataLoader(windows, batch_size=4, num_workers=workers)] for workers in (0, 2)
    ]
    assert sum(len(batch.views) for batch in loaded[0]) == len(windows) == len(store[group])
    for one, other in zip(*loaded, strict=True):
        assert torch.equal(one.views, other.views) and torch.equal(one.query_position, other.query_position)
        assert all(torch.equal(a, b) for a, b in zip(one.targets, other.targets, strict=True))


def test_another_epoch_gives_other_windows_also_to_living_workers(store: Store) -> None:
    windows = s2.dataset(store["bballs/train"], window=4)
    loader = DataLoader(windows, batch_size=24, num_workers=1, persistent_workers=True)
    first = next(iter(loader))["views"]
    assert torch.equal(first, next(iter(loader))["views"])
    windows.set_epoch(1)
    assert not torch.equal(first, next(iter(loader))["views"])


def test_a_collated_batch_is_what_models_take(store: Store) -> None:
    windows = s2.dataset(store["bballs/train"], window=5, views=4, queries=3)
    batch = s2.Batch(**next(iter(DataLoader(windows, batch_size=2))))
    model = s2.build_model("s2gru", world="bballs", codec="mlp", width=2, encoding_size=16)
    assert model(batch).crop.shape == (2, 5, 3, 1, 11, 11)


@pytest.mark.parametrize("group", ["bballs/val", "sc2/2s3z/val"])
def test_a_data_loader_takes_a_group_itself(store: Store, group: str) -> None:
    items = next(iter(DataLoader(store[group], batch_size=2)))
    assert set(items) == set(store[group].arrays)
    assert items["seed"].tolist() == store[group]["seed"][:2].tolist()


def test_train_gives_the_log_of_the_command_and_a_model(store: Store, tmp_path: Path) -> None:
    fields = {"steps": 2, "window": 3, "batch_size": 2, "width": 2, "threads": 1, "held_out_sequences": 2}
    run = s2.train(store, world="bballs", model="lstm", preset="smoke", out=tmp_path / "a", quiet=True, **fields)
    given = [word for name, value in fields.items() for word in ("--set", f"{name}={value}")]
    options = ["--task", "bballs", "--model", "lstm", "--preset", "smoke", "--out", str(tmp_path / "b"), "-q"]
    result = CliRunner().invoke(train, ["--store", str(store.path), *options, *given])
    assert result.exit_code == 0, result.output
    assert_same_run(run.path, tmp_path / "b")
    assert run.load_model().parameter_count() == run.summary["parameters"] == s2.load_model(run.path).parameter_count()
    assert s2.train(out=run.path, resume=True, quiet=True).summary == run.summary


def test_a_store_shows_itself_in_a_notebook(store: Store) -> None:
    page = store._repr_html_()
    assert all(path in page for path in store.groups) and "data:image/png;base64," in page
    assert "uint8" in store["bballs/val"]._repr_html_()


def test_names_in_a_store_are_shown_as_text(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "path", Path("<script>alert(1)</script>"))
    assert "<script>" not in store._repr_html_()
