"""Folders, resumption with other settings, several seeds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from small_stores import make_small_store
from toy import tree

from s2rm_data.core.errors import ConflictError, DamagedStoreError, UsageError
from s2rm_data.store import Store
from s2rm_data.training import trainer
from s2rm_data.training.folder import RunFolder
from s2rm_data.training.protocol import RunOptions, Session, first_folder, saved_run, saved_runs
from s2rm_data.training.schedule import DivergedError
from s2rm_data.training.trainer import Trainer


@pytest.fixture(scope="module")
def done(tiny, train, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("done") / "run"
    train(tiny(steps=2), out)
    return out


def test_a_folder_with_a_run_is_not_touched_without_being_told_to(tiny, train, done: Path) -> None:
    before = (done / "summary.json").read_bytes()
    with pytest.raises(ConflictError, match="add --resume to continue it, --overwrite to start it again"):
        train(tiny(steps=3), done)
    assert (done / "summary.json").read_bytes() == before


def test_a_folder_with_other_files_is_not_touched(tiny, train, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(ConflictError, match="holds other files"):
        train(tiny(), tmp_path, overwrite=True)


def test_a_folder_that_is_not_visible_to_every_process_is_refused(
    tiny, train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a second machine, where the first one has made the folder."""
    monkeypatch.setattr(RunFolder, "open", lambda self, **order: None)
    with pytest.raises(UsageError, match="on a file system that all of them share"):
        train(tiny(), tmp_path / "elsewhere")


def test_overwrite_starts_again(tiny, train, tmp_path: Path) -> None:
    train(tiny(steps=2), tmp_path / "run")
    summary = train(tiny(steps=1, seed=5), tmp_path / "run", overwrite=True)
    assert (summary["steps"], summary["seed"]) == (1, 5)


