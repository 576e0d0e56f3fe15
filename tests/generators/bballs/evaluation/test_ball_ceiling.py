from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_stores import make_small_store
from tiny_runs import make_run

from s2rm_data.core.progress import Progress
from s2rm_data.evaluation.blocks import pieces
from s2rm_data.evaluation.runs import load_runs
from s2rm_data.generators.bballs.evaluation import ball_ceiling
from s2rm_data.generators.bballs.evaluation.ball_ceiling import (
    NOISY,
    FilterConfig,
    filter_counts,
    filtered,
    noisy_roll_outs,
)
from s2rm_data.generators.bballs.evaluation.ball_probe import can_be_probed, probe
from s2rm_data.store import Store

CPU, QUICK = torch.device("cpu"), FilterConfig(particles=20, moves=4)


def test_answers_are_the_same_in_any_number_of_threads_and_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = Store(make_small_store(tmp_path / "data.zarr"))["bballs/test_3"]
    folder = tmp_path / "data.zarr.ceilings"

    def ask(threads: int, fraction: float = 0.0) -> list[Any]:
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        try:
            return filtered(group, 3, fraction, (2, 2), Progress(), QUICK)
        finally:
            torch.set_num_threads(before)

    first = ask(2)
    files = sorted(folder.iterdir())
    assert len(files) == 3
    for path in files[1:]:
        path.unlink()
    files[0].write_bytes(files[0].read_bytes()[:100])  # damaged
    again = ask(1)
    for one, other in zip(first, again, strict=True):
        assert (one.made == other.made).all()
        assert (one.rolled == other.rolled).all()
    monkeypatch.setattr(ball_ceiling, "filter_views", None)  # nobody is asked any more
    kept = ask(1)
    assert all((one.made == other.made).all() for one, other in zip(first, kept, strict=True))
    with pytest.raises(TypeError):
        ask(1, 0.5)  # other views, which are not known yet
    assert 0 < filter_counts(group, first).scores()["f1"] <= 1


def test_the_simulator_without_noise_rolls_out_the_truth(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    group = store["bballs/test_3"]
    monkeypatch.setattr(ball_ceiling, "NOISES", ((0.0, 0.0), (0.0, 0.5), (1.0, 0.0), (3.0, 3.0)))
    (piece,) = pieces(group, limit=2, device=CPU)
    frames = group["frames"].shape[1]
    made = noisy_roll_outs(group, piece, 2, frames - 2)
    true = group["frames"][:2][:, 2:].astype(bool)
    wrong = [(made[name].numpy() ^ true).mean() for name in NOISY]
    assert wrong[0] < 1e-3  # stored states are rounded to float32
    assert all(more > wrong[0] + 0.005 for more in wrong[1:])


def test_a_probe_reads_what_is_there_and_not_what_is_not(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(0)
    true, noise = random.normal(size=(4000, 4)), random.normal(size=(4000, 6))
    state = np.concatenate([true[:, :2] @ random.normal(size=(2, 3)), noise], 1)  # places, and nothing of velocities
    z = np.concatenate([state, np.ones((4000, 1)), true], 1)
    fit, held_out = z[:2000].T @ z[:2000], z[2000:].T @ z[2000:]
    from s2rm_data.generators.bballs.evaluation.ball_probe import _errors, _solve

    weights = _solve(fit, 1e-6)
    errors = _errors(held_out, weights)
    direct = ((z[2000:, -4:] - z[2000:, :-4] @ weights) ** 2).mean(0)
    assert errors == pytest.approx(direct, abs=1e-9)
    assert (errors[:2] < 1e-6).all()
    assert errors[2:] == pytest.approx([1, 1], abs=0.1)
    (run,) = load_runs([make_run(tmp_path / "run", "s2gru", "bballs")])
    assert can_be_probed(run)
    monkeypatch.setattr("s2rm_data.generators.bballs.evaluation.ball_probe.SKIPPED_STEPS", 1)
    found = probe(run, store["bballs/train"], 8, CPU)  # of several balls the first: only that it can be called
    assert set(found) == {"place", "velocity"} and min(found.values()) > 0
