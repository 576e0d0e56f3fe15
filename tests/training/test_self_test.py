"""The test of a machine, with the two checks left out that take long: generated code and two processes have others."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from s2rm_data.cli.train import train
from s2rm_data.core.errors import S2RMError
from s2rm_data.store import Store
from s2rm_data.training import self_test


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_compile", "_two_processes"):
        monkeypatch.setattr(self_test, name, lambda bench: (self_test.SKIPPED, "takes long"))


def typed(*words: Any) -> Result:
    return CliRunner().invoke(train, ["--self-test", "--device", "cpu", *map(str, words)], standalone_mode=False)


def test_it_checks_what_the_machine_can_do_and_says_what_it_left_out(store: Store) -> None:
    result = typed("--store", store.path, "--task", "sc2", "--model", "lstm")
    assert result.exception is None, result.exception
    said = {line[8:26].strip(): line for line in result.stdout.splitlines()}
    assert {name: line[:8].strip() for name, line in said.items() if not line.startswith("verdict")} == {
        "device": "ok",
        "training": "ok",
        "compile": "skipped",
        "CUDA graphs": "skipped",
        "kernel precision": "ok",
        "mixed precision": "ok",
        "resume": "ok",
        "two processes": "skipped",
    }
    assert "the same log, number for number" in said["resume"]
    assert result.stdout.splitlines()[-1] == (
        "verdict: 5 of 8 checks hold, none failed; not checked here: compile, CUDA graphs, two processes"
    )


def test_it_makes_its_own_data_and_a_check_that_fails_is_the_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(bench: self_test.Bench) -> Any:
        raise RuntimeError("no kernel image\nand more")

    monkeypatch.setattr(self_test, "_compile", broken)
    monkeypatch.setattr(self_test, "KERNEL_ERROR", 0.0)
    for name in ("_resume", "_mixed"):
        monkeypatch.setattr(self_test, name, lambda bench: (self_test.OK, ""))
    result = typed("--json")
    assert isinstance(result.exception, S2RMError)
    assert "self-test: compile, kernel precision failed" in str(result.exception)
    found = {check["name"]: check for check in json.loads(result.stdout)}
    assert found["compile"]["detail"] == "RuntimeError: no kernel image"
    assert found["two processes"]["verdict"] == "skipped"