def test_a_run_that_cannot_begin_leaves_the_one_that_it_was_to_replace(
    tiny, train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is found out before the first checkpoint, or after it has begun."""
    out = tmp_path / "run"
    train(tiny(steps=1), out)
    before = tree(out)

    def fails(*arguments: object, **options: object) -> None:
        raise UsageError("found out late")

    for name, runs in (("reference_scores", 1), ("stages_of", 1), ("reference_scores", 2)):
        with monkeypatch.context() as patch:
            patch.setattr(trainer, name, fails)
            with pytest.raises(UsageError, match="found out late"):
                train(tiny(steps=1, seed=5), out, overwrite=True, runs=runs)
        assert tree(out) == before, (name, runs)


def test_a_run_that_replaces_another_is_resumed_and_the_other_goes_when_it_is_complete(
    tiny, train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, after_step = tmp_path / "run", Trainer._after_step
    train(tiny(steps=1), out)
    old = (out / "best.safetensors").read_bytes()

    def interrupted(self: Trainer, prefetcher: object) -> None:
        after_step(self, prefetcher)  # type: ignore[arg-type]
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_after_step", interrupted)
        with pytest.raises(KeyboardInterrupt):
            train(tiny(steps=2, seed=5), out, overwrite=True)
    assert (out / "replaced" / "best.safetensors").read_bytes() == old
    assert (out / "replaced" / "summary.json").exists()
    assert train(tiny(steps=2, seed=5), out, resume=True)["seed"] == 5
    assert not (out / "replaced").exists()
    assert len(list((out / "tensorboard").iterdir())) == 2  # of the new run, which was interrupted once


def test_a_complete_run_that_is_resumed_gives_its_summary(tiny, train, done: Path) -> None:
    assert train(tiny(steps=2), done, resume=True)["steps"] == 2


def test_resuming_with_another_config_is_refused_by_name(tiny, train, done: Path) -> None:
    with pytest.raises(ConflictError, match=r"was started with lr = 0.002, not 0.1"):
        train(tiny(steps=2, lr=0.1), done, resume=True, given=frozenset({"lr"}))
    with pytest.raises(ConflictError, match=r"was started with hidden_size = 32, not 8"):
        train(tiny(steps=2, hidden_size=8), done, resume=True, given=frozenset({"hidden_size"}))


def test_resuming_on_other_data_is_refused(tiny, tmp_path: Path, done: Path) -> None:
    from s2rm_data.generators.bballs.making.ball_source import plan
    from s2rm_data.making.run import generate

    (done / "summary.json").rename(tmp_path / "summary.json")
    generate(plan(balls=(3,), train=8, val=4, test=0, frames=12, seed=7), tmp_path / "other.zarr")
    try:
        with pytest.raises(ConflictError, match="bballs/train is not what the run was started on"):
            Session().train(tiny(steps=2), Store(tmp_path / "other.zarr"), RunOptions(out=done, resume=True))
    finally:
        (tmp_path / "summary.json").rename(done / "summary.json")


def test_a_damaged_checkpoint_is_refused_with_its_path(tiny, train, tmp_path: Path) -> None:
    out = tmp_path / "run"
    train(tiny(steps=2), out)
    (out / "summary.json").unlink()
    state = out / "state.safetensors"
    data = bytearray(state.read_bytes())
    data[-100] ^= 4
    state.write_bytes(data)
    with pytest.raises(DamagedStoreError, match=r"state.safetensors is damaged"):
        train(tiny(steps=2), out, resume=True)


def test_a_checkpoint_of_another_model_is_refused(tiny, train, tmp_path: Path) -> None:
    for name, model in (("a", "s2gru"), ("b", "lstm")):
        train(tiny(model=model, steps=1), tmp_path / name)
    (tmp_path / "a" / "summary.json").unlink()
    (tmp_path / "b" / "state.safetensors").rename(tmp_path / "a" / "state.safetensors")
    with pytest.raises(UsageError, match="holds the weights of another model"):
        train(tiny(steps=1), tmp_path / "a", resume=True)


def test_a_config_that_is_no_config_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("[1, 2]")
    with pytest.raises(UsageError, match="is not the config of a run"):
        saved_run(RunFolder(tmp_path))
    (tmp_path / "config.json").write_text('{"config": {"task": "bballs", "model": "lstm", "preset": "smoke"}}')
    with pytest.raises(UsageError, match=r"is not the config of a run.*store"):
        saved_run(RunFolder(tmp_path))
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(DamagedStoreError, match="is damaged"):
        saved_run(RunFolder(tmp_path))


def test_the_best_of_several_seeds_is_fine_tuned_and_the_command_resumes_anywhere_in_it(
    tiny, train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, out = tiny(steps=2), tmp_path / "run"
    whole = train(config, tmp_path / "whole", runs=2)
    run = Trainer.run
    left: list[int] = []  # runs until the interruption

    def stopping(self: Trainer) -> dict:
        if not left:
            raise KeyboardInterrupt
        left.pop()
        return run(self)

    for _ in ("after the first seed", "before the fine-tuning"):
        monkeypatch.setattr(Trainer, "run", stopping)
        left.append(1)
        with pytest.raises(KeyboardInterrupt):
            train(config, out, runs=2, resume=True)
        monkeypatch.undo()
    assert saved_runs(out) == 2
    assert first_folder(out).path == out / "seeds" / "0"
    summary = train(config, out, runs=2, resume=True)
    assert summary == whole
    protocol = json.loads((out / "protocol.json").read_text())
    assert protocol["validation_loss"].keys() == {"0", "1"}
    best = min(protocol["validation_loss"], key=protocol["validation_loss"].get)
    assert str(protocol["best_seed"]) == best
    assert summary["best_validation_loss"] <= protocol["validation_loss"][best]


def test_overwriting_several_seeds_leaves_nothing_of_the_old_ones_for_a_resumed_run(
    tiny, train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, run = tmp_path / "run", Trainer.run
    train(tiny(steps=2), out, runs=2)
    config = tiny(steps=2, lr=0.03)

    def killed_at_the_second(self: Trainer) -> dict:
        if self.config.seed == 1:
            raise KeyboardInterrupt
        return run(self)

    monkeypatch.setattr(Trainer, "run", killed_at_the_second)
    with pytest.raises(KeyboardInterrupt):
        train(config, out, runs=2, overwrite=True)
    monkeypatch.undo()
    assert train(config, out, runs=2, resume=True) == train(config, tmp_path / "fresh", runs=2)
    rates = {seed: saved_run(RunFolder(out / "seeds" / seed))[0].lr for seed in ("0", "1")}
    assert rates == {"0": 0.03, "1": 0.03}
    train(tiny(steps=1), out, overwrite=True)  # one run, in place of several
    assert not (out / "protocol.json").exists()
    assert first_folder(out).path == out


def test_a_command_of_several_seeds_is_not_continued_as_another_one(tiny, train, tmp_path: Path) -> None:
    out = tmp_path / "run"
    train(tiny(steps=1), out, runs=2)
    with pytest.raises(ConflictError, match="was started with --runs 2, not 3"):
        train(tiny(steps=1), out, runs=3, resume=True)
    with pytest.raises(ConflictError, match="already holds runs"):
        train(tiny(steps=1), out, runs=2)
    with pytest.raises(ConflictError, match=r"was started with \w*lr = "):
        train(tiny(steps=1, lr=0.5), out, runs=2, resume=True)
    train(tiny(steps=1), tmp_path / "one")
    with pytest.raises(ConflictError, match="holds a single run"):
        train(tiny(steps=1), tmp_path / "one", runs=2, resume=True)


def test_a_seed_that_diverges_is_replaced_by_the_next(
    tiny, train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Trainer.run

    def unlucky(self: Trainer) -> dict:
        if self.config.seed == 0:
            raise DivergedError("the loss is nan at step 1")
        return run(self)

    monkeypatch.setattr(Trainer, "run", unlucky)
    train(tiny(steps=1), tmp_path / "run", runs=2)
    protocol = json.loads((tmp_path / "run" / "protocol.json").read_text())
    assert protocol["validation_loss"].keys() == {"1", "2"}
    assert protocol["failed"] == {"0": "the loss is nan at step 1"}


def test_a_store_without_validation_data_is_refused(tiny, tmp_path: Path) -> None:
    from s2rm_data.generators.bballs.making.ball_source import plan
    from s2rm_data.making.run import generate

    generate(plan(balls=(3,), train=8, val=0, test=0, frames=12), tmp_path / "data.zarr")
    with pytest.raises(UsageError, match="no split 'val' of the world bballs"):
        Session().train(tiny(), Store(tmp_path / "data.zarr"), RunOptions(out=tmp_path / "run"))


def test_a_damaged_store_is_named(tiny, tmp_path: Path) -> None:
    path = make_small_store(tmp_path / "data.zarr")
    shard = max((p for p in path.glob("bballs/train/frames/**/*") if p.is_file()), key=lambda p: p.stat().st_size)
    data = bytearray(shard.read_bytes())
    data[40] ^= 1
    shard.write_bytes(data)
    with pytest.raises(DamagedStoreError, match="bballs/train/frames"):
        Session().train(tiny(), Store(path), RunOptions(out=tmp_path / "run"))
