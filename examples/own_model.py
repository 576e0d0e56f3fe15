"""A model of your own, trained on bouncing balls and scored with the paper's metrics beside what needs no model.

    python examples/own_model.py            # makes own_model.zarr first, then trains for a few seconds

The model is a plain `torch.nn.Module`; the data come through a plain `DataLoader`. In these few seconds it learns where
the fixed ball is, which the reference "centre ball only" knows as well, and nothing of those that move.
"""

from __future__ import annotations

import sys

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn
from torch.utils.data import DataLoader

import s2rm_data as s2
from s2rm_data.evaluation.tables import Table
from s2rm_data.learning.dataset import WindowDataset

CROP, ARENA = 11, 48.0  # pixels


def waves(position: Tensor) -> Tensor:
    """Positions (..., 2) as sines and cosines of four wavelengths (..., 16)."""
    angles = (position.unsqueeze(-1) / ARENA * torch.pi * 2.0 ** torch.arange(4)).flatten(-2)
    return torch.cat([angles.sin(), angles.cos()], -1)


class OwnGRU(nn.Module):
    """Adds up what is seen times where it is seen, steps a GRU, and draws what it expects at each query."""

    def __init__(self, hidden: int = 256) -> None:
        super().__init__()
        self.what, self.where = nn.Linear(CROP * CROP, hidden), nn.Linear(16, hidden)
        self.gru = nn.GRU(hidden, hidden, batch_first=True)
        self.draw = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, CROP * CROP))

    def forward(self, batch: s2.Batch) -> Tensor:
        """Logits (B, T, Q, 1, 11, 11) of the next frame at the queries, from views (B, T, V, 1, 11, 11)."""
        seen = self.what(batch.views.flatten(3).float()) * self.where(waves(batch.view_position))
        state, _ = self.gru((seen * batch.view_mask.unsqueeze(-1)).sum(2))
        asked = state.unsqueeze(2) * self.where(waves(batch.query_position))
        return self.draw(asked).unflatten(-1, (1, CROP, CROP))


def train(model: nn.Module, data: WindowDataset, epochs: int) -> list[float]:
    """The mean loss of each epoch."""
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    loader, losses = DataLoader(data, batch_size=16, shuffle=True), []
    for epoch in range(epochs):
        data.set_epoch(epoch)  # other windows, other places to look
        total = 0.0
        for items in loader:
            batch = s2.Batch(**items)
            loss = F.binary_cross_entropy_with_logits(model(batch), batch.targets.crop.float())
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            total += loss.item() / len(loader)
        losses.append(total)
    return losses


def main(path: str = "own_model.zarr", *, sequences: int = 400, epochs: int = 10) -> Table:
    torch.manual_seed(0)
    s2.generate("bballs", out=path, balls=3, train=sequences, val=0, test=20, quiet=True)
    store = s2.open(path)
    model = OwnGRU()
    losses = train(model, s2.dataset(store["bballs/train"], window=10), epochs)
    print(f"loss {losses[0]:.4f} in the first epoch, {losses[-1]:.4f} in the last")
    table = s2.evaluate({"own GRU": model}, store, quick=True, quiet=True).tables["one_step"]
    print(table.title)
    for row in table.rows:
        print(f"{row.label:<40}{row.cells[0].mean:.3f}")
    return table


if __name__ == "__main__":
    main(*sys.argv[1:2])
