"""`s2rm-data view`: serving until interrupted, writing one file, and what it refuses."""

from __future__ import annotations

import re
import signal
import socket
import urllib.request
from pathlib import Path

import program
import pytest
from click.testing import CliRunner
from patience import finish

from s2rm_data.cli.data import data
from s2rm_data.cli.view import _first_shown
from s2rm_data.core.errors import ConflictError, UsageError
from s2rm_data.display import progress
from s2rm_data.store import Store


def view(*arguments: str) -> str:
    return CliRunner().invoke(data, ["view", *arguments], catch_exceptions=False).output


def test_it_serves_until_interrupted(store: Store, tmp_path: Path) -> None:
    process = program.start("view", str(store.path), "--no-browser", cwd=tmp_path)
    assert process.stderr is not None
    said = process.stderr.readline()
    address = re.search(r"http://127\.0\.0\.1:\d+/", said)
    assert address, said
    with urllib.request.urlopen(address[0]) as answer:
        assert b"s2rm-data view" in answer.read()
    process.send_signal(signal.SIGINT)
    _, err = finish(process)
    assert process.returncode == 130 and "Traceback" not in err


def test_the_page_opens_with_what_is_asked_for(store: Store) -> None:
    assert _first_shown(store, (), None) == ""
    assert _first_shown(store, ("bballs/val",), "4") == "#group=bballs%2Fval&number=4"
    for groups, numbers in ((("bballs/val", "bballs/train"), None), ((), "0-2"), (("bballs/val",), "6")):
        with pytest.raises(UsageError, match=r"one sequence|out of range"):
            _first_shown(store, groups, numbers)


def test_a_store_is_shown_without_torch(store: Store, tmp_path: Path) -> None:
    code = (
        "import sys; from click.testing import CliRunner; from s2rm_data.cli.data import data\n"
        f"done = CliRunner().invoke(data, ['view', {str(store.path)!r}, '--export', 'page.html'])\n"
        "assert done.exit_code == 0, done.output\n"
        "sys.exit('torch' in sys.modules)"
    )
    import subprocess
    import sys

    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=False).returncode == 0
    assert (tmp_path / "page.html").stat().st_size > 20_000


def test_progress_is_told_where_it_takes_long(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    said = view(str(store.path), "--export", str(tmp_path / "page.html"), "--group", "bballs/val")
    assert "3 of 3 answers, 100%" in said


def test_one_group_of_every_world_is_exported(store: Store, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert str(page) in view(str(store.path), "--export", str(page), "--numbers", "0")
    text = page.read_text()
    assert "bballs/train" in text and "sc2/1s2z/train" in text and "bballs/val" not in text
    view(str(store.path), "--export", str(page), "--group", "bballs/val", "--numbers", "1,3", "--overwrite")
    assert "sc2/1s2z/train" not in page.read_text()


def test_what_cannot_be_is_refused(store: Store, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("mine")
    with pytest.raises(ConflictError, match="is there already"):
        view(str(store.path), "--export", str(page))
    assert page.read_text() == "mine"
    with pytest.raises(UsageError, match="does not exist; create it first"):
        view(str(store.path), "--export", str(tmp_path / "no" / "page.html"))
    with pytest.raises(UsageError, match="has no group 'bballs/vall'"):
        view(str(store.path), "--export", str(tmp_path / "new.html"), "--group", "bballs/vall")
    with pytest.raises(UsageError, match="--numbers is 'x'"):
        view(str(store.path), "--export", str(tmp_path / "new.html"), "--numbers", "x")
    with pytest.raises(UsageError, match="there is no run folder"):
        view(str(store.path), "--run", str(tmp_path / "nowhere"))


def test_a_port_in_use_is_named(store: Store) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=f"port {port} of 127.0.0.1 cannot be used"):
            view(str(store.path), "--no-browser", "--port", str(port))
