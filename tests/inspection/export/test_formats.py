from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import datasets
import h5py
import numpy as np
import pyarrow.parquet
import pytest
import webdataset
from forking import Forked
from patience import finish
from PIL import Image
from toy import tree

from s2rm_data.core.errors import ConflictError, DiskError, MissingComponentError, UsageError
from s2rm_data.core.progress import Progress
from s2rm_data.core.schema import ArraySpec, SplitSource
from s2rm_data.inspection import export_format as module
from s2rm_data.inspection.export import webdataset as tar_shards
from s2rm_data.inspection.export_format import export, work_of
from s2rm_data.making.run import generate
from s2rm_data.store import Group, Store

GROUPS = ["bballs/train", "sc2/2s3z/val"]


class Counted(Progress):
    total = 0

    def advance(self, amount: int) -> None:
        self.total += amount


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BLOCK_NBYTES", 100_000)  # a few sequences of the small store


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("path", GROUPS)
def test_numpy_reads_what_the_store_holds(store: Store, tmp_path: Path, path: str) -> None:
    progress = Counted()
    made = export(store[path], "npz", tmp_path, progress=progress)
    assert made == tmp_path / (path.replace("/", "-") + ".npz")
    assert progress.total == work_of(store[path], "npz")
    with np.load(made) as archive:
        assert set(archive) == {*store[path], "attributes"}
        for name, array in store[path].arrays.items():
            np.testing.assert_array_equal(archive[name], array[:])
            assert archive[name].dtype == array.dtype
        assert json.loads(str(archive["attributes"]))["settings"] == store[path].settings


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("path", GROUPS)
def test_hdf5_holds_the_arrays_with_their_dimensions(store: Store, tmp_path: Path, path: str) -> None:
    with h5py.File(export(store[path], "hdf5", tmp_path, count=5)) as file:
        assert json.loads(file.attrs["attributes"])["settings"] == store[path].settings
        for name, array in store[path].arrays.items():
            np.testing.assert_array_equal(file[name][:], array[:5])
            assert tuple(d.label for d in file[name].dims) == array.dims
            assert "packed_bits" not in file[name].attrs
            assert file[name].attrs["description"] == array.layout.attributes["description"]


@pytest.mark.parametrize("path", GROUPS)
def test_hugging_face_reads_what_the_store_holds(store: Store, tmp_path: Path, path: str) -> None:
    progress = Counted()
    made = export(store[path], "parquet", tmp_path, progress=progress)
    assert progress.total == work_of(store[path], "parquet")
    read = datasets.Dataset.from_parquet(str(made), cache_dir=str(tmp_path / "cache"))
    rows = read.with_format("numpy")[:]
    for name, array in store[path].arrays.items():
        values = np.asarray(rows[name]).reshape(array.shape)
        np.testing.assert_array_equal(values.astype(array.dtype), array[:])  # the library widens numbers as it reads
    assert read.features["seed"].dtype == "uint64"
    metadata = pyarrow.parquet.read_schema(made).metadata
    assert json.loads(metadata[b"s2rm-data"])["settings"] == store[path].settings


def test_parquet_holds_arrays_of_any_number_of_dimensions(tmp_path: Path) -> None:
    group = _many_dimensions(tmp_path / "deep.zarr")
    read = datasets.Dataset.from_parquet(str(export(group, "parquet", tmp_path)), cache_dir=str(tmp_path / "cache"))
    values = np.asarray(read.with_format("numpy")[:]["values"])
    np.testing.assert_array_equal(values.reshape(group["values"].shape), group["values"][:])


def _many_dimensions(path: Path) -> Group:
    spec = ArraySpec(name="values", dtype="int16", shape=(2,) * 6, dims=tuple("abcdef"), description="")

    class Deep(SplitSource):
        group, count, first_dim, arrays = "deep/train", 3, "sequence", (spec,)
        attributes: ClassVar = {}
        settings: ClassVar = {"generator": "deep", "config": {}, "seed": 0}

        def produce(self, start: int, stop: int) -> dict[str, np.ndarray]:
            return {"values": np.arange(start * 64, stop * 64, dtype="i2").reshape(-1, *spec.shape)}

    generate([Deep()], path)
    return Store(path)["deep/train"]


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("path", GROUPS)
def test_webdataset_streams_what_the_store_holds(
    store: Store, tmp_path: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tar_shards, "SHARD_NBYTES", 10_000)
    folder = export(store[path], "webdataset", tmp_path)
    shards = sorted(str(shard) for shard in folder.glob("*.tar"))
    assert len(shards) > 1
    samples = list(webdataset.WebDataset(shards, shardshuffle=False).decode())
    assert [sample["__key__"] for sample in samples] == [f"{number:08}" for number in range(len(store[path]))]
    for number, sample in enumerate(samples):
        for name, array in store[path].arrays.items():
            np.testing.assert_array_equal(sample["npz"][name], array[number])
            assert sample["npz"][name].dtype == array.dtype
    assert json.loads((folder / "attributes.json").read_text())["settings"] == store[path].settings
    gc.collect()  # the library leaves its files to be closed by Python, which would complain in another test


