"""Stores on web servers and on the hub: read like those in folders, compared with the manifest, never written."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from webs import serving

import s2rm_data as s2
from s2rm_data.cli.data import data
from s2rm_data.core.errors import ConflictError, DamagedStoreError, DiskError, UsageError
from s2rm_data.store import Store, verify
from s2rm_data.store.places import web as places


@pytest.fixture(scope="session")
def site(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(store.path, folder / "data.zarr")
    return folder


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places.time, "sleep", lambda seconds: None)
    monkeypatch.delenv("HF_TOKEN", raising=False)


def test_a_store_on_the_web_reads_as_in_a_folder_whatever_the_server_can(store: Store, site: Path) -> None:
    for behaviour in ({}, {"ranges": False}, {"cut": 2}, {"busy": 3}, {"ranges": False, "cut": 1, "busy": 1}):
        with serving(site, **behaviour) as web:
            there = s2.open(f"{web.url}/data.zarr")
            assert there.groups == store.groups, behaviour
            for path in ("bballs/train", "sc2/2s3z/val"):
                for name, array in store[path].arrays.items():
                    np.testing.assert_array_equal(there[path][name][:2], array[:2], err_msg=f"{behaviour} {name}")
            assert there["bballs/train"].content_digest() == store["bballs/train"].content_digest(), behaviour


def test_few_bytes_of_a_large_object_are_asked_for_by_range(site: Path, store: Store) -> None:
    name = "data.zarr/bballs/train/frames/c.0.0.0.0"
    for ranges in (True, False):
        with (
            serving(site, ranges=ranges) as web,
            places.PLACE(s2.open(f"{web.url}/data.zarr").path).opened(name.partition("/")[2]) as opened,
        ):
            whole = (site / name).read_bytes()
            assert [*opened.ranges([(3, 5), (20, 0), (50, 7)])] == [whole[3:8], b"", whole[50:57]], ranges
            assert web.partial == (2 if ranges else 0)


def test_commands_take_addresses_and_make_of_them_what_they_make_of_folders(
    site: Path, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def said(*words: str) -> str:
        return CliRunner().invoke(data, words, catch_exceptions=False).output

    with serving(site) as web:
        url, folder = f"{web.url}/data.zarr", str(store.path)
        for words in (["info"], ["verify"]):
            assert said(*words, url).replace(url, "X") == said(*words, folder).replace(folder, "X"), words
        assert "all as committed" in said("verify", url)
        said("export", url, "bballs/val", "-o", "web")
        said("export", folder, "bballs/val", "-o", "folder")
        for name in (found := np.load("web/bballs-val.npz")).files:
            np.testing.assert_array_equal(found[name], np.load("folder/bballs-val.npz")[name])
        assert "page.html" in said("view", url, "--export", "page.html", "--group", "bballs/val", "--numbers", "0")


def test_training_reads_through_the_cache_and_evaluation_scores_alike(site: Path, store: Store, tmp_path: Path) -> None:
    with serving(site) as web:
        url = f"{web.url}/data.zarr"
        for where, name in ((url, "web"), (store.path, "folder")):
            options = {"preset": "smoke", "steps": 2, "seed": 0, "quiet": True, "out": tmp_path / name}
            s2.train(where, world="bballs", cache=tmp_path / "cache" / name, **options)
        logs = [(tmp_path / name / "log.jsonl").read_bytes() for name in ("web", "folder")]
        assert logs[0] == logs[1]
        few = {"sequences": 1, "dropped_sequences": 1, "rollout_sequences": 1, "quick": True, "quiet": True}
        scores = [s2.evaluate(["bballs-s2gru"], where, **few).results["bballs"] for where in (url, store.path)]
        assert scores[0] == scores[1]
    cached = s2.open(store.path, cache=tmp_path / "cache" / "folder")
    assert cached["bballs/train"]["frames"][0].shape == store["bballs/train"]["frames"].shape[1:]


def test_what_is_wrong_is_named(site: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(site, tmp_path / "site"))
    shard = folder / "data.zarr/bballs/train/position/c.0.0.0.0"
    with serving(folder) as web:
        url = f"{web.url}/data.zarr"
        opened = s2.open(url)
        whole = shard.read_bytes()
        shard.write_bytes(whole[:40] + bytes([whole[40] ^ 1]) + whole[41:])
        with pytest.raises(DamagedStoreError, match=f"{url}/bballs/train/position/c.0.0.0.0"):
            opened["bballs/train"]["position"][0]
        assert [p for p in verify(url).problems if "position/c.0.0.0.0" in p]
        shard.unlink()
        with pytest.raises(DamagedStoreError, match=r"position/c\.0\.0\.0\.0: is missing"):
            s2.open(url)["bballs/train"]["position"][0]
        shard.write_bytes(whole)
        (folder / "data.zarr/zarr.json").write_text("{}")
        with pytest.raises((DamagedStoreError, UsageError), match=r"data\.zarr"):
            s2.open(url)
        with pytest.raises(UsageError, match="there is no store at"):
            s2.open(f"{web.url}/nothing.zarr")
        web.forbidden = True
        with pytest.raises(DiskError, match="answers 403"):
            s2.open(url)
    with pytest.raises(DiskError, match="cannot be reached"):
        s2.open(url)


def test_an_object_that_is_replaced_while_it_is_read_is_never_mixed(site: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(site, tmp_path / "site"))
    shard = folder / "data.zarr/bballs/train/frames/c.0.0.0.0"
    with serving(folder) as web:
        place = s2.open(f"{web.url}/data.zarr").place
        with place.opened("bballs/train/frames/c.0.0.0.0") as opened:
            data = shard.read_bytes()
            shard.unlink()
            shard.write_bytes(data)  # the same bytes, by somebody else
            with pytest.raises(ConflictError, match="has been replaced since it was opened"):
                [*opened.ranges([(0, 8)])]


def test_a_connection_that_is_always_cut_ends_in_a_message(site: Path) -> None:
    with serving(site, cut=10**6) as web, pytest.raises(DiskError, match="was cut 5 times"):
        s2.open(f"{web.url}/data.zarr")


def test_nothing_is_written_there(site: Path) -> None:
    with serving(site) as web, pytest.raises(UsageError, match="can only be read"):
        s2.generate("bballs", f"{web.url}/data.zarr", balls=3, train=2, val=0, test=0, quiet=True)


def test_a_store_on_the_hub_is_read_at_one_commit(site: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(site, token="secret") as web:
        monkeypatch.setenv("HF_ENDPOINT", web.url)
        with pytest.raises(DiskError, match="needs HF_TOKEN"):
            s2.open("hf://datasets/me/balls/data.zarr")
        monkeypatch.setenv("HF_TOKEN", "secret")
        opened = s2.open("hf://datasets/me/balls/data.zarr")
        web.head = "d4e5f6"  # somebody pushes
        np.testing.assert_array_equal(opened["bballs/val"]["frames"][:], store["bballs/val"]["frames"][:])
        files = {p.relative_to(site / "data.zarr").as_posix() for p in (site / "data.zarr").rglob("*") if p.is_file()}
        assert set(opened.place.names()) == files
        with pytest.raises(UsageError, match="there is no store"):  # that commit has none
            s2.open("hf://datasets/me/balls@main/data.zarr")
        web.head = "a1b2c3"
        assert verify("hf://datasets/me/balls/data.zarr").problems == []
        for address, words in (
            ("hf://datasets/me/other/data.zarr", "no data set me/other"),
            ("hf://datasets/me/balls@v9/data.zarr", "no revision v9"),
            ("hf://models/me/balls", "lie in data sets"),
            ("hf://datasets/me", "names no store"),
        ):
            with pytest.raises(UsageError, match=words):
                s2.open(address)
