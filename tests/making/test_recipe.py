"""A data set is a recipe and a digest: made again it is the same, or what differs is said."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

import s2rm_data as s2
from s2rm_data.cli.data import data
from s2rm_data.core.errors import ConflictError, UsageError
from s2rm_data.core.registry import WORLDS
from s2rm_data.making.recipe import SEAL, Recipe, recipes

TEXT = """
title = "A few balls"
world = "bballs"
seed = 3

[options]
balls = "1,3"
train = 6
val = 2
test = 2
frames = 12
"""


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "few.toml"
    path.write_text(TEXT)
    return path


def test_a_recipe_is_made_sealed_and_made_again(recipe: Path, tmp_path: Path) -> None:
    first = s2.get(str(recipe), tmp_path / "first.zarr", seal=True, quiet=True)
    assert first.groups == ["bballs/test_1", "bballs/test_3", "bballs/train", "bballs/val"]
    sealed = Recipe.of(str(recipe))
    assert sealed.digests == {path: first[path].content_digest() for path in first.groups}
    assert recipe.read_text().startswith(TEXT.rstrip("\n")) and sealed.made_by["generator_version"] == 1
    again = s2.get(str(recipe), tmp_path / "again.zarr", workers=1, quiet=True)
    assert again.groups == first.groups
    before = recipe.read_text()
    s2.get(str(recipe), tmp_path / "again.zarr", seal=True, quiet=True)
    assert recipe.read_text() == before


def test_what_differs_is_named(recipe: Path, tmp_path: Path) -> None:
    s2.get(str(recipe), tmp_path / "first.zarr", seal=True, quiet=True)
    text = recipe.read_text()
    digest = Recipe.of(str(recipe)).digests["bballs/test_3"]
    recipe.write_text(text.replace(digest, "0" * 64))
    with pytest.raises(ConflictError, match=rf"1 of 4 .*test_3: {digest[:12]}\.\.\. here, 000000000000\.\.\. there"):
        s2.get(str(recipe), tmp_path / "first.zarr", quiet=True)
    other = text.replace("test = 2", "test = 0").replace("generator_version = 1", "generator_version = 0\nnumpy = 2")
    recipe.write_text(other)
    with pytest.raises(ConflictError, match=r"test_1: missing here.*_version is 1 here, 0 there, numpy is None here"):
        s2.get(str(recipe), tmp_path / "other.zarr", quiet=True)
    recipe.write_text(other.replace(SEAL, "\n"))
    with pytest.raises(UsageError, match=r"has a table \[digests\] of its own"):
        s2.get(str(recipe), tmp_path / "first.zarr", seal=True, quiet=True)
    assert recipe.read_text() == other.replace(SEAL, "\n")
    recipe.write_bytes(text.replace("\n", "\r\n").encode())
    s2.get(str(recipe), tmp_path / "first.zarr", seal=True, quiet=True)
    assert recipe.read_text() == text


def test_bad_recipes_are_told(tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    for text, words in (
        ("= 3", "is not a TOML file"),
        ('worlds = "bballs"', "has an entry"),
        ("seed = 1", "must name a world"),
        ('world = "bballs"\nseed = "x"', "seed must be a whole number"),
        ('world = "bballs"\noptions = 3', "options must be a table"),
        ('world = "bballs"\n[options]\nseed = 3', "seed is no option"),
        ('world = "bballs"\n[digests]\ntrain = 3', "digests must be text"),
        ('world = "balls"', "did you mean 'bballs'"),
        ('world = "bballs"\n[options]\nball = 3', "ball"),
    ):
        path.write_text(text)
        with pytest.raises(UsageError, match=words):
            s2.get(str(path), tmp_path / "x.zarr", quiet=True)
    for name, words in (("paper-balls", "did you mean 'paper-bballs'"), (str(tmp_path / "no.toml"), "cannot be read")):
        with pytest.raises(UsageError, match=words):
            s2.get(name, tmp_path / "x.zarr", quiet=True)
    assert not (tmp_path / "x.zarr").exists()


def test_the_recipes_that_come_with_the_package_can_be_made(tmp_path: Path) -> None:
    assert set(recipes()) >= {"paper-bballs", "paper-sc2"}
    for name, path in recipes().items():
        recipe = Recipe.of(name)
        plans = s2.plan(recipe.world, tmp_path / "none.zarr", seed=recipe.seed, quiet=True, **recipe.options)
        assert recipe.title and WORLDS.load(recipe.world).name in path.parts
        if recipe.digests:
            assert {plan.group for plan in plans} == set(recipe.digests), name


@pytest.mark.costs(10)
def test_the_papers_balls_have_the_digests_of_their_recipe(tmp_path: Path) -> None:
    store = s2.get("paper-bballs", tmp_path / "data.zarr", quiet=True)
    assert len(store.groups) == len(Recipe.of("paper-bballs").digests) == 8


def test_the_command_lists_makes_and_refuses(recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def said(*words: str) -> str:
        return CliRunner().invoke(data, ["get", *words], catch_exceptions=False).output

    assert "paper-bballs  The bouncing balls" in said("--list")
    assert "no digests yet" in said("few.toml")
    assert "sealed" in said("few.toml", "--seal") and SEAL in recipe.read_text()
    assert "all as the recipe says" in said("few.toml", "-o", "again.zarr")
    with pytest.raises(UsageError, match="no data set named"):
        said()
    shutil.rmtree("data.zarr")
