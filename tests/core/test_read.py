"""Reading follows no link, blocks on no pipe and has a bound."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

import pytest

from s2rm_data.core.errors import DamagedStoreError, DiskError, UnreadableError
from s2rm_data.core.read import read_at, read_inside, read_regular


def test_reading_is_bounded_and_follows_nothing(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "folder").mkdir(parents=True)
    (root / "folder" / "file").write_bytes(b"data")
    assert read_inside(root, "folder/file", 4) == b"data"
    (tmp_path / "alias").symlink_to(root)
    assert read_inside(tmp_path / "alias", "folder/file", 4) == b"data"
    (root / "to_folder").symlink_to(root / "folder")
    (root / "to_file").symlink_to(root / "folder" / "file")
    (root / "endless").symlink_to("/dev/zero")
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(root / "socket"))
    for name, says in {
        "folder/file": "has 4 bytes; at most 3 are allowed",
        "folder": "is a folder, not a regular file",
        "missing": "is missing",
        "missing/file": "is missing",
        "folder/file/more": "is missing",
        "to_folder/file": "is a link",
        "to_file": "is a link",
        "endless": "is a link",
        "pipe": "is a pipe, not a regular file",
        "socket": "cannot be read",
    }.items():
        with pytest.raises(DamagedStoreError, match=f"{name}: {says}"):
            read_inside(root, name, 3)


def test_a_file_that_a_user_names_may_be_a_link_but_nothing_endless(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    os.mkfifo(tmp_path / "pipe")
    assert read_regular(tmp_path / "link", 3) == b"abc"
    for path, says in (("pipe", "not a regular file"), ("/dev/zero", "not a regular file"), ("file", "at most 2")):
        with pytest.raises(OSError, match=says):
            read_regular(tmp_path / path, 2)


def test_what_is_no_fault_of_a_file_is_not_called_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"data")
    for number, kind in ((errno.EMFILE, DiskError), (errno.EIO, UnreadableError)):

        def fails(*arguments: object, number: int = number, **options: object) -> int:
            raise OSError(number, os.strerror(number))

        with monkeypatch.context() as patch, pytest.raises(kind) as refused:
            patch.setattr(os, "open", fails)
            read_inside(tmp_path, "file", 4)
        assert refused.value.exit_status == 6, number


def test_a_system_that_gives_less_at_once_than_there_is_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_bytes(bytes(range(100)))
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda it, size, offset: pread(it, (size + 1) // 2, offset))
    with (tmp_path / "file").open("rb") as file:
        assert read_at(file.fileno(), 50, 20) == bytes(range(20, 70))
        assert read_at(file.fileno(), 50, 80) == bytes(range(80, 100))
