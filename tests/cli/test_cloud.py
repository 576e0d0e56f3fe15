"""The command on a bucket, in a process of its own: killed, resumed, and refused with documented statuses."""

from __future__ import annotations

import time
from pathlib import Path

from buckets import flip, tree_at
from program import run, start_forked
from toy import tree

from s2rm_data.store.place import place_of

BALLS = ["bballs", "--balls", "3", "--train", "120", "--val", "10", "--test", "0", "--frames", "20", "-j", "1", "-q"]


def test_a_killed_command_is_resumed_to_the_bytes_of_a_folder(bucket: str, tmp_path: Path) -> None:
    words, url = [*BALLS, "--shard-size", "10"], f"{bucket}/data.zarr"
    victim = start_forked(*words, "-o", url, cwd=tmp_path)
    shards = "bballs/train/frames"
    while victim.poll() is None and not any("/c." in name for name in place_of(url).names(shards)):
        time.sleep(0.02)
    victim.kill()
    victim.communicate()
    there = sum("/c." in name for name in place_of(url).names(shards))
    assert 0 < there < 12, "killed in the middle"
    status, _, err = run(*words, "-o", url, cwd=tmp_path)
    assert status == 0, err
    assert run(*words, "-o", "data.zarr", cwd=tmp_path)[0] == 0
    assert tree_at(url) == tree(tmp_path / "data.zarr")
    flip(url, f"{shards}/c.3.0.0.0")
    status, _, err = run("verify", url, "--quiet", cwd=tmp_path)
    assert (status, f"{url}/{shards}/c.3.0.0.0: SHA-256 does not match" in err) == (3, True)


def test_what_cannot_be_has_its_status(bucket: str, tmp_path: Path) -> None:
    for words, expected, says in (
        (["info", "s3://nobodys-bucket/data.zarr"], 2, "there is no bucket 'nobodys-bucket'"),
        (["merge", f"{bucket}/data.zarr"], 2, "there is no store at"),
        ([*BALLS, "-o", "http://example.org/data.zarr"], 2, "can only be read; write to a folder or a bucket"),
    ):
        status, _, err = run(*words, cwd=tmp_path)
        assert (status, says in err) == (expected, True), err
