from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from tiny_runs import SMALL, tiny_model

from s2rm_data.evaluation import blocks as streaming
from s2rm_data.evaluation.blocks import Encoded, Piece, pieces
from s2rm_data.models import Batch
from s2rm_data.store import Store

CPU = torch.device("cpu")
GROUPS = ["bballs/train", "sc2/2s3z/train"]


def collected(store: Store, path: str, batch_size: int) -> list[Piece]:
    return list(pieces(store[path], limit=None, device=CPU, batch_size=batch_size))


def rows(batch: Batch) -> list[torch.Tensor]:
    """Positions and masks of every sequence; the steps that battles are trimmed by hold nothing."""
    position = torch.where(batch.query_mask[..., None], batch.query_position, 0)
    return [torch.nn.functional.pad(p, (0, 0, 0, 0, 0, 20 - p.shape[0])) for p in position]


@pytest.mark.parametrize("path", GROUPS)
def test_what_is_looked_at_depends_on_neither_batches_nor_blocks(
    store: Store, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = [row for piece in collected(store, path, 6) for row in rows(piece.batch)]
    monkeypatch.setattr(streaming, "BLOCK", 4)
    parts = [row for piece in collected(store, path, 1) for row in rows(piece.batch)]
    assert len(whole) == len(parts) == len(store[path])
    for one, other in zip(whole, parts, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


def test_no_more_than_a_block_is_in_memory(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "BLOCK", 4)
    assert {len(piece.source) for piece in collected(store, "bballs/train", 2)} == {4}
    assert [piece.first for piece in pieces(store["bballs/train"], limit=7, device=CPU, batch_size=2)] == [0, 2, 4, 6]


@pytest.mark.parametrize("path", GROUPS)
@pytest.mark.parametrize("model", SMALL)
def test_encoding_once_predicts_what_the_model_predicts(store: Store, path: str, model: str) -> None:
    piece = collected(store, path, 3)[0]
    world = tiny_model(model, path.split("/")[0])
    with torch.inference_mode():
        encoded = Encoded(world, piece.batch)
        for fraction in (0.0, 0.5):
            batch = piece.dropped(fraction)
            for ours, theirs in zip(encoded.predict(batch), world(batch), strict=True):
                torch.testing.assert_close(ours, theirs)


def test_an_exact_share_of_the_views_is_dropped_and_more_of_the_same(store: Store) -> None:
    piece = collected(store, "bballs/train", 4)[0]
    masks = [piece.dropped(fraction).view_mask for fraction in (0.0, 0.3, 0.8)]
    assert [int(m.sum(-1).unique()) for m in masks] == [10, 7, 2]
    assert not (masks[2] & ~masks[1]).any()
    np.testing.assert_array_equal(piece.dropped(0.3).next_view_mask[:, :-1], masks[1][:, 1:])


def test_dropped_agents_still_query(store: Store) -> None:
    piece = collected(store, "sc2/2s3z/train", 6)[0]
    dropped = piece.dropped(0.5)
    assert 0.35 < dropped.view_mask.sum() / piece.batch.view_mask.sum() < 0.65
    torch.testing.assert_close(dropped.query_mask, piece.batch.query_mask)
    assert not (dropped.view_mask & ~piece.dropped(0.2).view_mask).any()


def test_steps_after_the_last_target_are_left_out(store: Store) -> None:
    batch = collected(store, "sc2/1s2z/train", 6)[0].batch
    late = dataclasses.replace(
        batch, query_mask=batch.query_mask & (torch.arange(batch.query_mask.shape[1]) < 5)[:, None]
    )
    trimmed = streaming._trimmed(late)
    assert trimmed.query_mask.shape[1] == trimmed.views.shape[1] == trimmed.targets.hecs.shape[1] == 5
