from __future__ import annotations

import os
from pathlib import Path

import pytest
from toy import killed_at, tree

from s2rm_data.core.errors import ConflictError, DamagedStoreError, DiskError, UsageError
from s2rm_data.training.folder import RunFolder, read_log
from s2rm_data.training.journal import Log, add_timing


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


def begun(path: Path, content: str = "old") -> RunFolder:
    """A run with one of everything that a run writes."""
    folder = RunFolder(path)
    folder.open(resume=False, overwrite=False)
    fill(folder, content)
    folder.close()
    return folder


def fill(folder: RunFolder, content: str) -> None:
    folder.begin({"config": {"model": content}})
    log = Log(folder.log, 0)
    log.write({"kind": "validation", "step": 3})
    log.close()
    add_timing(folder.timing, {"step": 0, "events": f"events.{content}"})
    for name in (
        "state.safetensors",
        "best.safetensors",
        "predictions/step-0000003.png",
        f"tensorboard/events.{content}",
    ):
        (folder.path / name).parent.mkdir(exist_ok=True)
        (folder.path / name).write_text(content)


MINE = ("notes.txt", "predictions/mine.png", "tensorboard/events.mine", "seeds/7/config.json")


def add_mine(path: Path) -> None:
    for name in MINE:
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text("precious")


def test_the_run_that_is_replaced_stays_until_the_new_one_is_complete(tmp_path: Path) -> None:
    folder = begun(tmp_path)
    old = tree(tmp_path)
    add_mine(tmp_path)
    folder.open(resume=False, overwrite=True)
    assert tree(tmp_path) == old | dict.fromkeys(MINE, b"precious")
    folder.set_aside()
    fill(folder, "new")
    there = tree(tmp_path)
    assert {name: there[f"replaced/{name}"] for name in old} == old
    folder.forget_replaced()
    folder.close()
    kept = {name: data for name, data in there.items() if not name.startswith("replaced/")}
    assert tree(tmp_path) == kept
    assert {name: kept[name] for name in MINE} == dict.fromkeys(MINE, b"precious")
    assert not (tmp_path / "replaced").exists()


@pytest.mark.parametrize("name", ["tensorboard", "predictions", "seeds", "best.safetensors", "replaced"])
def test_nothing_is_replaced_through_a_link(tmp_path: Path, name: str) -> None:
    run, mine = tmp_path / "run", tmp_path / "mine"
    folder = begun(run)
    begun(mine)
    (run / name).rename(tmp_path / "moved") if (run / name).exists() else None
    (run / name).symlink_to(mine)
    before = tree(tmp_path)
    with pytest.raises(ConflictError, match=f"{name} is "):
        folder.open(resume=False, overwrite=True)
    assert tree(tmp_path) == before
    assert (run / name).is_symlink()


def test_a_kill_at_any_step_of_replacing_a_run_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def replace(folder: RunFolder) -> None:
        folder.open(resume=False, overwrite=True)
        folder.set_aside()
        folder.begin({"config": {"model": "new"}})
        (folder.path / "state.safetensors").write_text("new")

    def give_up(folder: RunFolder) -> None:
        folder.open(resume=False, overwrite=True)
        folder.set_aside()
        folder.begin({"config": {"model": "new"}})
        folder.restore()

    for work in (replace, give_up):
        for moment in range(500):
            path = tmp_path / f"{work.__name__}{moment}"
            folder = begun(path)
            old = tree(path)
            add_mine(path)
            stopped = killed_at(moment, lambda work=work, folder=folder: work(folder), monkeypatch)  # type: ignore[misc]
            folder.close()
            folder.open(resume=True, overwrite=False)  # as whoever comes next does
            there = tree(path)
            aside = {name.removeprefix("replaced/"): d for name, d in there.items() if name.startswith("replaced/")}
            assert old.items() <= (aside or there).items(), (work.__name__, moment)
            assert {name: there[name] for name in MINE} == dict.fromkeys(MINE, b"precious")
            folder.close()
            if not stopped:
                break
        assert moment > 20


def test_a_kill_while_the_replaced_run_is_removed_is_in_nobodys_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for moment in range(500):
        folder = begun(tmp_path / str(moment))
        folder.open(resume=False, overwrite=True)
        folder.set_aside()
        fill(folder, "new")
        folder.write_json(folder.summary, {})
        stopped = killed_at(moment, folder.forget_replaced, monkeypatch)
        folder.close()
        folder.open(resume=False, overwrite=True)
        assert not (folder.path / "replaced").exists(), moment
        folder.set_aside()
        folder.close()
        if not stopped:
            break
    assert moment > 5


def test_a_log_that_cannot_be_closed_is_named(tmp_path: Path) -> None:
    log = Log(tmp_path / "log.jsonl", 0)
    log._file.close()
    log._file = Path("/dev/full").open("wb")  # noqa: SIM115
    log.write({"step": 0})
    with pytest.raises(DiskError, match=r"log\.jsonl: the disk is full"):
        log.close()


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
