from __future__ import annotations

from pathlib import Path

import pytest

from s2rm_data.errors import ConflictError, DamagedStoreError, DiskError
from s2rm_data.training.folder import Log, RunFolder, read_log


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


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConflictError, match="is a file"):
        RunFolder(tmp_path / "file").open(resume=False, overwrite=False)
    with pytest.raises(DiskError, match="cannot write"):
        RunFolder(tmp_path / "file" / "run").open(resume=False, overwrite=False)


def test_what_a_kill_left_half_written_is_removed(tmp_path: Path) -> None:
    (tmp_path / "state.safetensors.partial").write_bytes(b"half")
    folder = RunFolder(tmp_path)
    folder.open(resume=True, overwrite=False)
    folder.close()
    assert list(tmp_path.iterdir()) == []
