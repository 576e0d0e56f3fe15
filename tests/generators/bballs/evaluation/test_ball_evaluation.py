from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from contexts import context_of
from sklearn.metrics import balanced_accuracy_score, f1_score
from tiny_runs import make_run

from s2rm_data.core.progress import Progress
from s2rm_data.core.registry import WORLDS
from s2rm_data.evaluation.blocks import pieces
from s2rm_data.evaluation.candidates import OwnModel
from s2rm_data.evaluation.runs import Run, load_runs
from s2rm_data.evaluation.tables import Comparison
from s2rm_data.evaluation.world_evaluation import evaluation_of
from s2rm_data.generators.bballs.learning.ball_crops import BallPrediction
from s2rm_data.store import Store

CPU = torch.device("cpu")
EVALUATION = evaluation_of(WORLDS.load("bballs"))
REFERENCES = EVALUATION.learning.references


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return load_runs([make_run(Path(tmp_path_factory.mktemp("balls")) / "s2gru", "s2gru", "bballs")])[0]


def score(
    store: Store,
    runs: list[Run],
    fractions: tuple[float, ...] = (0.0,),
    limit: int = 13,
    progress: Progress | None = None,
) -> dict[float, Comparison]:
    return EVALUATION.one_step(context_of(store, runs, progress), [store["bballs/train"]], fractions, limit)


def fixed_ball(store: Store) -> np.ndarray:
    return store["bballs/train"]["frames"][:].all((0, 1))  # on in every frame


def crop(picture: np.ndarray, x: int, y: int) -> np.ndarray:
    return np.pad(picture, 5)[y : y + 11, x : x + 11]


def test_scores_are_those_of_scikit_learn(store: Store, run: Run) -> None:
    found = score(store, [run], (0.0, 0.8))
    fixed = fixed_ball(store)
    for fraction in (0.0, 0.8):
        predicted, true, moving = [], [], []
        for piece in pieces(store["bballs/train"], limit=13, device=CPU, batch_size=5):
            with torch.inference_mode():
                predicted.append(run.model(piece.dropped(fraction)).probability().flatten() > 0.5)
            true.append(piece.batch.targets.crop.flatten())
            position = piece.batch.query_position.reshape(-1, 2).long().tolist()
            moving += [~crop(fixed, x, y) for x, y in position]
        p, t, m = torch.cat(predicted).numpy(), torch.cat(true).numpy(), np.concatenate(moving).ravel()
        scores = found[fraction].runs[run.name]
        assert scores["f1"] == pytest.approx(f1_score(t, p))
        assert scores["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(t, p))
        assert scores["f1_moving"] == pytest.approx(f1_score(t[m], p[m]))
        assert scores["balanced_accuracy_moving"] == pytest.approx(balanced_accuracy_score(t[m], p[m]))
    assert found[0.0].runs != found[0.8].runs


def test_references_are_what_plain_code_draws(store: Store) -> None:
    drawn: dict[str, list[np.ndarray]] = {name: [] for name in REFERENCES}
    true, fixed = [], fixed_ball(store)
    for piece in pieces(store["bballs/train"], limit=13, device=CPU, batch_size=1):
        frames = store["bballs/train"]["frames"][piece.first]
        canvas = np.zeros_like(frames[0])
        batch = piece.dropped(0.5)
        for t in range(len(frames) - 1):
            for (x, y), there in zip(batch.view_position[0, t].long().tolist(), batch.view_mask[0, t], strict=True):
                if there:
                    part = np.s_[max(0, y - 5) : y + 6, max(0, x - 5) : x + 6]
                    canvas[part] = frames[t][part]
            pictures = {
                "always_off": 0 * canvas,
                "centre_only": fixed,
                "last_seen": canvas,
                "copy_previous": frames[t],
            }
            for x, y in batch.query_position[0, t].long().tolist():
                true.append(crop(frames[t + 1], x, y))
                for name, picture in pictures.items():
                    drawn[name].append(crop(picture, x, y))
    found = score(store, [], (0.5,))[0.5].references
    for name in REFERENCES:
        expected = f1_score(np.ravel(true), np.ravel(drawn[name]).astype(int), zero_division=0.0)
        assert found[name]["f1"] == pytest.approx(expected), name


def test_a_perfect_predictor_scores_one_and_the_centre_alone_scores_nothing_that_moves(store: Store) -> None:
    (piece,) = pieces(store["bballs/train"], limit=4, device=CPU)
    perfect = OwnModel(
        name="perfect", world="bballs", predict=lambda batch: BallPrediction(20.0 * piece.batch.targets.crop - 10)
    )
    found = score(store, [perfect.as_run(CPU)], limit=4)[0.0]
    assert set(found.runs["perfect"].values()) == {1.0}
    assert found.references["centre_only"]["f1"] > 0.2
    assert found.references["centre_only"]["f1_moving"] == 0.0


def test_progress_counts_every_prediction(store: Store, run: Run) -> None:
    class Counted(Progress):
        total = 0

        def advance(self, amount: int) -> None:
            self.total += amount

    progress = Counted()
    score(store, [run], (0.0, 0.5), progress=progress)
    assert progress.total == 26
