"""Data cards, of built-in worlds and of one that the package has not heard of."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import mlcroissant
import numpy as np
import pytest
import yaml

from s2rm_data.core import registry
from s2rm_data.core.errors import UsageError
from s2rm_data.generators.bballs.making.ball_source import plan as plan_balls
from s2rm_data.inspection.card import About, plain, write_card
from s2rm_data.inspection.export_format import export
from s2rm_data.making.run import generate
from s2rm_data.store import Store

# Within mlcroissant, whose own business they are.
pytestmark = [
    pytest.mark.filterwarnings("ignore:ConjunctiveGraph is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame"),
]

ABOUT = About(title="Small worlds", author="Somebody", licence="cc-by-4.0", published="2026-11-17")


@pytest.fixture(scope="module")
def dots(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A store of a plug-in's world, and beside it the folder `card` with an export."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "_loaded", list(registry._loaded))
        registry.load_plugin("tiny_world")
        path = tmp_path_factory.mktemp("card") / "dots.zarr"
        generate(registry.WORLDS.load("dots").prepare({"train": 5, "val": 2, "test": 0}).splits, path)
        yield Store(path)


@pytest.fixture(scope="module")
def card(dots: Store) -> Path:
    folder = dots.path.parent / "card"
    export(dots["dots/train"], "parquet", folder)
    write_card(dots, folder, ABOUT)
    return folder


def front_matter(folder: Path) -> dict[str, object]:
    return dict(yaml.safe_load((folder / "README.md").read_text().split("---")[1]))


def test_mlcroissant_finds_nothing_to_complain_of_and_reads_the_exports(dots: Store, card: Path) -> None:
    found = mlcroissant.Dataset(str(card / "croissant.json"))
    assert not found.metadata.ctx.issues.errors
    assert not found.metadata.ctx.issues.warnings
    rows = list(found.records("dots/train"))
    assert len(rows) == 5
    np.testing.assert_array_equal(
        np.stack([np.stack(row["dots/train/speed"]) for row in rows]), dots["dots/train"]["speed"][:]
    )
    listed = {(str(row["arrays/group"]), str(row["arrays/array"])) for row in found.records("arrays")}
    assert ("dots/val", "frames") in listed


def test_the_root_document_is_named_with_its_digest(dots: Store, card: Path) -> None:
    document = json.loads((card / "croissant.json").read_text())
    root = next(entry for entry in document["distribution"] if entry["@id"] == "dots.zarr/zarr.json")
    assert root["sha256"] == hashlib.sha256((dots.path / "zarr.json").read_bytes()).hexdigest()


def test_the_front_matter_is_what_hugging_face_reads(card: Path) -> None:
    fields = front_matter(card)
    assert fields["license"] == "cc-by-4.0"
    assert fields["size_categories"] == ["n<1K"]
    files = [{"split": "train", "path": "dots-train.parquet"}]
    assert fields["configs"] == [{"config_name": "dots", "data_files": files}]


def test_hugging_face_loads_groups_of_unlike_shapes_under_names_of_their_own(tmp_path: Path) -> None:
    """Three balls and five cannot be splits of one data set."""
    datasets = pytest.importorskip("datasets")
    generate(plan_balls(balls=(3, 5), train=4, val=2, test=3, frames=6), tmp_path / "balls.zarr")
    store, folder = Store(tmp_path / "balls.zarr"), tmp_path / "card"
    for split in ("val", "test_3", "test_5"):
        export(store[f"bballs/{split}"], "parquet", folder)
    write_card(store, folder, ABOUT)
    for name, splits in (("bballs", {"val": 2, "test_3": 3}), ("bballs-test_5", {"test_5": 3})):
        assert f"`{name}`" in (folder / "README.md").read_text()
        found = datasets.load_dataset(str(folder), name, cache_dir=str(tmp_path / "cache"))
        assert {split: len(rows) for split, rows in found.items()} == splits


def test_the_card_says_what_is_there_and_how_it_was_made(card: Path) -> None:
    text = (card / "README.md").read_text()
    for words in ("## Walking dots", "| `dots/train` | 5 |", "s2rm-data dots --train 5 --seed 0", "Velocity (pixel)"):
        assert words in text
    for image in ("dots.png", "dots.gif", "dots-statistics.png"):
        assert f"(images/{image})" in text
        assert (card / "images" / image).stat().st_size > 100


def test_worlds_bring_their_own_words(tmp_path: Path) -> None:
    generate(plan_balls(balls=(3,), train=4, val=0, test=0, frames=6), tmp_path / "balls.zarr")
    write_card(Store(tmp_path / "balls.zarr"), tmp_path / "card", ABOUT)
    assert "fixed ball in its centre" in (tmp_path / "card" / "README.md").read_text()
    assert "bouncing balls" in front_matter(tmp_path / "card")["tags"]  # type: ignore[operator]


def test_texts_from_elsewhere_are_not_markup() -> None:
    assert plain("<img src=x>\n| a `b` [c](d)") == "&lt;img src=x> \\| a \\`b\\` \\[c\\](d)"


def test_an_unknown_licence_is_refused_before_anything_is_written(dots: Store, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no licence 'gpl'; the choices are mit"):
        write_card(dots, tmp_path / "card", About(title="x", author="y", licence="gpl", published="2026-11-17"))
    assert not (tmp_path / "card").exists()
