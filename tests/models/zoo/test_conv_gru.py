"""ConvGRU against a transcription that reads and draws pixel by pixel and thing by thing."""

from __future__ import annotations

import dataclasses

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from s2rm_data.core.errors import UsageError
from s2rm_data.models import build
from s2rm_data.models.zoo.conv_gru import FINER, OUTSIDE


def slow_picture(model, batch, b, t):
    """(2, S, S): pixels as -1 and 1, 0 where none was seen; and whether one was seen."""
    size = model.config.grid[0] * model.config.patch
    value, seen = torch.zeros(size, size), torch.zeros(size, size)
    for view, (x, y), exists in zip(
        batch.views[b, t], batch.view_position[b, t].round().long().tolist(), batch.view_mask[b, t], strict=True
    ):
        for i, j in torch.cartesian_prod(torch.arange(11), torch.arange(11)).tolist():
            row, column = y + i - 5, x + j - 5
            if exists and 0 <= row < size and 0 <= column < size:
                value[row, column], seen[row, column] = 2 * view[0, i, j].float() - 1, 1
    return torch.stack([value, seen])


def slow_step(model, x, h):
    u = F.relu(F.conv2d(torch.cat([h, x])[None], model.mix.weight, model.mix.bias, padding=1) + model.place_bias)
    z, n = F.conv2d(u, model.change.weight, model.change.bias, padding=1)[0].chunk(2)
    return z.sigmoid() * h + (1 - z.sigmoid()) * n.tanh()


def crops_of_frames(steps):
    """A batch whose views are crops of the same frames, as they are in data: what overlaps agrees."""
    from random_batches import random_batch

    batch = random_batch("bballs", B=2, T=steps, V=3, Q=2)
    frames = (torch.rand(2, steps, 58, 58) < 0.2).to(batch.views.dtype)
    at = batch.view_position.round().long().clamp(0, 47)
    views = torch.empty((*batch.views.shape[:3], 11, 11), dtype=frames.dtype)
    for b, t, v in torch.cartesian_prod(*map(torch.arange, views.shape[:3])).tolist():
        x, y = at[b, t, v].tolist()
        views[b, t, v] = frames[b, t, y : y + 11, x : x + 11]
    mask = torch.rand(batch.view_mask.shape) < 0.7
    return dataclasses.replace(batch, views=views.unsqueeze(3), view_position=at.float(), view_mask=mask)


def test_balls_are_pasted_stepped_and_cut_as_a_slow_transcription_says():
    model = build("conv_gru", task="bballs", hidden_size=8, mixed_size=8)
    batch = crops_of_frames(3)
    with torch.no_grad():
        found = model(batch).crop
        for b in range(2):
            h = model.start
            for t in range(3):
                h = slow_step(model, F.pixel_unshuffle(slow_picture(model, batch, b, t), 4), h)
                drawn = model.decoder.out(F.relu(model.decoder.mix(h[None])))
                drawn = F.pad(F.pixel_shuffle(drawn, 4)[0, 0], (5, 5, 5, 5), value=OUTSIDE)
                for q, (x, y) in enumerate(batch.query_position[b, t].round().long().clamp(0, 47).tolist()):
                    torch.testing.assert_close(found[b, t, q, 0], drawn[y : y + 11, x : x + 11])


def test_things_are_read_and_drawn_where_they_are(make_batch):
    """One thing per view in a random batch of battles; the grid that is made of them, and an image that is read off."""
    model = build("conv_gru", task="sc2", image_size=(8, 12), hidden_size=8, mixed_size=8, patch=2)
    batch = make_batch("sc2", B=1, T=1, V=3, Q=2)
    views, position = batch.views[0, 0], batch.view_position[0, 0]
    sums, counts = torch.zeros(33, 16, 16), torch.zeros(16, 16)
    with torch.no_grad():
        for view, at, exists in zip(views, position, batch.view_mask[0, 0], strict=True):
            channels = view.flatten(1).T
            for cell in torch.nonzero(channels[:, model.reader.occupied].sum(-1)).flatten().tolist() if exists else []:
                place = (at + model.reader.offsets[cell]) / 2
                x, y = (int(v) for v in place.long().clamp(0, 15))
                inside = (2 * (place - torch.tensor([x, y])) - 1).clamp(-2, 2)
                features = torch.cat([channels[cell].float() - model.reader.empty, inside])
                sums[:32, y, x] += model.reader.second(model.reader.first(features).relu())
                counts[y, x] += 1
        sums[:32] /= counts.clamp(min=1)
        sums[32] = counts.clamp(max=1)
        grid = model.reader(batch.views.flatten(3), batch.view_position, batch.view_mask)
        torch.testing.assert_close(grid[0, 0], sums)

        hidden, query = torch.randn(1, 8, 16, 16), batch.query_position[0]
        fine = F.pixel_shuffle(model.decoder.finer(hidden), FINER)
        point = query[0, 0] + model.decoder.offsets
        point = point.clamp(1 / FINER, 32 - 1 / FINER)  # beyond the outermost parts, as they are
        sampled = F.grid_sample(fine, (point / 16 - 1)[None, None], align_corners=False)[0, :, 0].T
        expected = model.decoder.out(model.decoder.mix(F.relu(sampled + model.decoder.bias)).relu())
        torch.testing.assert_close(model.decoder(hidden, query)[0].flatten(1).T, expected, rtol=1e-4, atol=1e-5)


def test_a_skip_is_refused():
    with pytest.raises(UsageError, match="skip"):
        build("conv_gru", task="bballs", skip=True)
