"""Sealed is not trusted: whatever a store's documents say, reading and verifying it end soon, in little memory, with an
error that names the document."""

from __future__ import annotations

import os
import resource
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
import pytest
import zstandard
from hostile_stores import change_array, change_group, replace_object, reseal
from small_stores import read_everything
from toy import ToySplit

from s2rm_data.core.errors import ConflictError, DamagedStoreError, S2RMError, UsageError
from s2rm_data.making.run import generate
from s2rm_data.store import Store, verify
from s2rm_data.store.codec import ABSENT, assemble_shard
from s2rm_data.store.documents import MOST_ROOT_BYTES

MEMORY_BYTES = 256 << 20  # more than the tests' process may grow by
SECONDS = 30


@pytest.fixture(autouse=True)
def bounded() -> Iterator[None]:
    """A store that takes much memory or never ends fails its test instead of the machine."""
    with open("/proc/self/statm") as file:  # noqa: PTH123
        size = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY_BYTES, before[1]))

    def too_long(number: int, frame: object) -> None:
        raise TimeoutError(f"more than {SECONDS} s of the processor's, or has waited for {20 * SECONDS} s")

    handlers = {number: signal.signal(number, too_long) for number in (signal.SIGPROF, signal.SIGALRM)}
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    signal.alarm(20 * SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        resource.setrlimit(resource.RLIMIT_AS, before)


@contextmanager
def refused(case: str, *allowed: type[S2RMError]) -> Iterator[None]:
    """Whatever comes instead is said with the case."""
    try:
        yield
    except (DamagedStoreError, *allowed):
        return
    except Exception as error:
        raise AssertionError(f"{case}: not refused, but {error!r}") from error
    raise AssertionError(f"{case}: not refused")


def assert_refused(path: Path, case: str) -> None:
    assert verify(path).problems, f"{case}: verify says that all is well"
    with refused(case):
        read_everything(path)
    with refused(case, ConflictError):
        generate([ToySplit()], path, shard_size=4)


def at(*keys: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    def find(document: dict[str, Any]) -> dict[str, Any]:
        for key in keys:
            document = document[key]
        return document

    return find


def put(*keys: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda document: at(*keys[:-1])(document).__setitem__(keys[-1], value)


def drop(*keys: str) -> Callable[[dict[str, Any]], None]:
    return lambda document: at(*keys[:-1])(document).__delitem__(keys[-1])


MANIFEST = ("attributes", "manifest")
GROUP = (*MANIFEST, "groups", "toy/train")
OBJECTS = (*MANIFEST, "objects")
SEED_0 = (*OBJECTS, "toy/train/seed/c.0")
ENTRY = {"bytes": 1, "sha256": "0" * 64}
DEEP: Any = []
for _ in range(400):
    DEEP = [DEEP]

ROOTS = {
    "no node_type": drop("node_type"),
    "another node_type": put("node_type", value="array"),
    "zarr_format is text": put("zarr_format", value="3"),
    "an unknown key": put("more", value=1),
    "attributes are a list": put("attributes", value=[]),
    "no format": drop("attributes", "format"),
    "another format": put("attributes", "format", value="s2rm-date"),
    "format_version is text": put("attributes", "format_version", value="1"),
    "an unknown attribute": put("attributes", "more", value={}),
    "no manifest": drop(*MANIFEST),
    "manifest is a list": put(*MANIFEST, value=[]),
    "no groups": drop(*MANIFEST, "groups"),
    "groups are a list": put(*MANIFEST, "groups", value=[]),
    "groups are null": put(*MANIFEST, "groups", value=None),
    "no objects": drop(*MANIFEST, "objects"),
    "objects are a number": put(*MANIFEST, "objects", value=7),
    "a group outside": put(*MANIFEST, "groups", "../toy", value={"arrays": {"a": 1}, "shards": 1}),
    "a group at the root": put(*MANIFEST, "groups", "/etc", value={"arrays": {"a": 1}, "shards": 1}),
    "a group without a name": put(*MANIFEST, "groups", "", value={"arrays": {"a": 1}, "shards": 1}),
    "a group with dots inside": put(*MANIFEST, "groups", "toy/../train", value={"arrays": {"a": 1}, "shards": 1}),
    "a group with a control character": put(*MANIFEST, "groups", "a\x1b[2J", value={"arrays": {"a": 1}, "shards": 1}),
    "a group with a name of 1 MB": put(*MANIFEST, "groups", "a" * 10**6, value={"arrays": {"a": 1}, "shards": 1}),
    "a group inside another": put(*MANIFEST, "groups", "toy/train/more", value={"arrays": {"a": 1}, "shards": 1}),
    "a group is a list": put(*GROUP, value=[]),
    "a group without shards": drop(*GROUP, "shards"),
    "a group without arrays": drop(*GROUP, "arrays"),
    "an empty group": put(*GROUP, "arrays", value={}),
    "arrays are a list": put(*GROUP, "arrays", value=["seed"]),
    "an array outside": put(*GROUP, "arrays", "../../x", value=1),
    "an array that is not there": put(*GROUP, "arrays", "more", value=1),
    "an array of no dimensions": put(*GROUP, "arrays", "seed", value=0),
    "an array of 1e9 dimensions": put(*GROUP, "arrays", "seed", value=10**9),
    "an array of other dimensions": put(*GROUP, "arrays", "seed", value=2),
    "dimensions are true": put(*GROUP, "arrays", "seed", value=True),
    "1e12 shards": put(*GROUP, "shards", value=10**12),
    "250,000 shards": put(*GROUP, "shards", value=250_000),
    "no shards": put(*GROUP, "shards", value=0),
    "-1 shards": put(*GROUP, "shards", value=-1),
    "2.5 shards": put(*GROUP, "shards", value=2.5),
    "shards are text": put(*GROUP, "shards", value="3"),
    "fewer shards": put(*GROUP, "shards", value=2),
    "an object outside": put(*OBJECTS, "../passwd", value=ENTRY),
    "an absolute object": put(*OBJECTS, "/etc/passwd", value=ENTRY),
    "an object of no group": put(*OBJECTS, "toy/more/c.0", value=ENTRY),
    "a shard past the end": put(*OBJECTS, "toy/train/seed/c.3", value=ENTRY),
    "a shard with a leading zero": put(*OBJECTS, "toy/train/seed/c.00", value=ENTRY),
    "an object is a number": put(*SEED_0, value=4),
    "an object without bytes": drop(*SEED_0, "bytes"),
    "an object with more keys": put(*SEED_0, "more", value=4),
    "bytes are text": put(*SEED_0, "bytes", value="4"),
    "bytes are 1e300": put(*SEED_0, "bytes", value=1e300),
    "bytes are negative": put(*SEED_0, "bytes", value=-1),
    "2^80 bytes": put(*SEED_0, "bytes", value=2**80),
    "sha256 is null": put(*SEED_0, "sha256", value=None),
    "sha256 is short": put(*SEED_0, "sha256", value="abc"),
    "a document of 1 TB": put(*OBJECTS, "toy/train/zarr.json", "bytes", value=10**12),
    "no group document": drop(*OBJECTS, "toy/train/zarr.json"),
    "no array document": drop(*OBJECTS, "toy/train/seed/zarr.json"),
    "no parent document": drop(*OBJECTS, "toy/zarr.json"),
    "no consolidated metadata": drop("consolidated_metadata"),
    "consolidated metadata are a list": put("consolidated_metadata", value=[]),
    "consolidated metadata of nothing": put("consolidated_metadata", "metadata", value={}),
    "consolidated metadata of more": put("consolidated_metadata", "metadata", "more", value={}),
    "a consolidated document is null": put("consolidated_metadata", "metadata", "toy/train/seed", value=None),
    "a consolidated document is deep": put("consolidated_metadata", "metadata", "toy/train/seed", value={"a": DEEP}),
    "another consolidated shape": put("consolidated_metadata", "metadata", "toy/train/seed", "shape", value=[11]),
    "NaN": put("consolidated_metadata", "metadata", "toy", "attributes", value={"x": float("nan")}),
}


def test_a_sealed_root_document_is_not_trusted(toy_store: Path) -> None:
    sound = (toy_store / "zarr.json").read_bytes()
    for name, change in ROOTS.items():
        (toy_store / "zarr.json").write_bytes(sound)
        reseal(toy_store, change)
        problems = verify(toy_store).problems
        assert problems and all(problem.startswith(str(toy_store)) for problem in problems), name
        with refused(name):
            read_everything(toy_store)


SHARDING = ("codecs", 0, "configuration")
ARRAYS = {
    "1e9 sequences": put("shape", value=[10**9]),
    "1e18 sequences": put("shape", value=[10**18]),
    "no sequences": put("shape", value=[0]),
    "-1 sequences": put("shape", value=[-1]),
    "fewer sequences": put("shape", value=[9]),
    "a shape of text": put("shape", value=["10"]),
    "a shape without dimensions": put("shape", value=[]),
    "a shape of 1000 dimensions": put("shape", value=[10] * 1000),
    "rows of 1e9 by 1e9": put("shape", value=[10, 10**9, 10**9]),
    "an object as data type": put("data_type", value="object"),
    "a structure as data type": put("data_type", value="V8,V9"),
    "a number as data type": put("data_type", value=8),
    "another data type": put("data_type", value="float64"),
    "chunks of 0": put(*SHARDING, "chunk_shape", value=[0]),
    "chunks of 1e9": put(*SHARDING, "chunk_shape", value=[10**9]),
    "chunks of 3": put(*SHARDING, "chunk_shape", value=[3]),
    "chunks of text": put(*SHARDING, "chunk_shape", value="4"),
    "shards of 0": put("chunk_grid", "configuration", "chunk_shape", value=[0]),
    "shards of 1e9": put("chunk_grid", "configuration", "chunk_shape", value=[10**9]),
    "shards of 8": put("chunk_grid", "configuration", "chunk_shape", value=[8]),
    "no codecs": put("codecs", value=[]),
    "another codec": put("codecs", value=[{"name": "gzip", "configuration": {"level": 1}}]),
    "an index at the start": put(*SHARDING, "index_location", value="start"),
    "level 1000": put(*SHARDING, "codecs", 1, "configuration", "level", value=1000),
    "no names of dimensions": put("dimension_names", value=None),
    "numbers as names of dimensions": put("dimension_names", value=[1]),
    "attributes are a list": put("attributes", value=[]),
    "packed bits of text": put("attributes", "packed_bits", value="8"),
    "1e12 packed bits": put("attributes", "packed_bits", value=10**12),
    "an unknown key": put("more", value=1),
}


def test_sealed_metadata_of_an_array_are_not_trusted(toy_template: Path, tmp_path: Path) -> None:
    for number, (name, change) in enumerate(ARRAYS.items()):
        path = Path(shutil.copytree(toy_template, tmp_path / str(number)))
        change_array(path, "toy/train/seed", change)
        assert_refused(path, name)


GROUPS = {
    "no settings": drop("attributes", "settings"),
    "settings are a list": put("attributes", "settings", value=[]),
    "attributes are null": put("attributes", value=None),
    "another kind of node": put("node_type", value="array"),
    "other consolidated metadata": put("consolidated_metadata", "metadata", "seed", "shape", value=[10**9]),
    "an unknown key": put("more", value=1),
}


def test_sealed_metadata_of_a_group_are_not_trusted(toy_template: Path, tmp_path: Path) -> None:
    for number, (name, change) in enumerate(GROUPS.items()):
        path = Path(shutil.copytree(toy_template, tmp_path / str(number)))
        change_group(path, "toy/train", change)
        assert_refused(path, name)


def test_a_sealed_document_that_is_none_is_refused(toy_template: Path, tmp_path: Path) -> None:
    for number, data in enumerate((b"", b"\xff\xfe", b"[]\n", b"null\n", b"[" * 100_000, b"1" * 5000, b"{}")):
        path = Path(shutil.copytree(toy_template, tmp_path / str(number)))
        replace_object(path, "toy/train/seed/zarr.json", data)
        assert_refused(path, repr(data[:9]))


def test_a_group_without_an_expected_attribute_is_damaged(toy_store: Path) -> None:
    change_group(toy_store, "toy/train", drop("attributes", "settings", "config"))
    with pytest.raises(DamagedStoreError, match=r"toy/train: its attributes have no 'config'"):
        _ = Store(toy_store)["toy/train"].settings["config"]


def test_a_root_document_of_a_gigabyte_is_refused_unread(toy_store: Path) -> None:
    with (toy_store / "zarr.json").open("r+b") as file:
        file.truncate(1 << 30)
    assert verify(toy_store).problems == [
        f"{toy_store}/zarr.json: has {1 << 30:,} bytes; at most {MOST_ROOT_BYTES:,} are allowed"
    ]


def test_a_sparse_shard_of_20_gb_is_refused_unread(toy_store: Path) -> None:
    with (toy_store / "toy/train/seed/c.0").open("r+b") as file:
        file.truncate(20 << 30)
    problems = verify(toy_store).problems
    assert len(problems) == 1 and f"has {20 << 30} bytes where" in problems[0]
    with pytest.raises(DamagedStoreError, match="were committed"):
        read_everything(toy_store)


@pytest.mark.parametrize("name", ["zarr.json", "toy/zarr.json", "toy/train/seed/zarr.json", "toy/train/seed/c.0"])
def test_a_pipe_or_a_link_in_the_place_of_an_object_is_refused(toy_store: Path, name: str, tmp_path: Path) -> None:
    path = toy_store / name
    outside = tmp_path / "outside"
    path.rename(outside)
    for place in (lambda: os.mkfifo(path), lambda: path.symlink_to("/dev/zero"), lambda: path.symlink_to(outside)):
        place()
        assert any(name in problem for problem in verify(toy_store).problems)
        with pytest.raises(DamagedStoreError, match=r"is a pipe|is a link"):
            read_everything(toy_store)
        path.unlink()


def test_a_folder_that_is_a_link_is_neither_read_nor_written_through(toy_store: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (toy_store / "toy").rename(outside)
    (toy_store / "toy").symlink_to(outside)
    assert all("is a link" in problem for problem in verify(toy_store).problems)
    with pytest.raises(DamagedStoreError, match="is a link"):
        read_everything(toy_store)
    with pytest.raises(ConflictError, match=r"toy is a link; nothing is written through it"):
        generate([ToySplit(group="toy/test")], toy_store)
    assert not (outside / "test").exists()


def checksummed(data: bytes) -> bytes:
    return data + google_crc32c.value(data).to_bytes(4, "little")


def sealed_shard(path: Path, chunk: bytes) -> None:
    """Replace the second shard of the seeds (one chunk of four) by one with this chunk, with all seals right."""
    replace_object(path, "toy/train/seed/c.1", b"".join(assemble_shard([chunk], 1)))


def test_a_chunk_that_asks_for_a_gigabyte_is_refused_before_it_gets_it(toy_store: Path) -> None:
    compressor = zstandard.ZstdCompressor().compressobj(size=1 << 30)
    bomb = b"".join(compressor.compress(bytes(1 << 20)) for _ in range(1 << 10)) + compressor.flush()
    assert len(bomb) < 100_000
    sealed_shard(toy_store, checksummed(bomb))
    assert any("says that it holds 1,073,741,824 bytes where 32 belong" in p for p in verify(toy_store).problems)
    with pytest.raises(DamagedStoreError, match="where 32 belong"):
        read_everything(toy_store)


@pytest.mark.parametrize(
    "chunk",
    [
        b"",
        b"abc",
        checksummed(b""),
        checksummed(b"not zstd"),
        checksummed(zstandard.ZstdCompressor(write_content_size=False).compress(bytes(32))),
        checksummed(zstandard.ZstdCompressor().compress(bytes(33))),
    ],
    ids=["empty", "too short", "nothing", "not zstd", "of unknown size", "of another size"],
)
def test_a_sealed_shard_with_a_bad_chunk_is_refused(toy_store: Path, chunk: bytes) -> None:
    sealed_shard(toy_store, chunk)
    assert verify(toy_store).problems
    with pytest.raises(DamagedStoreError):
        read_everything(toy_store)


@pytest.mark.parametrize(
    "row", [(0, 2**62), (2**63, 40), (0, 0), (8, 40), (0, 39), (0, 2**64 - 2), (int(ABSENT), int(ABSENT))]
)
def test_a_sealed_index_that_points_elsewhere_is_refused(toy_store: Path, row: tuple[int, int]) -> None:
    shard = (toy_store / "toy/train/seed/c.1").read_bytes()
    index = checksummed(np.array([row], dtype="<u8").tobytes())
    replace_object(toy_store, "toy/train/seed/c.1", shard[: -len(index)] + index)
    assert verify(toy_store).problems
    with pytest.raises(DamagedStoreError, match=r"seed/c\.1"):
        read_everything(toy_store)


def test_a_split_too_large_for_the_format_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"toy/train would need 400,000 shard files"):
        generate([ToySplit(count=400_000)], tmp_path / "toy.zarr", shard_size=4)
    assert verify(tmp_path / "toy.zarr").problems == []
    with pytest.raises(UsageError, match=r"shard size 2000000 is not possible"):
        generate([ToySplit(count=2_000_000)], tmp_path / "toy.zarr", shard_size=2_000_000)
