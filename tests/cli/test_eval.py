"""`s2rm-eval` as a user meets it."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest
from PIL import Image
from program import run_forked
from small_stores import FRAMES
from tiny_runs import make_run

from s2rm_data.cli.eval import evaluate
from s2rm_data.core.errors import S2RMError
from s2rm_data.generators.bballs.making.ball_source import plan as plan_balls
from s2rm_data.generators.sc2.making.battle_source import plan as plan_battles
from s2rm_data.making.run import generate
from s2rm_data.store import Store


def run(*arguments: str, cwd: Path, module: str = "eval") -> tuple[int, str, str]:
    return run_forked(f"s2rm-{module}", *arguments, cwd=cwd)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """data.zarr with both tasks, and runs/ with two seeds of one model and an oracle on balls, and one on battles."""
    folder = tmp_path_factory.mktemp("eval")
    small = {"steps": FRAMES, "radial": 8, "angular": 16}
    sources = [
        *plan_balls(balls=(1, 3), train=6, val=3, test=3, frames=FRAMES),
        *plan_battles(scenario=["2s3z"], train=3, val=2, **small),
        *plan_battles(scenario=["1s2z"], train=0, val=0, test=2, **small),
    ]
    store = folder / "data.zarr"
    generate(sources, store, shard_size=16)
    for name, model, task, seed in (
        ("s2gru-0", "s2gru", "bballs", 0),
        ("s2gru-1", "s2gru", "bballs", 1),
        ("tto", "tto", "bballs", 0),
        ("rmc", "rmc", "sc2", 0),
    ):
        make_run(folder / "runs" / name, model, task, seed=seed, store=store)
    return folder


@pytest.fixture(scope="module")
def out(folder: Path) -> Path:
    """The store is found through the runs, whose folder needs no --run."""
    status, shown, err = run("runs", "--quick", "--threads", "1", "--out", "all", cwd=folder)
    assert status == 0, err
    assert shown.splitlines()[0] == "all/report.html"
    return folder / "all"


def test_everything_is_there(out: Path) -> None:
    results = json.loads((out / "results.json").read_text())
    assert set(results["runs"]) == {"s2gru-0", "s2gru-1", "tto", "rmc"}
    balls = results["bballs"]
    assert set(balls["one_step"]["test_3"]["runs"]) == {"s2gru-0", "s2gru-1", "tto"}
    copies = {"always_off", "centre_only", "last_seen", "copy_previous"}
    assert set(balls["one_step"]["test_1"]["references"]) == {*copies, "filter"}
    assert set(balls["rollouts"]["test_1"]["runs"]) == {"s2gru-0", "s2gru-1"}  # an oracle cannot be rolled out
    assert balls["one_step"]["test_3"]["references"] == balls["dropped_views"]["test_3"]["0"]["references"]
    assert results["sc2"]["val_groups"] == ["sc2/2s3z/val"]
    assert set(results["sc2"]["unseen"]) == {"1s2z"}
    assert set(results["sc2"]["robustness"]["20"]["references"]) == {"copy_previous", "always_off"}
    assert set(results["enclaves"]) == {"s2gru-0", "s2gru-1"}
    shown = (out / "tables.md").read_text()
    assert shown.count("### ") == len(list((out / "tables").glob("*.csv")))
    figures = {path.stem for path in (out / "figures").glob("*.png")}
    assert figures == {path.stem for path in (out / "figures").glob("*.svg")}
    assert figures >= {
        "bballs_one_step", "bballs_views_f1", "bballs_views_balanced_accuracy", "bballs_rollout_f1",
        "bballs_rollout_test_3", "enclaves_s2gru-0", "sc2_robustness", "sc2_example_2s3z", "sc2_example_1s2z",
    }  # fmt: skip
    with Image.open(out / "rollouts" / "test_3.gif") as gif:
        assert gif.n_frames == 7
    assert (out / "tables" / "sc2_unseen_1s2z.csv").exists()


def test_the_report_stands_alone_and_shows_intervals_and_the_paper(out: Path) -> None:
    text = (out / "report.html").read_text()
    assert re.findall(r"(?:src|href)=\"(?!data:|#)", text) == []
    assert text.count("data:image/png;base64,") == len(list((out / "figures").glob("*.png"))) + 1  # one stands on top
    assert text.count("data:image/gif;base64,") == 2 + 1
    assert "±" in text and "0.7488" in text and "does not beat" in text


def test_the_report_says_what_it_is_and_what_is_in_it(out: Path) -> None:
    text, results = (out / "report.html").read_text(), json.loads((out / "results.json").read_text())
    assert "<code>s2rm-eval runs --quick --threads 1 --out all</code>" in text and "<b>A first look</b>" in text
    assert re.search(r"<dd>20\d\d-\d\d-\d\d \d\d:\d\d by s2rm-data", text)
    store = Store(out.parent / "data.zarr")
    assert set(results["digests"]) == {"bballs/test_1", "bballs/test_3", "sc2/1s2z/test", "sc2/2s3z/val"}
    for path, digest in results["digests"].items():
        assert digest == store[path].content_digest() and f"<code>{digest}</code> {path}" in text
    contents = re.findall(r'<li><a href="#(\w+)">(.*?)</a>', text)
    assert len(contents) > 5 and all(
        re.search(f'<h2 id="{name}">{re.escape(title)}<', text) for name, title in contents
    )
    assert text.index("Truth beside prediction") < text.index("data:image") < text.index("Do the models beat")
    pdfs = [path.read_bytes() for path in (out / "figures").glob("*.pdf")]
    assert len(pdfs) == len(list((out / "figures").glob("*.png"))) and not any(b"CreationDate" in pdf for pdf in pdfs)


def test_the_same_evaluation_gives_the_same_results(folder: Path, out: Path) -> None:
    options = ["--quick", "--threads", "1", "--store", "data.zarr", "--json"]
    status, shown, _ = run("--run", "runs/tto", *options, "--out", "again", cwd=folder)
    assert status == 0
    before = json.loads((out / "results.json").read_text())
    again = json.loads(shown)
    assert again["bballs"]["one_step"]["test_3"]["runs"]["tto"] == before["bballs"]["one_step"]["test_3"]["runs"]["tto"]
    assert again == json.loads((folder / "again" / "results.json").read_text())


def test_results_are_not_overwritten_silently(folder: Path, out: Path) -> None:
    before = (out / "results.json").read_bytes()
    status, _, err = run("--run", "runs/tto", "--quick", "--out", "all", cwd=folder)
    assert status == 5 and "--overwrite" in err
    assert (out / "results.json").read_bytes() == before


def test_an_evaluation_that_replaces_another_leaves_nothing_of_it(folder: Path, out: Path, tmp_path: Path) -> None:
    shutil.copytree(out, tmp_path / "all")
    words = ["--run", str(folder / "runs/rmc"), "--quick", "--threads", "1", "--agent", "4", "--overwrite"]
    status, _, err = run(*words, "--out", "all", cwd=tmp_path)
    assert status == 0, err
    assert not [path for path in (tmp_path / "all").rglob("*") if "bballs" in path.name]
    # 1s2z has three agents, so that only 2s3z is drawn
    assert {path.stem for path in (tmp_path / "all" / "figures").glob("sc2_example_*.png")} == {"sc2_example_2s3z"}


def test_bad_input_gets_one_message_each(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process, where a second import of torch costs nothing; how errors end a program: the next test."""
    monkeypatch.chdir(tmp_path)
    runs, store = str(folder / "runs" / "tto"), str(folder / "data.zarr")
    bare = make_run(tmp_path / "bare", "lstm", "bballs", store=folder / "data.zarr")
    (bare / "best.safetensors").unlink()
    generate(plan_balls(balls=(3,), train=2, val=2, test=0, frames=FRAMES), tmp_path / "train_only.zarr")
    generate(plan_battles(scenario=["2s3z"], train=1, val=1, steps=FRAMES), tmp_path / "other.zarr")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "precious").touch()
    (tmp_path / "file").touch()
    forbidden = "/proc/results" if os.geteuid() == 0 else "/results"
    for arguments, status, says in (
        (["--run", str(bare)], 2, "has no weights"),
        (["--run", "nowhere"], 2, "no run folder at nowhere"),
        (["--run", runs, "--store", "other.zarr"], 2, "has no split"),
        (["--run", runs, "--store", "train_only.zarr"], 2, "has no split"),
        (["--run", runs, "--store", "nowhere.zarr"], 2, "there is no store at"),
        (["--run", runs, "--store", store, "--out", forbidden], 6, "cannot write to"),
        (["--run", runs, "--store", store, "--out", "file"], 5, "is a file"),
        (["--run", runs, "--store", store, "--out", "notes"], 5, "holds other files"),
        (["--run", runs, "--store", store, "--sequences", "0"], 2, "sequences is 0"),
        (["--run", runs, "--store", store, "--device", "gpu"], 2, "no device 'gpu'"),
        (["--run", runs, "--store", store, "--device", "meta"], 2, "device 'meta' is not supported"),
        (["--run", str(folder / "runs" / "rmc"), "--agent", "7"], 2, "there is no agent 7 in sc2/2s3z/val; it has"),
        (["--run", runs, "--store", store, "--agent", "1"], 2, "the evaluation of bballs has no option 'agent'"),
    ):
        with pytest.raises(S2RMError, match=re.escape(says)) as caught:
            evaluate.main([*arguments, "--threads", "1", "-q"], standalone_mode=False)
        assert caught.value.exit_status == status, arguments
        assert len(str(caught.value).splitlines()) == 1
    assert (tmp_path / "notes" / "precious").exists()


def test_a_damaged_store_is_named(folder: Path, tmp_path: Path) -> None:
    shard = folder / "data.zarr/bballs/test_3/frames/c.0.0.0.0"
    data = shard.read_bytes()
    try:
        shard.write_bytes(data[:50] + bytes([data[50] ^ 1]) + data[51:])
        status, _, err = run("--run", str(folder / "runs" / "tto"), "--out", "out", "-q", cwd=tmp_path)
    finally:
        shard.write_bytes(data)
    assert status == 3 and str(shard) in err
    assert [line for line in err.splitlines() if line.startswith("s2rm-eval:")] == err.splitlines()


def test_a_run_of_s2rm_train_is_evaluated_where_it_lies(folder: Path) -> None:
    options = ["--store", "data.zarr", "--task", "bballs", "--model", "lstm", "--preset", "smoke", "--steps", "2"]
    status, _, err = run(*options, "--out", "trained", "-q", cwd=folder, module="train")
    assert status == 0, err
    status, shown, err = run("--run", "trained", "--quick", "--sequences", "2", cwd=folder)
    assert status == 0, err
    assert shown.splitlines()[0] == "trained/evaluation/report.html"
