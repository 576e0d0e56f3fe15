"""Whole runs, tiny ones, in this process."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from killed_runs import KillAt, Killed
from PIL import Image
from same_runs import assert_same_run

from s2rm_data.core.errors import InterruptedRunError, S2RMWarning
from s2rm_data.core.registry import MODELS
from s2rm_data.models.weights import load_model
from s2rm_data.training import journal
from s2rm_data.training import trainer as trainer_module
from s2rm_data.training.checkpoint import load_state
from s2rm_data.training.data import RunData
from s2rm_data.training.folder import RunFolder, read_log
from s2rm_data.training.listener import Listener, Pace
from s2rm_data.training.schedule import DivergedError
from s2rm_data.training.scores import Validation
from s2rm_data.training.stepper import Stepper
from s2rm_data.training.trainer import Trainer

GOLDEN_LOSSES = json.loads(Path(__file__).with_name("golden_losses.json").read_text())


@pytest.mark.sample(1, each="model")
@pytest.mark.parametrize("task", ["bballs", "sc2"])
@pytest.mark.parametrize("model", MODELS.names())
def test_every_model_trains_on_both_tasks(tiny, train, tmp_path: Path, task: str, model: str) -> None:
    out = tmp_path / "run"
    summary = train(tiny(task, model, steps=2, validate_every=2), out)
    score = "f1" if task == "bballs" else "fm_f1"
    assert 0 <= summary["held_out"]["val"][score] <= 1
    assert summary["held_out"]["val"]["references"]["copy_previous"][score] > 0.3
    assert load_model(out / "best.safetensors").parameter_count() == summary["parameters"]
    written = {p.name for p in out.iterdir()}
    files = ["config", "environment", "summary"]
    assert written >= {f"{n}.json" for n in files} | {"log.jsonl", "timing.jsonl", "curves.png", "tensorboard"}
    assert [p.name for p in (out / "predictions").iterdir()] == ["step-0000002.png"]
    assert not list(out.glob("*.partial"))
    # The first losses, as they were when these were recorded; other processors round a little differently.
    assert losses_of(out) == pytest.approx(GOLDEN_LOSSES[f"{task}/{model}"], rel=1e-4)


@pytest.mark.parametrize(("seconds", "drawn"), [(1e9, [1, 3]), (0.0, [1, 2, 3])])
def test_curves_are_drawn_at_the_first_and_last_validation_and_now_and_then(
    tiny, train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, drawn: list[int]
) -> None:
    found = []

    def draw(records: list[dict[str, Any]], *_: object) -> None:
        found.append(sum(record["kind"] == "validation" for record in records))

    monkeypatch.setattr(journal, "draw_curves", draw)
    monkeypatch.setattr(journal, "REDRAW_SECONDS", seconds)
    train(tiny(steps=3, validate_every=1), tmp_path / "run")
    assert found == drawn


def losses_of(out: Path) -> list[float]:
    return [record["loss"] for record in read_log(out / "log.jsonl") if "loss" in record]


@pytest.mark.usefixtures("drawn")
@pytest.mark.parametrize("task", ["bballs", "sc2"])
def test_the_papers_preset_keeps_its_losses_and_draws_its_curves(tiny, train, tmp_path: Path, task: str) -> None:
    config = tiny(task, preset="paper", steps=2, validate_every=2, modules=4, validation_sequences=2)
    train(config, tmp_path / "run")
    with Image.open(tmp_path / "run" / "curves.png") as curves:
        assert curves.size == (810, 342)
    assert losses_of(tmp_path / "run") == pytest.approx(GOLDEN_LOSSES[f"paper/{task}"], rel=1e-6)


@pytest.fixture(scope="module")
def uninterrupted(tiny, train, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("uninterrupted") / "run"
    train(tiny(steps=9, validate_every=4), out)
    return out


@pytest.mark.parametrize(("checkpoint_seconds", "kills"), [(1e9, (1, 5)), (1e9, (9,)), (1e-9, (4,)), (1e-9, (2, 3, 8))])
def test_a_run_that_was_killed_and_resumed_is_bit_for_bit_the_run_that_was_not(
    tiny, train, uninterrupted: Path, tmp_path: Path, kills: tuple[int, ...], checkpoint_seconds: float
) -> None:
    out = tmp_path / "run"
    config = tiny(steps=9, validate_every=4, checkpoint_seconds=checkpoint_seconds)
    for kill in kills:
        with pytest.raises(Killed):
            train(config, out, KillAt(kill), resume=True)
    train(config, out, resume=True)
    assert_same_run(uninterrupted, out)


def test_a_kill_between_the_best_weights_and_the_checkpoint_changes_nothing(
    tiny, train, uninterrupted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, config = tmp_path / "run", tiny(steps=9, validate_every=4)
    checkpoint = Trainer._checkpoint

    def killed(self: Trainer) -> None:
        if self.progress.step == 8:
            raise Killed
        checkpoint(self)

    monkeypatch.setattr(Trainer, "_checkpoint", killed)
    with pytest.raises(Killed):
        train(config, out)
    monkeypatch.undo()
    train(config, out, resume=True)
    assert_same_run(uninterrupted, out)


def test_the_log_of_another_seed_differs(tiny, train, uninterrupted: Path, tmp_path: Path) -> None:
    train(tiny(steps=9, validate_every=4, seed=1), tmp_path / "run")
    assert (tmp_path / "run" / "log.jsonl").read_bytes() != (uninterrupted / "log.jsonl").read_bytes()


def test_a_run_folder_can_be_moved_and_goes_on(tiny, train, uninterrupted: Path, tmp_path: Path) -> None:
    config = tiny(steps=9, validate_every=4)
    with pytest.raises(Killed):
        train(config, tmp_path / "run", KillAt(6))
    (tmp_path / "run").rename(tmp_path / "moved")
    train(config, tmp_path / "moved", resume=True)
    assert_same_run(uninterrupted, tmp_path / "moved")


def test_the_log_has_every_step_once_and_every_validation(uninterrupted: Path) -> None:
    log = read_log(uninterrupted / "log.jsonl")
    assert [r["step"] for r in log if r["kind"] == "step"] == list(range(9))
    assert [r["step"] for r in log if r["kind"] == "validation"] == [4, 8, 9]
    assert [r["kind"] for r in log].count("references") == 1


def test_best_weights_are_those_of_the_lowest_validation_loss(uninterrupted: Path) -> None:
    log = read_log(uninterrupted / "log.jsonl")
    summary = json.loads((uninterrupted / "summary.json").read_text())
    losses = {r["step"]: r["loss"] for r in log if r["kind"] == "validation"}
    assert summary["best_validation_loss"] == min(losses.values())
    assert losses[summary["best_step"]] == min(losses.values())


def test_being_asked_to_stop_saves_the_step_in_progress(tiny, train, uninterrupted: Path, tmp_path: Path) -> None:
    class Stop(Listener):
        def pace(self, pace: Pace) -> None:
            if pace.step == 3:
                os.kill(os.getpid(), signal.SIGTERM)

    config = tiny(steps=9, validate_every=4, checkpoint_seconds=1e9)
    with pytest.raises(InterruptedRunError, match=r"at step 3 of 9.*s2rm-train --resume --out"):
        train(config, tmp_path / "run", Stop())
    assert load_state(tmp_path / "run" / "state.safetensors")[1]["progress"]["step"] == 3
    train(config, tmp_path / "run", resume=True)
    assert_same_run(uninterrupted, tmp_path / "run")


def test_a_loss_that_is_not_a_number_stops_the_run_and_keeps_the_last_good_checkpoint(
    tiny, train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call: Callable[..., torch.Tensor] = Stepper.__call__

    def poisoned(self: Stepper, batch: Any, lr: float) -> torch.Tensor:
        if len(poisoned_steps) == 6:
            self.parameters[0].data.fill_(float("nan"))
        poisoned_steps.append(1)
        return call(self, batch, lr)

    poisoned_steps: list[int] = []
    monkeypatch.setattr(Stepper, "__call__", poisoned)
    with pytest.raises(DivergedError, match="at step 6; the last good checkpoint is kept"):
        train(tiny(steps=9, validate_every=4), tmp_path / "run")
    tensors, record = load_state(tmp_path / "run" / "state.safetensors")
    assert record["progress"]["step"] == 4
    assert all(torch.isfinite(t.float()).all() for t in tensors.values())


def test_a_validation_loss_that_is_not_a_number_stops_the_run_before_its_weights_are_called_the_best(
    tiny, train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trainer_module, "validate", lambda *_, **__: Validation(loss=float("nan"), scores={}))
    with pytest.raises(DivergedError, match="the validation loss is nan after step 4"):
        train(tiny(steps=9, validate_every=4), tmp_path / "run")
    assert not (tmp_path / "run" / "best.safetensors").exists()


def test_once_all_is_saved_a_signal_ends_the_run_at_once(
    tiny, train, uninterrupted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class EndedError(Exception):
        pass

    def end(number: int, frame: Any) -> None:
        raise EndedError

    config = tiny(steps=9, validate_every=4, checkpoint_seconds=1e9)
    before = signal.signal(signal.SIGTERM, end)
    held_out = RunData.held_out
    monkeypatch.setattr(RunData, "held_out", lambda self: os.kill(os.getpid(), signal.SIGTERM) or held_out(self))
    try:
        with pytest.raises(EndedError):
            train(config, tmp_path / "run")
    finally:
        signal.signal(signal.SIGTERM, before)
        monkeypatch.undo()
    train(config, tmp_path / "run", resume=True)
    assert_same_run(uninterrupted, tmp_path / "run")


def test_training_lowers_the_loss(tiny, train, tmp_path: Path) -> None:
    train(tiny(steps=60, validate_every=30, lr=5e-3, width=4), tmp_path / "run")
    losses = [r["loss"] for r in read_log(tmp_path / "run" / "log.jsonl") if r["kind"] == "step"]
    assert sum(losses[-10:]) < 0.95 * sum(losses[:10])


def test_a_folder_that_is_being_written_to_is_locked(tiny, train, tmp_path: Path) -> None:
    from s2rm_data.core.errors import ConflictError

    folder = RunFolder(tmp_path / "run")
    folder.open(resume=False, overwrite=False)
    with pytest.raises(ConflictError, match="another process is writing"):
        train(tiny(), tmp_path / "run")
    folder.close()


def test_a_log_that_cannot_be_written_does_not_end_the_run(
    tiny, train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tensorboard.summary.writer.record_writer import RecordWriter

    from s2rm_data.training.loggers import tensorboard

    def fails(*arguments: object, **options: object) -> None:
        raise OSError(5, "Input/output error")

    for place, name in ((RecordWriter, "flush"), (tensorboard, "add_timing"), (tensorboard, "make_folder")):
        with (
            monkeypatch.context() as patch,
            pytest.warns(S2RMWarning, match="the log of TensorBoard ends here") as said,
        ):
            patch.setattr(place, name, fails)
            assert train(tiny(steps=2), tmp_path / name)["steps"] == 2
        assert len(said) == 1
