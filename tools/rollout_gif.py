"""Draw docs/images/roll_outs.gif: truth beside what the shipped S2GRU says when it is shown nothing more.

    python tools/rollout_gif.py data.zarr docs/images/roll_outs.gif

`data.zarr` is that of the Quick start. Twenty steps are shown to the models before the first picture.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from s2rm_data.core.paint import save_gif
from s2rm_data.evaluation.runs import load_runs
from s2rm_data.evaluation.viewer_predictions import RunPredictor
from s2rm_data.inspection.scene import Picture, Pictures
from s2rm_data.store import Store

SHOWN, STEPS, SIDE, GAP, TOP = 20, 25, 192, 12, 34
# (run, group, sequence, agent, title, titles of the pictures of truth and prediction)
CHOSEN = (
    ("bballs-s2gru", "bballs/test_3", 0, 0, "Bouncing balls", ("true frame", "rolled out")),
    (
        "sc2-s2gru",
        "sc2/3s5z/val",
        0,
        0,
        "One agent of a battle: stalkers, zealots",
        ("unit type: true", "unit type: predicted"),
    ),
)


def main(store: str, target: str) -> None:
    opened = Store(store)
    foresight = RunPredictor(load_runs([Path(run) for run, *_ in CHOSEN]), torch.device("cpu"))
    tiles = []
    for run, path, number, agent, title, names in CHOSEN:
        made = foresight.prediction(run, opened[path], number, index=agent, start=SHOWN, dropped=0.0)
        shown = {p.title: p for panel in made.panels if isinstance(panel, Pictures) for p in panel.pictures}
        tiles += [(title, "truth", shown[names[0]]), ("", "S2GRU", shown[names[1]])]
    save_gif((frame(tiles, step) for step in range(SHOWN, SHOWN + STEPS)), Path(target), 220)


def frame(tiles: Sequence[tuple[str, str, Picture]], step: int) -> Image.Image:
    canvas = Image.new("RGB", (GAP + len(tiles) * (SIDE + GAP), TOP + SIDE + 24), "white")
    pen = ImageDraw.Draw(canvas)
    for column, (title, caption, picture) in enumerate(tiles):
        left = GAP + column * (SIDE + GAP)
        pen.text((left, 4), title, fill="black")
        pen.text((left, 18), caption, fill="black")
        values = np.asarray(picture.values)
        if step - picture.first < len(values):
            canvas.paste(drawn(picture, values[step - picture.first]), (left, TOP))
    after = step - SHOWN + 1
    words = f"step {step + 1}: {after} step{'s' * (after > 1)} after the models were last shown anything"
    pen.text((GAP, TOP + SIDE + 6), words, fill="black")
    return canvas


def drawn(picture: Picture, values: NDArray[np.uint8]) -> Image.Image:
    """Named colours, each cell as a square, or as a wedge where rows are radii and columns angles."""
    colours = [tuple(int(colour[at : at + 2], 16) for at in (1, 3, 5)) for colour in picture.palette.colours]
    table = np.array(colours, np.uint8)
    if picture.polar:
        y, x = np.mgrid[:SIDE, :SIDE] - (SIDE - 1) / 2
        radius, angle = np.hypot(x, y) / (SIDE / 2), np.arctan2(-y, x) % (2 * np.pi) / (2 * np.pi)
        rows, columns = values.shape
        row = np.minimum((radius * rows).astype(int), rows - 1)
        picked = table[values[row, np.rint(angle * columns).astype(int) % columns]]
        picked[radius > 1] = 255
        return Image.fromarray(picked)
    scale = SIDE // len(values)
    return Image.fromarray(table[values].repeat(scale, 0).repeat(scale, 1))


if __name__ == "__main__":
    main(*sys.argv[1:3])
