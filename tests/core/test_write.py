"""Files and folders are replaced whole or not at all."""

from __future__ import annotations

import os
import resource
import stat
from pathlib import Path

import pytest
from toy import killed_at

from s2rm_data.core import write
from s2rm_data.core.errors import ConflictError, DiskError
from s2rm_data.core.write import (
    LIST,
    PARTIAL,
    move_inside,
    remove_inside,
    replaced,
    replaced_folder,
    write_inside,
    write_whole,
)


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


def test_what_replaces_a_file_is_on_the_disk_before_it_takes_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a crash the name would otherwise stand for an empty file; and then the name itself is on the disk."""
    done = traced(monkeypatch)
    partial = tmp_path / f"file{PARTIAL}"
    write_whole(tmp_path / "file", [b"data"])
    with replaced(tmp_path / "file") as path:
        path.write_bytes(b"more")
    assert done == [str(partial), f"{partial} renamed", str(tmp_path)] * 2


def traced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is synced, and what is renamed, in order."""
    done: list[str] = []
    sync, rename = os.fsync, os.replace

    def replace(source: str, target: str, **at: int) -> None:
        done.append(f"{source} renamed")
        rename(source, target, **at)

    monkeypatch.setattr(os, "fsync", lambda it: done.append(str(Path(f"/proc/self/fd/{it}").readlink())) or sync(it))
    monkeypatch.setattr(os, "replace", replace)
    monkeypatch.setattr(Path, "replace", lambda path, to: replace(str(path), to))
    return done


def test_all_files_of_a_folder_are_on_the_disk_before_it_takes_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = traced(monkeypatch)
    with replaced_folder(tmp_path / "out") as partial:
        (partial / "one").write_text("1")
        (partial / "inner").mkdir()
        (partial / "inner" / "two").write_text("2")
    synced = {Path(line).name for line in done}
    assert synced >= {"one", "two", "inner", f"files.json{PARTIAL}", f"out{PARTIAL}", tmp_path.name}
    assert done[-1] == str(tmp_path)