@pytest.mark.parametrize("form", ["npz", "hdf5", "parquet"])
def test_equal_data_give_equal_files(store: Store, tmp_path: Path, form: str) -> None:
    first, second = (export(store["bballs/val"], form, tmp_path / name).read_bytes() for name in "ab")
    assert first == second


def test_gifs_show_every_frame_of_the_sequences_asked_for(store: Store, tmp_path: Path) -> None:
    folder = export(store["bballs/val"], "gif", tmp_path, count=2)
    assert [path.name for path in sorted(folder.iterdir())] == ["00000.gif", "00001.gif", "files.json"]
    with Image.open(folder / "00001.gif") as gif:
        assert gif.n_frames == store["bballs/val"]["frames"].shape[1]
        gif.seek(7)
        shown = np.asarray(gif.convert("L"))[::4, ::4] > 128
    np.testing.assert_array_equal(shown, store["bballs/val"]["frames"][1][7] == 1)


def test_what_is_there_is_replaced_only_when_asked(store: Store, tmp_path: Path) -> None:
    made = export(store["bballs/val"], "npz", tmp_path)
    made.write_text("precious")
    with pytest.raises(ConflictError, match=r"bballs-val\.npz is there already.*--overwrite"):
        export(store["bballs/val"], "npz", tmp_path)
    assert made.read_text() == "precious"
    export(store["bballs/val"], "npz", tmp_path, overwrite=True)
    assert np.load(made)["seed"].shape == (6,)


@pytest.mark.parametrize("name", ["pipe:touch HACKED; cat >/dev/null #", "a:b", "x%06dy", "s3:x"])
def test_the_name_of_a_folder_is_a_name_and_nothing_else(
    store: Store, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No library interprets it: as a command of a shell, an address or a pattern."""
    monkeypatch.chdir(tmp_path)
    for form in ("npz", "hdf5", "parquet", "webdataset", "gif"):
        assert export(store["bballs/val"], form, Path(name), count=1, overwrite=True).exists(), form
    assert [path.name for path in tmp_path.iterdir()] == [name.split("/")[0]]


def test_an_export_replaces_no_folder_with_anything_foreign_in_it(store: Store, tmp_path: Path) -> None:
    made = export(store["bballs/val"], "webdataset", tmp_path)
    before = tree(made)
    export(store["bballs/val"], "webdataset", tmp_path, overwrite=True)
    assert tree(made) == before
    (made / "thesis.txt").write_text("precious")
    with pytest.raises(ConflictError, match=r"holds other files \(thesis.txt, ...\)"):
        export(store["bballs/val"], "webdataset", tmp_path, overwrite=True)
    assert tree(made) == before | {"thesis.txt": b"precious"}


def test_a_failed_export_leaves_nothing_behind(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Counted, "advance", full)
    for form in ("npz", "hdf5"):
        with pytest.raises(DiskError, match="the disk is full"):
            export(store["bballs/val"], form, tmp_path, progress=Counted())
        assert list(tmp_path.iterdir()) == [], form


@pytest.mark.sample(1, each="form")
@pytest.mark.parametrize("limit", [1_000, 3_000])
@pytest.mark.parametrize("form", ["npz", "hdf5", "parquet", "webdataset", "gif"])
def test_a_disk_that_refuses_is_an_error_and_not_a_crash(store: Store, tmp_path: Path, form: str, limit: int) -> None:
    code = (
        "import sys; from pathlib import Path; from s2rm_data.store import Store; import resource\n"
        "from s2rm_data.core.errors import DiskError; from s2rm_data.inspection.export_format import export\n"
        "group = Store(sys.argv[1])['bballs/train']\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))\n"
        f"try: export(group, {form!r}, Path(sys.argv[2]))\n"
        "except DiskError as error: print(error); sys.exit(6)\n"
    )
    # Python would cache modules that the limit has cut.
    process = Forked("python", "-c", code, str(store.path), str(tmp_path), environment={"PYTHONDONTWRITEBYTECODE": "1"})
    said, err = finish(process)
    assert process.returncode == 6, (process.returncode, err)
    assert "cannot write" in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("form", ["npz", "hdf5", "parquet", "webdataset", "gif"])
def test_a_folder_may_have_any_name(store: Store, tmp_path: Path, form: str) -> None:
    assert export(store["bballs/val"], form, tmp_path / os.fsdecode(b"\xff\n: ?"), count=1).exists()


def test_unknown_formats_and_counts_are_refused(store: Store, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="did you mean 'npz'"):
        export(store["bballs/val"], "npy", tmp_path)
    with pytest.raises(UsageError, match="1 or more"):
        export(store["bballs/val"], "npz", tmp_path, count=0)


def test_without_h5py_the_message_says_how_to_install_it(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(MissingComponentError, match=r"pip install 's2rm-data\[export\]'"):
        export(store["bballs/val"], "hdf5", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_inspection_needs_no_torch() -> None:
    code = (
        "import sys, s2rm_data.inspection.export_format; from s2rm_data.core.registry import WORLDS;"
        "assert all(WORLDS.load(name).inspection() for name in WORLDS.names()); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
