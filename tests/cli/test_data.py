"""The command as a user meets it, in a process of its own: messages, exit statuses, nothing lost."""

from __future__ import annotations

import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from forking import Forked
from patience import CLOCK_SECONDS, finish, wait_until
from program import run, start, start_forked
from toy import tree

from s2rm_data.cli.data import data
from s2rm_data.store import Store, StoreWriter

SMALL = ["bballs", "--balls", "1,3", "--train", "30", "--val", "4", "--test", "6", "--frames", "12"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    status, out, err = run(*SMALL, "--json", "--shard-size", "10", cwd=folder)
    assert status == 0, err
    assert json.loads(out)["made"] == 46
    return folder / "data.zarr"


def test_the_splits_are_those_asked_for(made: Path) -> None:
    store = Store(made)
    assert store.groups == ["bballs/test_1", "bballs/test_3", "bballs/train", "bballs/val"]
    assert {group: len(store[group]) for group in store.groups} == {
        "bballs/test_1": 6, "bballs/test_3": 6, "bballs/train": 30, "bballs/val": 4,
    }  # fmt: skip
    assert store["bballs/train"]["position"].shape == (30, 12, 3, 2)
    assert store["bballs/train"]["frames"].shape == (30, 12, 48, 48)


def test_running_the_same_command_again_finds_everything_done(made: Path) -> None:
    before = tree(made)
    status, _, err = run(*SMALL, "--shard-size", "10", cwd=made.parent)
    assert status == 0
    assert "everything is there already" in err
    assert tree(made) == before


@pytest.mark.parametrize("options", [["-j", "1"], ["-j", "4"], ["--seed", "0", "-q"]])
def test_how_it_is_run_is_no_part_of_what_is_stored(made: Path, tmp_path: Path, options: list[str]) -> None:
    assert run(*SMALL, "--shard-size", "10", "-o", "other.zarr", *options, cwd=tmp_path)[0] == 0
    assert tree(tmp_path / "other.zarr") == tree(made)


def test_splits_made_by_one_command_or_several_are_the_same(made: Path, tmp_path: Path) -> None:
    common = ["--frames", "12", "--shard-size", "10", "--train-balls", "3"]
    counts = {"--train": "30", "--val": "4", "--test": "0"}
    assert run("bballs", "--balls", "3", *sum(counts.items(), ()), *common, cwd=tmp_path)[0] == 0
    for balls in ("3", "1"):
        assert (
            run("bballs", "--balls", balls, "--train", "0", "--val", "0", "--test", "6", *common, cwd=tmp_path)[0] == 0
        )
    assert tree(tmp_path / "data.zarr") == tree(made)


def test_the_recorded_command_makes_the_split_again(made: Path, tmp_path: Path) -> None:
    words = Store(made)["bballs/test_1"].attributes["command"].split()
    assert words[0] == "s2rm-data"
    assert run(*words[1:], cwd=tmp_path)[0] == 0
    again = Store(tmp_path / "data.zarr")["bballs/test_1"]
    assert again.content_digest() == Store(made)["bballs/test_1"].content_digest()


@pytest.mark.parametrize(
    ("options", "status", "says"),
    [
        (["--balls", "0"], 2, "contains 0"),
        (["--balls", "6-1"], 2, "runs backwards; write 1-6"),
        (["--balls", "x"], 2, "is not a set of numbers; write 3, 1-6 or 1,3-5"),
        (["--balls", ""], 2, "is not a set of numbers"),
        (["--balls", "900"], 2, "fit"),
        (["--radius", "30"], 2, "radius"),
        (["--radius", "-1"], 2, "radius"),
        (["--speed", "fast"], 2, "neither a number nor a range"),
        (["--speed", "nan"], 2, "neither a number nor a range"),
        (["--preset", "kvea"], 2, "did you mean 'kvae'"),
        (["--workers", "0"], 2, "allowed are 1 to 1024"),
        (["--shard-size", "0"], 2, "allowed are 1 or more"),
        (["--frames", "0"], 2, "frames"),
        (["--size", "-3"], 2, "size"),
        (["--train", "-5"], 2, "--train"),
        (["--seed", "-1"], 2, "--seed"),
        (["--seed", str(2**63)], 2, "0<=x<=9223372036854775807"),
        (["--train", "0", "--val", "0", "--test", "0"], 2, "left out"),
        (["--trian", "5"], 2, "--train"),
        (["--out", "missing/data.zarr"], 2, "does not exist; create it first"),
    ],
)  # fmt: skip
def test_bad_options_get_one_message(tmp_path: Path, options: list[str], status: int, says: str) -> None:
    got, out, err = run("bballs", *options, cwd=tmp_path)
    assert (got, out) == (status, "")
    assert says in err
    assert list(tmp_path.iterdir()) == []


def test_no_command_and_unknown_commands_are_usage_errors(tmp_path: Path) -> None:
    assert run(cwd=tmp_path)[0] == 2
    assert run("balls", cwd=tmp_path)[0] == 2
    assert run("--help", cwd=tmp_path)[0] == 0


def test_other_settings_on_the_same_store_are_refused(made: Path) -> None:
    before = tree(made)
    for options in (
        ["--seed", "1"],
        ["--train", "31"],
        ["--radius", "3"],
        ["--preset", "sutskever"],
        ["--frames", "13"],
    ):
        status, _, err = run(*SMALL, "--shard-size", "10", *options, cwd=made.parent)
        assert status == 5
        assert "with other settings" in err and "--overwrite" in err
    assert tree(made) == before


def test_places_that_are_taken_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("precious")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "notes").write_text("precious")
    assert run(*SMALL, "-o", "file", cwd=tmp_path)[0] == 5
    assert run(*SMALL, "-o", "folder", "--overwrite", cwd=tmp_path)[0] == 5
    assert (tmp_path / "file").read_text() == (tmp_path / "folder" / "notes").read_text() == "precious"