def test_nothing_is_written_through_a_link_that_has_the_temporary_name(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("precious")
    for name in ("file", "other"):
        (tmp_path / f"{name}{PARTIAL}").symlink_to(tmp_path / "victim")
    with pytest.raises(ConflictError, match=r"file\.partial is a link.*nothing is written through it"):
        write_whole(tmp_path / "file", [b"data"])
    with pytest.raises(ConflictError, match="is a link"), replaced(tmp_path / "other") as partial:
        partial.write_text("data")
    assert (tmp_path / "victim").read_text() == "precious"
    assert (tmp_path / f"file{PARTIAL}").is_symlink()


def test_written_files_can_be_read_by_everybody_whom_the_umask_allows(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        write_whole(tmp_path / "file", [b"data"])
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o644


def test_a_folder_is_replaced_with_all_that_it_lists(tmp_path: Path) -> None:
    target = tmp_path / "pictures"
    for content in ("one", "two"):
        with replaced_folder(target) as partial:
            (partial / f"{content}.gif").write_text(content)
    assert sorted(path.name for path in target.iterdir()) == [LIST, "two.gif"]
    assert [path.name for path in tmp_path.iterdir()] == ["pictures"]


def filled(target: Path, name: str = "one.gif") -> None:
    with replaced_folder(target) as partial:
        (partial / name).write_text(name)


def test_what_a_folder_does_not_list_is_left_alone_and_said_to_be_in_the_way(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    for number, put in enumerate(
        (
            lambda folder: (folder / "thesis.txt").write_text("precious"),
            lambda folder: (folder / "inner").mkdir(),
            lambda folder: (folder / "link").symlink_to(mine),
            lambda folder: (folder / LIST).unlink(),
            lambda folder: (folder / LIST).write_text("{}"),
        )
    ):
        target = tmp_path / f"pictures{number}"
        filled(target)
        put(target)
        before = sorted(target.iterdir())
        with pytest.raises(ConflictError, match="nothing of it is replaced"):
            filled(target, "two.gif")
        assert sorted(target.iterdir()) == before, number
    for name in ("file", "link"):
        (tmp_path / name).symlink_to(mine) if name == "link" else (tmp_path / name).touch()
        with pytest.raises(ConflictError, match="is a link or a file"):
            filled(tmp_path / name)
    assert list(mine.iterdir()) == []


def test_a_folder_that_cannot_be_listed_is_not_taken_for_an_empty_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(tmp_path / "pictures")

    def fails(path: object) -> None:
        raise OSError(5, "Input/output error", str(path))

    with monkeypatch.context() as patch, pytest.raises(DiskError, match="Input/output error"):
        patch.setattr(os, "scandir", fails)
        filled(tmp_path / "pictures", "two.gif")
    assert (tmp_path / "pictures" / "one.gif").exists()


def test_a_folder_of_somebody_else_under_the_temporary_name_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / f"pictures{PARTIAL}").mkdir()
    (tmp_path / f"pictures{PARTIAL}" / "precious").touch()
    with pytest.raises(ConflictError, match=r"pictures\.partial is in the way"):
        filled(tmp_path / "pictures")
    assert (tmp_path / f"pictures{PARTIAL}" / "precious").exists()


def test_an_interrupted_replacement_leaves_the_old_folder(tmp_path: Path) -> None:
    target = tmp_path / "pictures"
    filled(target)
    with pytest.raises(KeyboardInterrupt), replaced_folder(target) as partial:
        (partial / "two.gif").write_text("tw")
        raise KeyboardInterrupt
    assert sorted(path.name for path in target.iterdir()) == [LIST, "one.gif"]
    assert not list(tmp_path.glob("*" + PARTIAL))


def test_what_was_replaced_and_cannot_be_removed_is_an_error_and_goes_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(tmp_path / "pictures")

    def fails(root: Path, names: object) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch, pytest.raises(DiskError, match="Input/output error"):
        patch.setattr(write, "remove_inside", fails)
        filled(tmp_path / "pictures", "two.gif")
    assert (tmp_path / "pictures" / "two.gif").exists() and (tmp_path / f"pictures{PARTIAL}").exists()
    filled(tmp_path / "pictures", "three.gif")
    assert [path.name for path in tmp_path.iterdir()] == ["pictures"]


@pytest.mark.parametrize("exchanges", [True, False])
def test_a_kill_at_any_step_leaves_the_old_folder_or_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchanges: bool
) -> None:
    """Where two folders cannot be exchanged in one step, the next who replaces it puts the old one back first."""
    if not exchanges:
        monkeypatch.setattr(write, "_exchanged", lambda one, other: False)
    for moment in range(200):
        target = tmp_path / str(moment) / "pictures"
        target.parent.mkdir()
        filled(target)
        if not killed_at(moment, lambda target=target: filled(target, "two.gif"), monkeypatch):  # type: ignore[misc]
            break
        seen = {path.name for path in target.iterdir()} if target.exists() else None
        assert seen in ({LIST, "one.gif"}, {LIST, "two.gif"}) or (seen is None and not exchanges), moment
        with pytest.raises(DiskError, match="the disk is full"), replaced_folder(target):
            raise OSError(28, "No space left on device")
        assert {path.name for path in target.iterdir()} in ({LIST, "one.gif"}, {LIST, "two.gif"}), moment
        filled(target, "two.gif")
        assert [path.name for path in target.parent.iterdir()] == ["pictures"], moment
        assert {path.name for path in target.iterdir()} == {LIST, "two.gif"}
    assert moment > 10


def test_folders_below_another_are_reached_through_no_link(tmp_path: Path) -> None:
    root, site = tmp_path / "root", tmp_path / "site"
    root.mkdir()
    site.mkdir()
    (site / "zarr.json").write_text("precious")
    (root / "array").symlink_to(site)
    with pytest.raises(ConflictError, match="is, or lies behind, a link"):
        write_inside(root, "array/zarr.json", [b"data"])
    remove_inside(root, ["array/zarr.json", "array"])
    write_inside(root, "other/zarr.json", [b"data"])
    with pytest.raises(ConflictError, match="is, or lies behind, a link"):
        move_inside(root, {"other/zarr.json": "array/zarr.json"})
    assert (site / "zarr.json").read_text() == "precious" and (root / "array").is_symlink()
    remove_inside(root, ["other/zarr.json", "not/there"])
    assert not (root / "other").exists()
