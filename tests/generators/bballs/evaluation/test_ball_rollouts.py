from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_runs import make_run, tiny_model
from torch import Tensor

from s2rm_data.core.progress import Progress
from s2rm_data.evaluation.runs import load_runs
from s2rm_data.generators.bballs.evaluation.ball_rollouts import grid_positions, roll_out, roll_outs, spans, stitch
from s2rm_data.generators.bballs.learning.ball_crops import BallPrediction, cut_pixels
from s2rm_data.store import Store

CPU = torch.device("cpu")


def test_stitched_crops_are_the_centre_of_the_arena() -> None:
    frames = torch.randint(0, 2, (3, 1, 48, 48), dtype=torch.uint8)
    grid, inside = grid_positions(48)
    assert (inside, len(grid)) == (slice(2, 46), 16)
    crops = cut_pixels(frames, grid.expand(3, 1, -1, -1))[:, 0]
    torch.testing.assert_close(stitch(crops), frames[:, 0, 2:46, 2:46])


def test_the_paper_s_spans_are_kept_where_they_fit() -> None:
    assert spans(100) == spans(45) == (20, 25)
    assert spans(12) == (5, 7)
    assert sum(spans(3)) == 3


class Clairvoyant:
    """Knows all frames; keeps what it is shown. Its state is the number of frames it has been shown."""

    def __init__(self, frames: Tensor) -> None:
        self.frames, self.shown = frames, []

    def encode(self, views: Tensor, position: Tensor, mask: Tensor) -> list[int]:
        self.shown += list(zip(views.unbind(1), position.unbind(1), strict=True))
        return [0] * views.shape[1]

    def initial_state(self, _: int) -> int:
        return 0

    def step(self, _: int, state: int) -> int:
        return state + 1

    def unroll(self, encoded: list[int], state: int) -> tuple[None, int]:
        return None, state + len(encoded)

    def decode(self, state: int, position: Tensor) -> BallPrediction:
        crops = cut_pixels(self.frames[:, state : state + 1], position[:, None])[:, 0]
        return BallPrediction((crops.float() - 0.4).unsqueeze(-3))


def test_a_model_that_knows_the_frames_rolls_out_the_truth_and_is_shown_its_own_predictions() -> None:
    torch.manual_seed(0)
    frames = torch.randint(0, 2, (2, 9, 48, 48), dtype=torch.uint8)
    position = torch.randint(0, 48, (2, 9, 10, 2)).float()
    views = cut_pixels(frames, position).unsqueeze(-3)
    model = Clairvoyant(frames)
    made = roll_out(model, views[:, :4], position, 4, 5, 48)  # type: ignore[arg-type]
    torch.testing.assert_close(made, frames[:, 4:9, 2:46, 2:46].bool())
    assert len(model.shown) == 9  # four true frames, then five of its own
    for t, (seen, where) in enumerate(model.shown):
        torch.testing.assert_close(where, position[:, t])
        torch.testing.assert_close(seen, views[:, t])


def test_what_is_fed_back_is_thresholded_and_not_the_truth() -> None:
    frames = torch.ones((1, 6, 48, 48), dtype=torch.uint8)
    position = torch.randint(10, 38, (1, 6, 10, 2)).float()

    class Blank(Clairvoyant):
        def decode(self, state: int, position: Tensor) -> BallPrediction:
            return BallPrediction(torch.full((1, position.shape[1], 1, 11, 11), -0.1))

    model = Blank(frames)
    roll_out(model, cut_pixels(frames, position).unsqueeze(-3)[:, :3], position, 3, 3, 48)  # type: ignore[arg-type]
    assert [int(views.sum()) for views, _ in model.shown[3:]] == [0, 0, 0]


def test_roll_outs_of_real_models_have_a_score_per_step_and_references(store: Store, tmp_path: Path) -> None:
    runs = load_runs([make_run(tmp_path / name, name, "bballs") for name in ("s2gru", "lstm")])
    rolled = roll_outs(store["bballs/test_3"], runs, limit=3, shown=2, device=CPU, progress=Progress())
    assert rolled.truth.shape == (2, 7, 44, 44)
    assert {pictures.shape for pictures in rolled.pictures.values()} == {(2, 7, 44, 44)}
    assert rolled.sequences == 3
    frames = store["bballs/test_3"]["frames"][:3][:, :, 2:46, 2:46]
    np.testing.assert_array_equal(rolled.truth, frames[:2, 5:])
    held, true = frames[:, 4], frames[:, 5:]
    both = (held[:, None] & true).sum((0, 2, 3))
    f1 = 2 * both / (held.sum() + true.sum((0, 2, 3)))
    assert rolled.references["copy_previous"].f1 == pytest.approx(list(f1))
    assert rolled.references["copy_previous"].area == pytest.approx(list(held.sum() / true.sum((0, 2, 3))))
    assert rolled.references["centre_only"].f1_moving == [0.0] * 7
    assert len(rolled.runs["s2gru"].f1) == 7


def test_a_roll_out_is_the_model_run_step_by_step(store: Store) -> None:
    """Feeding the true frames through the batch interface gives the state that the prompt leaves behind."""
    from s2rm_data.evaluation.blocks import pieces

    model = tiny_model("s2gru", "bballs")
    piece = next(pieces(store["bballs/test_3"], limit=2, device=CPU))
    position = torch.from_numpy(piece.request.view).float()
    with torch.inference_mode():
        made = roll_out(model, piece.batch.views[:, :5], position, 5, 1, 48)
        hidden, _ = model.unroll(model.encode_batch(piece.batch), model.initial_state(2))
        grid = grid_positions(48)[0].expand(2, 1, -1, -1)
        expected = stitch(model.decode_hidden(hidden[:, 4:5], grid).crop[:, 0, :, 0] > 0)
    torch.testing.assert_close(made[:, 0], expected)