def test_a_read_only_file_system_is_a_disk_error(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        folder = Path("/proc")  # root may write anywhere but there
    else:
        folder = tmp_path / "closed"
        folder.mkdir(mode=0o555)
    status, _, err = run(*SMALL, "-o", str(folder / "data.zarr"), cwd=tmp_path)
    assert status == 6
    assert "cannot write" in err


def test_a_second_run_at_the_same_time_is_told_so(made: Path) -> None:
    with StoreWriter(made):
        status, _, err = run(*SMALL, "--shard-size", "10", cwd=made.parent)
    assert status == 5
    assert "another process is writing" in err


def test_a_full_disk_loses_nothing_committed(made: Path, tmp_path: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (9_000, 9_000))

    path = tmp_path / "data.zarr"
    status, _, err = run(*SMALL, "--shard-size", "10", cwd=tmp_path, preexec_fn=limit)
    assert status == 6
    assert "committed before is safe" in err
    assert not list(path.rglob("*.partial"))
    assert run(*SMALL, "--shard-size", "10", cwd=tmp_path)[0] == 0
    assert tree(path) == tree(made)


LONG = [
    "bballs",
    "--balls",
    "3",
    "--train",
    "40000",
    "--val",
    "0",
    "--test",
    "0",
    "--frames",
    "100",
    "--shard-size",
    "50",
]


def wait_for_shards(path: Path, process: Forked) -> None:
    wait_until(lambda: list(path.glob("bballs/train/frames/c.*")), process)
    assert process.poll() is None, process.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_says_how_to_go_on(tmp_path: Path, number: signal.Signals) -> None:
    process = start_forked(*LONG, cwd=tmp_path)
    wait_for_shards(tmp_path / "data.zarr", process)
    process.send_signal(number)
    _, err = finish(process)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert "Run the same command again" in err
    assert Store(tmp_path / "data.zarr").unfinished["bballs/train"][1] == 800
    assert not list(tmp_path.rglob("*.partial"))
    status, _, err = run("info", "data.zarr", cwd=tmp_path)
    assert status == 0
    assert run("verify", "data.zarr", cwd=tmp_path)[0] == 3


def test_kills_at_random_moments_leave_the_same_bytes_after_resuming(tmp_path: Path) -> None:
    command = ["bballs", "--balls", "3", "--train", "1000", "--val", "30", "--test", "0", "--shard-size", "20", "-q"]
    assert run(*command, "-o", "whole.zarr", cwd=tmp_path)[0] == 0
    rng, path, killed = random.Random(0), tmp_path / "killed.zarr", 0
    for _ in range(3):  # tests/torture has many more
        shards = len(list(path.glob("bballs/*/seed/c.*")))
        process = start_forked(*command, "-o", "killed.zarr", cwd=tmp_path)
        while process.poll() is None and len(list(path.glob("bballs/*/seed/c.*"))) == shards:
            time.sleep(0.002)
        time.sleep(rng.random() * 0.05)
        process.kill()
        process.communicate()
        killed += process.returncode == -signal.SIGKILL
    assert killed >= 2
    assert run(*command, "-o", "killed.zarr", cwd=tmp_path)[0] == 0
    assert tree(path) == tree(tmp_path / "whole.zarr")


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("--fnord", "there is no option --fnord; `s2rm-data bballs --help` lists the options"),
        ("--trian", "there is no option --trian; did you mean --train?"),
        ("--gravitty", "there is no option --gravitty; did you mean --gravity?"),
    ],
)
def test_a_wrong_option_is_answered_with_one_that_is_near_or_none(typed: str, words: str, tmp_path: Path) -> None:
    status, _, err = run("bballs", typed, "3", cwd=tmp_path)
    assert status == 2
    assert words in err


