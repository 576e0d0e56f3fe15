"""What a run writes for people: log, timing, TensorBoard, learning curves, pictures; in the first process only."""

from __future__ import annotations

import io
import json
import time
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image

from s2rm_data.files import disk_errors
from s2rm_data.learning import Learning
from s2rm_data.loading import FixedBatches
from s2rm_data.models import WorldModel
from s2rm_data.sealing import read_log
from s2rm_data.training.folder import Log, RunFolder
from s2rm_data.training.pictures import draw_curves, draw_predictions

REDRAW_SECONDS = 10.0  # drawing the curves takes half a second, which a short run may not have for each validation


class LogState(NamedTuple):
    """Where a checkpoint left the log; `sha256` None for checkpoints of earlier versions."""

    length: int = 0
    sha256: str | None = None


class Journal:
    def __init__(self, folder: RunFolder, learning: Learning, is_first: bool, log: LogState, step: int) -> None:
        self._folder, self._learning = folder, learning
        self._is_first = is_first
        self._drawn_at: float | None = None
        if not is_first:
            return
        from torch.utils.tensorboard import SummaryWriter

        self._log = Log(folder.log, log.length, log.sha256)
        with disk_errors(folder.tensorboard):
            folder.predictions.mkdir(exist_ok=True)
            self._events = SummaryWriter(str(folder.tensorboard), purge_step=step or None)

    def log(self, record: dict[str, Any]) -> None:
        if self._is_first:
            self._log.write(record)

    def step(self, record: dict[str, Any]) -> None:
        if self._is_first:
            self._log.write(record)
            for name in ("loss", "norm", "lr"):
                self._events.add_scalar(f"train/{name}", record[name], record["step"])

    def validation(self, record: dict[str, Any], references: dict[str, dict[str, float]], *, is_last: bool) -> None:
        """Logged at once; drawn at the first and the last, and in between if the curves are some seconds old."""
        if not self._is_first:
            return
        self._log.write(record)
        self._log.flush()
        for name, value in record.items():
            if isinstance(value, float):
                self._events.add_scalar(f"validation/{name}", value, record["step"])
        self._events.flush()
        if is_last or self._drawn_at is None or time.monotonic() - self._drawn_at >= REDRAW_SECONDS:
            draw_curves(read_log(self._folder.log), references, self._learning, self._folder.curves)
            self._drawn_at = time.monotonic()

    def picture(self, model: WorldModel, batches: FixedBatches, step: int) -> Path:
        """Also an image and an animation in TensorBoard."""
        path: Path = self._folder.predictions / f"step-{step:07d}.png"
        animation = draw_predictions(model, batches, path)
        if path.exists():
            self._show("predictions", path.read_bytes(), step)
            self._show("predictions_moving", animation, step)
        return path

    def _show(self, name: str, encoded: bytes, step: int) -> None:
        """A PNG or GIF as it is: TensorBoard hands it to the browser, which plays what moves."""
        from tensorboard.compat.proto.summary_pb2 import Summary

        with Image.open(io.BytesIO(encoded)) as image:
            width, height = image.size
        shown = Summary.Image(height=height, width=width, colorspace=3, encoded_image_string=encoded)
        writer: Any = self._events.file_writer
        writer.add_summary(Summary(value=[Summary.Value(tag=name, image=shown)]), step)

    def timing(self, record: dict[str, Any]) -> None:
        if self._is_first:
            with disk_errors(self._folder.timing), self._folder.timing.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")

    def sync(self) -> LogState:
        return LogState(self._log.sync(), self._log.sha256)

    def close(self) -> None:
        if self._is_first:
            self._log.close()
            self._events.close()
