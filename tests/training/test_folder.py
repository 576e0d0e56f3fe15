from __future__ import annotations

import os
from pathlib import Path

import pytest
from toy import tree

from s2rm_data.errors import ConflictError, DamagedStoreError, DiskError, UsageError
from s2rm_data.sealing import read_log
from s2rm_data.training.folder import Log, RunFolder


def test_a_log_is_cut_back_to_its_checkpoint(tmp_path: Path) -> None:
    log = Log(tmp_path / "log.jsonl", 0)
    log.write({"step": 0})
    length = log.sync()
    log.write({"step": 1})
    log.close()
    log = Log(tmp_path / "log.jsonl", length)
    log.write({"step": 2})
    log.close()
    assert read_log(tmp_path / "log.jsonl") == [{"step": 0}, {"step": 2}]


def test_a_log_shorter_than_its_checkpoint_is_damaged(tmp_path: Path) -> None:
    with pytest.raises(DamagedStoreError, match="shorter than the checkpoint says"):
        Log(tmp_path / "log.jsonl", 10)


def test_a_line_that_was_cut_off_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_bytes(b'{"step":0}\n{"st')
    assert read_log(tmp_path / "log.jsonl") == [{"step": 0}]


@pytest.mark.parametrize("line", [b"{", b"\xff\xfe", b"[" * 100_000, b"1" * 5000, b'{"step":0}{"step":1}', b"\0"])
def test_a_line_that_is_no_record_is_damage(tmp_path: Path, line: bytes) -> None:
    (tmp_path / "log.jsonl").write_bytes(b'{"step":0}\n' + line + b"\n")
    with pytest.raises(DamagedStoreError, match=r"log\.jsonl is damaged"):
        read_log(tmp_path / "log.jsonl")


def test_a_log_with_a_hole_is_refused_before_memory_is_taken(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_bytes(b'{"step":0}\n')
    os.truncate(tmp_path / "log.jsonl", 1 << 40)
    with pytest.raises(DamagedStoreError, match="a line of more than"):
        read_log(tmp_path / "log.jsonl")


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_what_is_in_the_place_of_a_log_is_neither_read_nor_written(tmp_path: Path, kind: str) -> None:
    log, foreign = tmp_path / "log.jsonl", tmp_path / "foreign"
    foreign.write_bytes(b"mine")
    {"link": lambda: log.symlink_to(foreign), "pipe": lambda: os.mkfifo(log), "folder": log.mkdir}[kind]()
    with pytest.raises(DamagedStoreError):
        read_log(log)
    with pytest.raises(DamagedStoreError, match="not a regular file"):
        Log(log, 0)
    assert foreign.read_bytes() == b"mine"


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConflictError, match="is a file"):
        RunFolder(tmp_path / "file").open(resume=False, overwrite=False)
    with pytest.raises(DiskError, match="cannot write"):
        RunFolder(tmp_path / "file" / "run").open(resume=False, overwrite=False)


def test_a_folder_whose_name_is_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not text; give --out another name"):
        RunFolder(tmp_path / os.fsdecode(b"\xff")).open(resume=False, overwrite=False)
    assert not list(tmp_path.iterdir())


def test_what_a_kill_left_half_written_is_removed(tmp_path: Path) -> None:
    (tmp_path / "run.json.partial").write_bytes(b"half")
    folder = RunFolder(tmp_path)
    folder.open(resume=True, overwrite=False)
    folder.begin({"config": {}})
    folder.close()
    for name in ("state.safetensors.partial", "thesis.partial"):
        (tmp_path / name).write_bytes(b"half")
    folder.open(resume=True, overwrite=False)
    folder.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.json", "run.json", "thesis.partial"]


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.parametrize("names", [["config.json"], ["log.jsonl"], ["summary.json", "config.json", "log.jsonl"]])
def test_a_folder_of_the_users_own_is_not_touched(
    tmp_path: Path, names: list[str], resume: bool, overwrite: bool
) -> None:
    for name in names:
        (tmp_path / name).write_text('{"config": {"model": "x"}, "precious": true}')
    (tmp_path / "predictions").mkdir()
    before = tree(tmp_path)
    with pytest.raises(ConflictError, match="holds other files"):
        RunFolder(tmp_path).open(resume=resume, overwrite=overwrite)
    assert tree(tmp_path) == before


def test_overwriting_a_run_leaves_what_is_not_of_a_run(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.open(resume=False, overwrite=False)
    folder.begin({"config": {}})
    folder.close()
    for name in ("notes.txt", "predictions/mine.png", "seeds/7/config.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("precious")
    folder.open(resume=False, overwrite=True)
    folder.close()
    assert tree(tmp_path) == dict.fromkeys(("notes.txt", "predictions/mine.png", "seeds/7/config.json"), b"precious")


def test_a_log_that_has_changed_since_the_checkpoint_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    log = Log(path, 0)
    log.write({"step": 0, "loss": 0.25})
    length, digest = log.sync(), log.sha256
    log.write({"step": 1, "loss": 0.125})
    log.close()
    sound = path.read_bytes()
    for position in range(0, 8 * length, 5):
        flipped = bytearray(sound)
        flipped[position // 8] ^= 1 << position % 8
        path.write_bytes(flipped)
        with pytest.raises(DamagedStoreError, match="is not as it was at the checkpoint"):
            Log(path, length, digest)
        assert path.read_bytes() == flipped
    path.write_bytes(sound)
    resumed = Log(path, length, digest)
    resumed.write({"step": 1, "loss": 0.125})
    resumed.close()
    assert path.read_bytes() == sound