def test_an_argument_that_is_given_as_an_option_is_explained(tmp_path: Path) -> None:
    status, _, err = run("preview", "data.zarr", "--group", "bballs/val", cwd=tmp_path)
    assert status == 2
    assert "there is no option --group; give GROUP by itself, as the usage line shows" in err
    assert "STORE [GROUP]" in err


def test_verify_names_what_is_damaged(made: Path, tmp_path: Path) -> None:
    assert run("verify", str(made), cwd=tmp_path)[0] == 0
    shard = made / "bballs/val/frames/c.0.0.0.0"
    data = shard.read_bytes()
    try:
        shard.write_bytes(data[:100] + bytes([data[100] ^ 4]) + data[101:])
        status, _, err = run("verify", str(made), cwd=tmp_path)
        assert status == 3 and str(shard) in err
        status, _, err = run("preview", str(made), "bballs/val", cwd=tmp_path)
        assert status == 3 and str(shard) in err
    finally:
        shard.write_bytes(data)


def test_info_lists_the_groups_and_tells_of_those_named(made: Path, tmp_path: Path) -> None:
    status, out, _ = run("info", str(made), cwd=tmp_path)
    assert status == 0 and re.search(r"^bballs/train +30 +\S+ kB +bballs \d+, seed 0$", out, re.MULTILINE)
    assert len(out.splitlines()) == 3 + len(Store(made).groups)
    status, out, _ = run("info", str(made), "bballs/train", cwd=tmp_path)
    assert "bballs/train  30 sequences" in out and "48 row x 48 column" in out and "bballs/val" not in out
    assert "did you mean 'bballs/val'" in run("info", str(made), "bballs/vla", cwd=tmp_path)[2]
    listing = json.loads(run("info", str(made), "--json", cwd=tmp_path)[1])
    assert listing["groups"]["bballs/train"]["settings"]["config"]["balls"] == 3


def test_a_name_that_is_nearly_right_is_suggested(tmp_path: Path) -> None:
    for words, suggestion in (
        ("balls", "did you mean 'bballs'?"),
        ("sc2 --scenario 3S5Z", "did you mean '3s5z'?"),
        ("bballs --ball 3", "did you mean --balls?"),
        ("nothing-like-it", "`s2rm-data --help` lists them"),
    ):
        status, _, err = run(*words.split(), cwd=tmp_path)
        assert status == 2 and suggestion in err, words


