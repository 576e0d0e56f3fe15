"""A store in a bucket keeps the promises of a store in a folder."""

from __future__ import annotations

import ctypes
import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from buckets import Proxy, flip, proxy, tree_at
from patience import wait_until
from toy import ToySplit, tree

from s2rm_data.core.addresses import Url, store_path
from s2rm_data.core.errors import ConflictError, DamagedStoreError, DiskError, UsageError
from s2rm_data.making.repair import repair
from s2rm_data.making.run import generate
from s2rm_data.store import Store, StoreWriter, verify
from s2rm_data.store.places import bucket as bucket_place
from s2rm_data.store.places.bucket import ObjectPlace
from s2rm_data.store.regrouping import remove_group, rename_group

pytestmark = pytest.mark.costs(1)

SPLITS = [ToySplit(), ToySplit(group="toy/val", count=5)]


@pytest.fixture
def url(bucket: str) -> Url:
    """A store of two toy splits in a bucket."""
    made = store_path(f"{bucket}/toy.zarr")
    generate(SPLITS, made, shard_size=4)
    assert isinstance(made, Url)
    return made


def test_a_bucket_holds_the_bytes_that_a_folder_holds(url: Url, toy_store: Path) -> None:
    assert tree_at(url) == tree(toy_store)
    assert generate(SPLITS, url, shard_size=4).found == 15
    report = verify(url)
    assert (report.problems, report.digests) == ([], verify(toy_store).digests)
    there, here = Store(url)["toy/train"], Store(toy_store)["toy/train"]
    for rows in (slice(None), [7, 0, 3], [2]):
        np.testing.assert_array_equal(there["frames"][rows], here["frames"][rows])


def test_overwrite_replaces_a_split_in_a_bucket(url: Url, tmp_path: Path) -> None:
    generate([ToySplit(seed=1, count=3)], url, overwrite=True)
    generate([ToySplit(seed=1, count=3)], tmp_path / "toy.zarr")
    generate([SPLITS[1]], tmp_path / "toy.zarr", shard_size=4)
    assert tree_at(url) == tree(tmp_path / "toy.zarr")


def test_a_changed_or_missing_object_is_named(url: Url) -> None:
    name = "toy/train/frames/c.1.0.0"
    store = Store(url)
    store["toy/train"]["frames"][:]  # seen and found sound before
    flip(url, name)
    with pytest.raises(DamagedStoreError, match=rf"{url}/{name}: SHA-256 does not match"):
        store["toy/train"]["frames"][:]
    assert [p.partition(": ")[0] for p in verify(url).problems] == [f"{url}/{name}"]
    store.place.remove([name])
    with pytest.raises(DamagedStoreError, match=rf"{url}/{name}: is missing"):
        Store(url)["toy/train"]["frames"][5]


def test_what_a_kill_left_is_replaced_and_what_is_committed_is_not(url: Url) -> None:
    place = Store(url).place
    with place.writing():
        place.write_whole("toy/train/frames/c.9.0.0", [b"left behind"])
        place.write_whole("toy/train/frames/c.9.0.0", [b"made again"])
        assert place.read("toy/train/frames/c.9.0.0", 100) == b"made again"
        with pytest.raises(ConflictError, match="has been committed by another process"):
            place.write_whole("toy/train/frames/c.0.0.0", [b"other bytes"])


def test_what_may_be_anothers_is_not_replaced_once_another_has_committed(url: Url) -> None:
    place = Store(url).place
    with place.writing():
        generate([ToySplit(group="toy/more", count=2)], url)
        place.write_whole("toy/train/frames/c.9.0.0", [b"perhaps theirs"])
        with pytest.raises(ConflictError, match="has committed since this one began"):
            place.write_whole("toy/train/frames/c.9.0.0", [b"ours"])


def test_of_two_writers_the_second_to_commit_is_told(url: Url) -> None:
    with StoreWriter(url) as first:
        generate([ToySplit(group="toy/more", count=2)], url)
        before = tree_at(url)
        with pytest.raises(ConflictError, match="has committed since this one began"):
            first.begin(late_split())
    assert {k: v for k, v in tree_at(url).items() if k in before} == before


def late_split() -> Any:
    from s2rm_data.making.run import split_spec

    return split_spec(ToySplit(group="toy/late", count=2), 4)


class IgnoresConditions(Proxy):
    def changed(self, headers: dict[str, str]) -> dict[str, str]:
        return {name: value for name, value in headers.items() if name.lower() not in ("if-match", "if-none-match")}


