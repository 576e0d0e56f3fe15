"""The positional embedding, and the start of the modules' embeddings."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from s2rm_data.models import build, config_for
from s2rm_data.models.embedding import PositionalEmbedding, arena_positions, covering_embeddings

TASKS = ("bballs", "sc2")


@pytest.mark.parametrize("task", TASKS)
def test_the_embedding_follows_its_formula(task):
    config = config_for("s2gru", task)
    x = torch.tensor([7.0, 30.0])
    bands = config.embedding_size // 4
    sines, cosines = [], []
    for coordinate, i in itertools.product(x.tolist(), range(1, bands + 1)):
        angle = coordinate * config.position_scale * config.position_base ** (-i / bands)
        sines.append(math.sin(angle))
        cosines.append(math.cos(angle))
    s = torch.tensor(sines + cosines)
    torch.testing.assert_close(PositionalEmbedding(config)(x), s / s.norm(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("task", TASKS)
def test_the_embedding_is_on_the_unit_sphere_and_one_to_one(task):
    config = config_for("s2gru", task)
    s = PositionalEmbedding(config)(arena_positions(config.arena_size))
    torch.testing.assert_close(s.norm(dim=-1), torch.ones(len(s)))
    cosine = s @ s.T
    cosine.fill_diagonal_(-1)
    assert cosine.max() < 0.9999  # no two positions share an embedding


@pytest.mark.parametrize("task", TASKS)
def test_every_position_of_the_arena_starts_inside_an_enclave(task):
    model = build("s2gru", task=task, width=8)
    enclaves = model.enclaves(arena_positions(model.config.arena_size))
    assert enclaves.shape[0] == 10
    assert (enclaves > 0).any(0).all()
    assert (enclaves == 0).any(0).all()  # and none inside all of them: the kernel is local


def test_random_embeddings_would_leave_most_of_the_arena_uncovered():
    model = build("s2gru", task="bballs", width=8)
    with torch.no_grad():
        model.module_embedding.normal_()
    covered = (model.enclaves(arena_positions((48.0, 48.0))) > 0).any(0).float().mean()
    assert covered < 0.5


def test_enclaves_take_any_grid_of_positions():
    model = build("s2gru", task="bballs", width=8)
    assert model.enclaves(torch.rand(5, 7, 2)).shape == (10, 5, 7)


def test_the_start_embeddings_are_distinct_and_made_without_the_default_device():
    config = config_for("s2gru", "sc2")
    with torch.device("meta"):
        chosen = covering_embeddings(config, 10)
    assert chosen.device.type == "cpu"
    assert len({tuple(embedding) for embedding in chosen.tolist()}) == 10