def test_exit_statuses_are_told_once(tmp_path: Path) -> None:
    assert "Exit status" in run("--help", cwd=tmp_path)[1]
    for command in ("bballs", "verify", "export"):
        out = run(command, "--help", cwd=tmp_path)[1]
        assert "Example" in out and "Exit status" not in out, command


def test_a_store_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    for command in ("info", "verify", "preview"):
        status, _, err = run(command, "nowhere.zarr", cwd=tmp_path)
        assert status == 2
        assert "there is no store at nowhere.zarr" in err


def test_preview_makes_pictures(made: Path, tmp_path: Path) -> None:
    from PIL import Image

    status, out, _ = run("preview", str(made), cwd=tmp_path)
    assert status == 0
    gif_path, png_path = out.splitlines()
    with Image.open(tmp_path / gif_path) as gif, Image.open(tmp_path / png_path) as png:
        assert gif.n_frames == 12
        assert min(png.size) > 300
    for options in (["-n", "4"], ["-n", "-1"], ["--agent", "1"]):
        assert run("preview", str(made), "bballs/val", *options, cwd=tmp_path)[0] == 2


def test_a_dry_run_counts_and_writes_nothing(tmp_path: Path) -> None:
    status, out, _ = run("bballs", "--dry-run", "--json", cwd=tmp_path)
    assert status == 0
    plan = json.loads(out)
    assert sum(split["sequences"] for split in plan["splits"]) == 27_000
    assert 1.5e8 < plan["bytes_estimated"] < 2.5e8
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_has_seen_enough_is_no_error(made: Path) -> None:
    process = start("info", str(made), cwd=made.parent)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()  # as `| head` does
    assert process.wait(timeout=CLOCK_SECONDS) == 0
    assert process.stderr.read() == ""
    process.stderr.close()


def test_shell_completion_is_offered(tmp_path: Path) -> None:
    environment = {**os.environ, "_S2RM_DATA_COMPLETE": "bash_source"}
    command = [str(Path(sys.executable).parent / "s2rm-data")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert "complete" in done.stdout


@pytest.mark.parametrize(
    "words, last, found",
    [
        ("sc2 --scenario", "3s5z,2s", {"3s5z,2s3z", "3s5z,2s5z"}),
        ("sc2 --scenario", "MMM", {"MMM", "MMM2"}),
        ("sc2 --policy", "k", {"kite"}),
        ("bballs --preset", "s", {"sutskever"}),
        ("sc2 --preset", "", {"paper"}),
        ("view STORE --group", "bballs/t", {"bballs/train"}),
        ("export STORE bballs/val -f", "h", {"hdf5"}),
        ("info STORE", "bballs/t", {"bballs/train"}),
        ("export STORE bballs/train", "", {"bballs/train", "bballs/val"}),
        ("info nowhere.zarr", "", set()),
    ],
)
def test_the_shell_completes_names(words: str, last: str, found: set[str], made: Path) -> None:
    words = words.replace("STORE", str(made))
    completion = ShellComplete(data, {}, "s2rm-data", "_S2RM_DATA_COMPLETE")
    assert {item.value for item in completion.get_completions(words.split(), last)} >= found
    assert all(item.value.startswith(last) for item in completion.get_completions(words.split(), last))


def test_an_overwrite_that_the_disk_refuses_leaves_the_old_split(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made, tmp_path / "data.zarr")
    before = tree(made)
    words = [*SMALL, "--shard-size", "10", "--seed", "1", "--overwrite", "-q"]
    limit = 3000  # bytes of a file

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    status, _, err = run(*words, cwd=tmp_path, preexec_fn=limited, env=environment)
    assert status == 6 and "What was committed before is safe" in err
    store = Store(tmp_path / "data.zarr")
    assert store.groups == Store(made).groups
    there = tree(tmp_path / "data.zarr")
    assert {name: there[name] for name in before if name != "zarr.json"} == {
        name: data for name, data in before.items() if name != "zarr.json"
    }
    assert run(*words, cwd=tmp_path)[0] == 0
    assert run(*words, "-o", "fresh.zarr", cwd=tmp_path)[0] == 0
    assert tree(tmp_path / "data.zarr") == tree(tmp_path / "fresh.zarr")
