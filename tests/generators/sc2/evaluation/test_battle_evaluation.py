from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from contexts import context_of
from sklearn.metrics import f1_score
from tiny_runs import make_run

from s2rm_data.core.errors import UsageError
from s2rm_data.core.registry import WORLDS
from s2rm_data.evaluation.blocks import pieces
from s2rm_data.evaluation.runs import Run, load_runs
from s2rm_data.evaluation.tables import Comparison
from s2rm_data.evaluation.world_evaluation import evaluation_of
from s2rm_data.generators.sc2.evaluation.example_images import Choice, draw_polar_example, polar_example, why_not
from s2rm_data.generators.sc2.learning.battle_scores import conditional_entropy, reference_images
from s2rm_data.generators.sc2.making.battle_source import plan
from s2rm_data.making.run import generate
from s2rm_data.store import Store

CPU = torch.device("cpu")
GROUPS = ["sc2/1s2z/train", "sc2/2s3z/train"]


def score(
    store: Store, paths: list[str], runs: list[Run], fractions: tuple[float, ...], limit: int | None = None
) -> dict[float, Comparison]:
    evaluation = evaluation_of(WORLDS.load("sc2"))
    return evaluation.one_step(context_of(store, runs), [store[path] for path in paths], fractions, limit)


def test_a_copy_is_the_agent_s_latest_image_that_was_supplied(store: Store) -> None:
    group = store["sc2/2s3z/train"]
    piece = next(pieces(group, limit=4, device=CPU))
    batch = piece.dropped(0.6)
    friendly, unit_type, hecs = reference_images(batch)["copy_previous"]
    categories, stored = group["categories"][:4], group["hecs"][:4]
    for episode, agent in ((0, 0), (3, 4)):
        latest = None
        for t in range(batch.view_mask.shape[1]):
            latest = t if batch.view_mask[episode, t, agent] else latest
            at = (episode, t, agent)
            if latest is None:
                assert not friendly[at].any() and not unit_type[at].any() and not hecs[at].any()
            else:
                np.testing.assert_array_equal(friendly[at], categories[episode, latest, agent, ..., 0])
                np.testing.assert_array_equal(unit_type[at], categories[episode, latest, agent, ..., 1])
                np.testing.assert_array_equal(hecs[at], np.moveaxis(stored[episode, latest, agent], -1, 0))


def test_reference_scores_are_those_of_scikit_learn_over_all_groups(store: Store) -> None:
    found = score(store, GROUPS, [], (0.0,))[0.0]
    columns: dict[str, list[np.ndarray]] = {name: [] for name in ("f", "tf", "u", "tu", "e")}
    for path in GROUPS:
        for piece in pieces(store[path], limit=None, device=CPU, batch_size=2):
            batch, mask = piece.batch, piece.batch.query_mask
            friendly, unit_type, hecs = (part[mask] for part in reference_images(batch)["copy_previous"])
            true = [part[mask] for part in batch.targets]
            values = (friendly, true[0], unit_type, true[1], (hecs - true[2]).square())
            for name, value in zip(columns, values, strict=True):
                columns[name].append(value.numpy().ravel())
    f, tf, u, tu, error = (np.concatenate(parts) for parts in columns.values())
    scores = found.references["copy_previous"]
    assert scores["fm_f1"] == pytest.approx(f1_score(tf, f))
    present = np.unique(tu)
    assert scores["ut_f1"] == pytest.approx(f1_score(tu, u, labels=present, average="macro"))
    assert scores["ut_f1_units"] == pytest.approx(f1_score(tu, u, labels=present[present > 0], average="macro"))
    assert scores["nmse"] == pytest.approx(-error.mean())
    entropy = _entropy(tf, f) + _entropy(tu, u)
    assert scores["ll"] == pytest.approx(-(entropy + error.mean()), rel=1e-5)
    assert found.references["always_off"]["fm_f1"] == 0.0


def _entropy(true: np.ndarray, given: np.ndarray) -> float:
    """Mean -log of the frequency of the true value among cells with the same given value."""
    loss = 0.0
    for value in np.unique(given):
        among = true[given == value]
        _, inverse, counts = np.unique(among, return_inverse=True, return_counts=True)
        loss -= np.log(counts[inverse] / len(among)).sum()
    return loss / len(true)


def test_conditional_entropy_of_a_perfect_and_of_a_useless_prediction() -> None:
    assert conditional_entropy(torch.tensor([[5, 0], [0, 7]])) == 0.0
    assert conditional_entropy(torch.tensor([[5, 5], [5, 5]])) == pytest.approx(math.log(2))