def test_a_server_that_ignores_conditions_is_refused(
    bucket: str, s3_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with proxy(IgnoresConditions, s3_address) as address:
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        with pytest.raises(ConflictError, match="does not keep conditional writes"):
            generate(SPLITS, store_path(f"{bucket}/toy.zarr"), shard_size=4)
        assert tree_at(f"{bucket}/toy.zarr") == {}


class Busy(Proxy):
    """Says 409 to the first two root documents, and 429 to the third."""

    answers = [409, 409, 429]

    def answer(self, send: Any) -> Any:
        if self.command == "PUT" and self.path.endswith("toy.zarr/zarr.json") and self.answers:
            return self.answers.pop(0), {}, b"<Error><Code>ConditionalRequestConflict</Code></Error>"
        return send()


class LosesAnswers(Proxy):
    """Keeps the first root document, and says that it has failed."""

    lost: list[int] = []

    def answer(self, send: Any) -> Any:
        found = send()
        if self.command == "PUT" and self.path.endswith("toy.zarr/zarr.json") and not self.lost:
            self.lost.append(1)
            return 503, {}, b""
        return found


@pytest.mark.parametrize("kind", [Busy, LosesAnswers])
def test_a_busy_server_is_asked_again_and_nothing_is_written_twice(
    kind: type[Proxy], bucket: str, s3_address: str, monkeypatch: pytest.MonkeyPatch, toy_store: Path
) -> None:
    with proxy(kind, s3_address) as address:
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        generate(SPLITS, store_path(f"{bucket}/toy.zarr"), shard_size=4)
        assert tree_at(f"{bucket}/toy.zarr") == tree(toy_store)
        assert kind is not Busy or not Busy.answers


class CutsOff(Proxy):
    """Ends the connection in the middle of every shard."""

    def answer(self, send: Any) -> Any:
        status, headers, data = send()
        if self.command == "GET" and "/c.0" in self.path:
            return status, {**headers, "Cut": str(len(data))}, data[: len(data) // 2]
        return status, headers, data


def test_a_connection_lost_in_the_middle_is_not_called_damage(
    url: Url, s3_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with proxy(CutsOff, s3_address) as address:
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        with pytest.raises(DiskError, match=r"c\.0\.0\.0: the server cannot be reached, or has failed"):
            Store(url)["toy/train"]["frames"][0]
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3_address)
    assert verify(url).problems == []


def test_repair_makes_an_object_of_a_bucket_again(bucket: str) -> None:
    from s2rm_data.generators.bballs.making.ball_source import plan

    url = store_path(f"{bucket}/balls.zarr")
    generate(plan(balls=(3,), train=6, val=2, test=0, frames=8), url, shard_size=4)
    before = tree_at(str(url))
    flip(str(url), "bballs/train/frames/c.0.0.0.0")
    assert repair(url, "bballs/train").objects == ("bballs/train/frames/c.0.0.0.0",)
    assert tree_at(str(url)) == before


def test_what_stands_in_the_way_is_said(bucket: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no bucket 'nobodys-bucket'"):
        generate(SPLITS, store_path("s3://nobodys-bucket/toy.zarr"))
    with pytest.raises(UsageError, match=rf"there is no store at {bucket}/none\.zarr"):
        Store(f"{bucket}/none.zarr")
    for text, says in (
        ("s3://mine", "names no store"),
        ("s3://mine/a/../b", "names no store"),
        ("ftp://mine/x", "addresses of stores begin with s3://, gs://, az://"),
    ):
        with pytest.raises(UsageError, match=says):
            Store(text)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(DiskError, match="the server cannot be reached"):
        Store(f"{bucket}/toy.zarr")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", "http://127.0.0.1:9")  # not to ask a machine of a cloud
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(DiskError, match="there are no credentials; give them as that cloud's own tools take them"):
        Store(f"{bucket}/toy.zarr")


def test_credentials_and_endpoint_may_stand_in_the_files_of_aws(
    url: Url, s3_address: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name)
    (tmp_path / "credentials").write_text("[lab]\naws_access_key_id = tester\naws_secret_access_key = secret\n")
    (tmp_path / "config").write_text(f"[profile lab]\nregion = us-east-1\nendpoint_url = {s3_address}\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_PROFILE", "lab")
    assert Store(url).groups == ["toy/train", "toy/val"]


class LiesAboutPut(Proxy):
    """Says that it has kept the objects of a group, and has not."""

    def answer(self, send: Any) -> Any:
        if self.command == "PUT" and "/toy/first/" in self.path:
            return 200, {"ETag": '"believe-me"'}, b""
        return send()


def test_a_server_that_does_not_keep_what_it_says_it_keeps_is_found_out(
    url: Url, s3_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tree_at(str(url))
    with proxy(LiesAboutPut, s3_address) as address:
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        with pytest.raises(DiskError, match="the server said that it holds this object, and does not"):
            rename_group(url, "toy/train", "toy/first")
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3_address)
    assert {name: tree_at(str(url))[name] for name in before} == before
    rename_group(url, "toy/train", "toy/first")
    assert verify(url).problems == [] and Store(url).groups == ["toy/first", "toy/val"]


class KeepsTheOld(Proxy):
    """Says that it has replaced an object, and has not."""

    def answer(self, send: Any) -> Any:
        return (200, {"ETag": '"believe-me"'}, b"") if self.command == "PUT" and "/alive/" in self.path else send()


def test_a_server_that_keeps_the_old_bytes_of_the_same_size_is_found_out(
    url: Url, s3_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "toy/train/alive/c.0.0"
    there = Store(url).place.read(name, 10**6)
    with proxy(KeepsTheOld, s3_address) as address:
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        place = Store(url).place
        place.write_whole(name, [there], replace=True)  # nothing is lost
        with pytest.raises(DiskError, match="holds other bytes than it was given"):
            place.write_whole(name, [bytes(len(there))], replace=True)


class KeepsTheOldRoot(Proxy):
    """Says that it has replaced the root, and has not."""

    def answer(self, send: Any) -> Any:
        lies = self.command == "PUT" and self.path.endswith("toy.zarr/zarr.json")
        return (200, {"ETag": '"believe-me"'}, b"") if lies else send()


@pytest.mark.parametrize("is_new", [False, True])
def test_a_commit_that_the_server_did_not_keep_is_found_out(
    url: Url, bucket: str, s3_address: str, monkeypatch: pytest.MonkeyPatch, is_new: bool
) -> None:
    where = store_path(f"{bucket}/new/toy.zarr") if is_new else url
    splits = [ToySplit(group="toy/more")]
    with proxy(KeepsTheOldRoot, s3_address) as address:
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        with pytest.raises(DiskError, match="said that it has replaced it, and has not"):
            generate(splits, where, shard_size=4)
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3_address)
    generate(splits, where, shard_size=4)
    assert verify(where).problems == []


class SaysEmpty(Proxy):
    """Lists nothing, although there is something."""

    def answer(self, send: Any) -> Any:
        if self.command == "GET" and "list-type=2" in self.path:
            return 200, {}, b"<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>"
        return send()


def test_what_is_removed_does_not_depend_on_a_listing(
    url: Url, s3_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with proxy(SaysEmpty, s3_address) as address:
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        remove_group(url, "toy/train")
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3_address)
    assert not [name for name in tree_at(str(url)) if name.startswith(("toy/train", "_"))]


@pytest.mark.parametrize(
    "work", [lambda url: remove_group(url, "toy/train"), lambda url: rename_group(url, "toy/train", "toy/first")]
)
def test_what_was_stopped_after_its_commit_is_finished_by_the_same_command(
    url: Url, monkeypatch: pytest.MonkeyPatch, work: Any
) -> None:
    class Killed(BaseException): ...

    def killed(place: object, names: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(ObjectPlace, "remove", killed)
        with pytest.raises(Killed):
            work(url)
    assert [name for name in tree_at(str(url)) if name.startswith("toy/train/")]
    work(url)
    assert not [name for name in tree_at(str(url)) if name.startswith(("toy/train/", "_"))]
    assert verify(url).problems == []


def test_a_request_that_is_never_answered_leaves_the_main_thread_free_for_signals() -> None:
    """The client library waits without looking at signals, as `poll` does here."""
    asked, seen, answered = threading.Event(), threading.Event(), threading.Event()

    def silent() -> None:
        asked.set()
        while not answered.is_set():
            ctypes.CDLL(None).poll(None, 0, 50)

    def interrupt() -> None:
        asked.wait()
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        wait_until(lambda: seen.is_set() or cpu_is_spent())
        answered.set()

    begun = time.process_time()

    def cpu_is_spent() -> bool:
        return time.process_time() - begun > 5

    helper = threading.Thread(target=interrupt)
    helper.start()
    with pytest.raises(KeyboardInterrupt):
        bucket_place._waited(silent)
    assert not answered.is_set()  # it did not wait for the answer
    seen.set()
    helper.join()
