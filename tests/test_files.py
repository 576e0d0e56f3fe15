"""Files are replaced whole or not at all, and reading follows no link and blocks on no pipe."""

from __future__ import annotations

import os
import resource
import socket
import stat
from pathlib import Path

import pytest

from s2rm_data.errors import DamagedStoreError, DiskError
from s2rm_data.files import PARTIAL, read_inside, read_regular, replaced, replaced_folder, write_whole


def test_an_interrupted_replacement_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), replaced(path) as partial:
        partial.write_text("ne")
        raise KeyboardInterrupt
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_too_large_for_the_system_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_whole(path, [b"old"])
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with pytest.raises(DiskError, match=r"cannot write .*file: the file is larger"):
            write_whole(path, [b"x" * 3000, b"y" * 3000])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_written_files_can_be_read_by_everybody_whom_the_umask_allows(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        write_whole(tmp_path / "file", [b"data"])
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o644


def test_a_folder_is_replaced_with_all_that_is_in_it(tmp_path: Path) -> None:
    target = tmp_path / "pictures"
    for content in ("one", "two"):
        with replaced_folder(target) as partial:
            (partial / f"{content}.gif").write_text(content)
    assert [path.name for path in target.iterdir()] == ["two.gif"]
    assert [path.name for path in tmp_path.iterdir()] == ["pictures"]


def test_an_interrupted_replacement_leaves_the_old_folder(tmp_path: Path) -> None:
    target = tmp_path / "pictures"
    target.mkdir()
    (target / "one.gif").write_text("one")
    with pytest.raises(KeyboardInterrupt), replaced_folder(target) as partial:
        (partial / "two.gif").write_text("tw")
        raise KeyboardInterrupt
    assert [path.name for path in target.iterdir()] == ["one.gif"]
    assert not list(tmp_path.glob("*" + PARTIAL))


def test_an_interrupt_between_the_two_renames_leaves_the_old_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, rename = tmp_path / "pictures", Path.rename
    target.mkdir()
    (target / "one.gif").write_text("one")

    def interrupted(source: Path, new: Path) -> Path:
        if source.name == "pictures" + PARTIAL:
            raise KeyboardInterrupt
        return rename(source, new)

    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt), replaced_folder(target) as partial:
        (partial / "two.gif").write_text("two")
    assert [path.name for path in target.iterdir()] == ["one.gif"]
    assert not list(tmp_path.glob("*" + PARTIAL))


def test_what_a_kill_between_the_two_renames_left_is_put_back_first(tmp_path: Path) -> None:
    target = tmp_path / "pictures"
    for name in (f"pictures.old{PARTIAL}", f"pictures{PARTIAL}"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    with pytest.raises(DiskError, match="the disk is full"), replaced_folder(target):
        raise OSError(28, "No space left on device")
    assert [path.name for path in target.iterdir()] == [f"pictures.old{PARTIAL}"]
    assert list(tmp_path.iterdir()) == [target]


def test_replacing_a_link_leaves_what_it_points_to(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("kept")
    (tmp_path / "link").symlink_to(precious)
    with replaced_folder(tmp_path / "link") as partial:
        (partial / "new").write_text("new")
    assert (precious / "file").read_text() == "kept"


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