def test_runs_are_scored_at_every_share_and_fewer_agents_change_the_scores(store: Store, tmp_path: Path) -> None:
    runs = load_runs([make_run(tmp_path / name, name, "sc2") for name in ("lstm", "tto")])
    found = score(store, ["sc2/2s3z/val"], runs, (0.0, 0.8), limit=2)
    for name in ("lstm", "tto"):
        whole, few = (found[fraction].runs[name] for fraction in (0.0, 0.8))
        assert whole["ll"] != few["ll"]
        assert whole["nmse"] < 0
        piece = next(pieces(store["sc2/2s3z/val"], limit=2, device=CPU))
        run = next(run for run in runs if run.name == name)
        with torch.inference_mode():
            loss = run.model.loss(run.model(piece.batch), piece.batch)
        assert whole["ll"] == pytest.approx(-float(loss), rel=1e-4)  # LL is the negative loss (table sc2_loss)


def test_a_run_has_the_same_scores_on_a_store_of_another_view_size(store: Store, tmp_path: Path) -> None:
    large = tmp_path / "large.zarr"
    options = {"steps": 12, "radial": 16, "angular": 48}  # the store's are 8 x 16, as the run's
    generate(plan(scenario=["2s3z"], train=6, val=3, **options), large)
    runs = load_runs([make_run(tmp_path / "lstm", "lstm", "sc2")])
    found = [score(s, ["sc2/2s3z/val"], runs, (0.0, 0.5))[0.5] for s in (store, Store(large))]
    assert found[0].to_json() == found[1].to_json()
    context = dataclasses.replace(context_of(Store(large), runs), options={"episode": 1, "agent": 2, "step": 3})
    evaluation = evaluation_of(WORLDS.load("sc2"))
    assert evaluation.plan(context)["val"][0].path == "sc2/2s3z/val"
    example = polar_example(Store(large)["sc2/2s3z/val"], Choice(episode=1, agent=2, step=3), context)
    np.testing.assert_array_equal(example.truth.unit_type, store["sc2/2s3z/val"]["categories"][1][3, 2, ..., 1])


def test_runs_that_see_images_of_unlike_sizes_are_not_put_into_one_table(store: Store, tmp_path: Path) -> None:
    runs = load_runs([make_run(tmp_path / name, name, "sc2") for name in ("lstm", "rmc")])
    runs[1].model.config = dataclasses.replace(runs[1].model.config, image_size=(16, 48))
    with pytest.raises(UsageError, match=r"\(8, 16\).*\(16, 48\).*evaluate them apart"):
        evaluation_of(WORLDS.load("sc2")).plan(context_of(store, runs))


def test_the_example_is_the_true_image_and_bad_choices_are_refused(store: Store, tmp_path: Path) -> None:
    group = store["sc2/2s3z/val"]
    runs = load_runs([make_run(tmp_path / "lstm", "lstm", "sc2")])
    choice = Choice(episode=1, agent=2, step=3)
    assert why_not(group, choice, context_of(store)) == ""
    example = polar_example(group, choice, context_of(store, runs))
    np.testing.assert_array_equal(example.truth.unit_type, group["categories"][1][3, 2, ..., 1])
    np.testing.assert_array_equal(example.copy.unit_type, group["categories"][1][2, 2, ..., 1])
    np.testing.assert_allclose(example.truth.hecs, np.moveaxis(group["hecs"][1][3, 2], -1, 0))
    assert example.images["lstm"].friendly.shape == (8, 16)
    for chosen, reason in (
        ({"episode": 9}, "there is no episode 9"),
        ({"agent": 5}, "there is no agent 5"),
        ({"step": 99}, "no image at step 99"),
        ({"step": 0}, "no image at step 0"),
    ):
        assert reason in why_not(group, dataclasses.replace(choice, **chosen), context_of(store))


def test_health_is_drawn_where_the_image_itself_has_a_unit(store: Store, tmp_path: Path) -> None:
    runs = load_runs([make_run(tmp_path / "run", "s2gru", "sc2")])
    example = polar_example(store["sc2/2s3z/val"], Choice(), context_of(store, runs))
    axes = draw_polar_example(example, {runs[0].name: "S2GRU"}).axes
    channels = (len(axes) - 2) // 3 - 2  # of three rows, beside markers and types; two colour bars
    for row, image in enumerate((example.truth, example.copy, example.images[runs[0].name])):
        shown = axes[row * (2 + channels) + 2].collections[0].get_array()
        assert (np.ma.getmaskarray(shown)[1:] == (image.unit_type[1:] == 0)).all(), row
