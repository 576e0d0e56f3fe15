"""TensorBoard, which every run writes: each step, each validation, pictures and moving pictures of predictions."""

import io
import itertools
import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from PIL import Image

from s2rm_data.core.write import make_folder
from s2rm_data.training.folder import TIMING
from s2rm_data.training.journal import add_timing
from s2rm_data.training.listener import Logger, Pace

_NUMBERS = itertools.count()  # of the files that this process begins


class _Events:
    """A file of events, written by who tells them: torch's writer has a thread for it, which fails with a traceback."""

    def __init__(self, path: Path, step: int) -> None:
        from tensorboard.compat.proto.event_pb2 import SessionLog
        from tensorboard.summary.writer.record_writer import RecordWriter

        make_folder(path.parent)
        self._writer = RecordWriter(path.open("xb"))
        self.flush, self.close = self._writer.flush, self._writer.close
        self._add(file_version="brain.Event:2")
        if step:  # what was told of later steps is told again
            self._add(step=step, session_log=SessionLog(status=SessionLog.START))

    def _add(self, **fields: Any) -> None:
        from tensorboard.compat.proto.event_pb2 import Event

        self._writer.write(Event(wall_time=time.time(), **fields).SerializeToString())

    def add(self, step: int, **value: Any) -> None:
        from tensorboard.compat.proto.summary_pb2 import Summary

        self._add(step=step, summary=Summary(value=[Summary.Value(**value)]))


class TensorBoard(Logger):
    _events: Any = None

    def open(self, name: str, config: dict[str, Any], step: int) -> None:
        place = f"{time.time():010.0f}.{socket.gethostname()}.{os.getpid()}.{next(_NUMBERS)}"
        path = self.folder / "tensorboard" / f"events.out.tfevents.{place}"
        add_timing(self.folder / TIMING, {"step": step, "events": path.name})  # so that it is known to be the run's
        self._events = _Events(path, step)

    def pace(self, pace: Pace) -> None:
        """Nothing: every step is told."""

    def step(self, record: Mapping[str, Any]) -> None:
        self._tell(record["step"], {f"train/{name}": record[name] for name in ("loss", "norm", "lr")})

    def write(self, step: int, values: Mapping[str, float]) -> None:
        self._tell(step, values)
        self._events.flush()

    def _tell(self, step: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self._events.add(step, tag=name, simple_value=value)

    def picture(self, path: Path, step: int, animation: bytes) -> None:
        self._show("predictions", path.read_bytes(), step)
        self._show("predictions_moving", animation, step)

    def _show(self, name: str, encoded: bytes, step: int) -> None:
        """A PNG or GIF as it is: TensorBoard hands it to the browser, which plays what moves."""
        from tensorboard.compat.proto.summary_pb2 import Summary

        with Image.open(io.BytesIO(encoded)) as image:
            width, height = image.size
        shown = Summary.Image(height=height, width=width, colorspace=3, encoded_image_string=encoded)
        self._events.add(step, tag=name, image=shown)

    def finish(self, summary: dict[str, Any]) -> None:
        """Nothing: the folder is closed by then."""

    def stop(self) -> None:
        if self._events is not None:
            self._events.close()
            self._events = None


LOGGER = TensorBoard
