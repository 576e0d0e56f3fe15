"""What a run writes while it goes: log, timing, learning curves and pictures; in the first process only."""

import errno
import hashlib
import io
import json
import os
import stat
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from s2rm_data.core.check import canonical_json
from s2rm_data.core.errors import DamagedStoreError
from s2rm_data.core.paint import captioned, grey_image, legend_below, new_figure
from s2rm_data.core.write import disk_errors, replaced
from s2rm_data.learning import FixedBatches
from s2rm_data.learning.world_learning import Learning
from s2rm_data.models import WorldModel
from s2rm_data.training.folder import RunFolder, picture_name, read_log

SHOWN_STEPS = 8
ANIMATION_PIXELS = 120  # high


def draw_curves(
    records: list[dict[str, Any]], references: dict[str, dict[str, float]], learning: Learning, path: Path
) -> None:
    """Losses on the left, the main score and its references on the right."""
    steps = [r for r in records if r["kind"] == "step"]
    validations = [r for r in records if r["kind"] == "validation"]
    if not validations:
        return
    score, title = next(iter(learning.scores.items()))
    figure = new_figure(9, 3.8)
    left, right = axes = figure.subplots(1, 2)
    stride = max(len(steps) // 1000, 1)
    left.plot([r["step"] for r in steps[::stride]], [r["loss"] for r in steps[::stride]], lw=0.6, label="training")
    left.plot([r["step"] for r in validations], [r["loss"] for r in validations], marker=".", label="validation")
    left.set(xlabel="step", ylabel="loss", yscale="log")
    right.plot([r["step"] for r in validations], [r[score] for r in validations], marker=".", color="C1")
    for style, (name, scores) in zip(("--", ":", "-.", (0, (1, 4))), references.items(), strict=False):
        right.axhline(scores[score], color="0.4", ls=style, lw=1, label=name.replace("_", " "))
    right.set(xlabel="step", ylabel=f"{title}, validation")
    known = [r[score] for r in validations] + [scores[score] for scores in references.values() if scores[score] > 0]
    if all(0 < value <= 1 for value in known):  # without what has nothing, which would press the rest together
        right.set_ylim(min(known) - 0.03, max(known) + 0.03)
    legend_below(figure, axes)
    _save(figure, path)


def draw_predictions(model: WorldModel, batches: FixedBatches, path: Path) -> bytes:
    """The last steps of the first validation sequence, beside one another; returns them one after the other, a GIF."""
    rows, titles = model.config.learning.pictures(model, batches.source, batches.request(0), SHOWN_STEPS)
    if titles:
        _draw_rows(rows, titles, path)
    return _animation(rows, titles)


def _animation(rows: dict[str, list[Any]], titles: list[str]) -> bytes:
    images = []
    for step, title in enumerate(titles):
        tiles = [np.pad(np.clip(np.nan_to_num(np.asarray(line[step], np.float64)), 0, 1), 1) for line in rows.values()]
        levels = (255 * np.concatenate(tiles, axis=1)).astype(np.uint8)
        shown = grey_image(levels, max(1, ANIMATION_PIXELS // levels.shape[0])).convert("RGB")
        images.append(captioned(shown, f"{title}: {', '.join(rows)}"))
    data = io.BytesIO()
    if images:
        images[0].save(data, "gif", save_all=True, append_images=images[1:], duration=300, loop=0)
    return data.getvalue()


def _draw_rows(rows: dict[str, list[Any]], titles: list[str], path: Path) -> None:
    """All images in one, with labels as ticks: an axis for each would take ten times as long to draw."""
    from matplotlib.figure import Figure

    def framed(image: Any) -> NDArray[np.float64]:
        return np.pad(np.asarray(image, np.float64), 1, constant_values=0.6)

    tiles = [np.concatenate([framed(image) for image in line], axis=1) for line in rows.values()]
    picture, (height, width) = np.concatenate(tiles), (len(tiles[0]), tiles[0].shape[1] // len(titles))
    figure = Figure(figsize=(1.3 * len(titles) + 1.6, 1.3 * height / width * len(rows) + 0.5))
    axis = figure.add_axes((1.5 / figure.get_figwidth(), 0.02, 1 - 1.6 / figure.get_figwidth(), 0.86))
    axis.imshow(picture, cmap="gray", vmin=0, vmax=1, interpolation="nearest", aspect="auto")
    axis.set_xticks((np.arange(len(titles)) + 0.5) * width - 0.5, titles, fontsize="small")
    axis.set_yticks((np.arange(len(rows)) + 0.5) * height - 0.5, list(rows), fontsize="small")
    axis.tick_params(length=0, labeltop=True, labelbottom=False)
    _save(figure, path)


def _save(figure: Any, path: Path) -> None:
    with replaced(path) as partial:
        figure.savefig(partial, format="png", dpi=90)


def _opened_for_writing(path: Path) -> int:
    """A descriptor of a regular file, made if there is none. A link is not followed: it may lead to somebody's file."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
            raise DamagedStoreError(f"{path} is not a regular file") from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise DamagedStoreError(f"{path} is not a regular file")
    return descriptor


def add_timing(path: Path, record: dict[str, Any]) -> None:
    with disk_errors(path), os.fdopen(_opened_for_writing(path), "ab") as file:
        file.write(json.dumps(record).encode() + b"\n")


class Log:
    """Records as lines of JSON, in the order of the steps.
    Its length and digest are part of a checkpoint, and a resumed run cuts off what was written after it: the log of a
    run that was killed is that of one that was not."""

    def __init__(self, path: Path, length: int, sha256: str | None = None) -> None:
        self.path = path
        self._digest = hashlib.sha256()
        with disk_errors(path):
            self._file = os.fdopen(_opened_for_writing(path), "a+b")
        try:
            self._check(length, sha256)
            with disk_errors(path):
                self._file.truncate(length)
        except BaseException:
            self._file.close()
            raise

    def _check(self, length: int, sha256: str | None) -> None:
        """Whether the log begins as it did at the checkpoint; checkpoints of earlier versions say only how long."""
        self._file.seek(0)
        left = length
        while left and (piece := self._file.read(min(left, 1 << 20))):
            self._digest.update(piece)
            left -= len(piece)
        if left:
            raise DamagedStoreError(f"{self.path} is shorter than the checkpoint says ({length} bytes)")
        if sha256 is not None and self._digest.hexdigest() != sha256:
            raise DamagedStoreError(f"{self.path} is damaged: it is not as it was at the checkpoint")

    def write(self, record: dict[str, Any]) -> None:
        line = canonical_json(record) + b"\n"
        self._digest.update(line)
        with disk_errors(self.path):
            self._file.write(line)

    @property
    def sha256(self) -> str:
        """Of all that was written."""
        return self._digest.hexdigest()

    def sync(self) -> int:
        """Its length, once it is on the disk."""
        with disk_errors(self.path):
            self._file.flush()
            os.fsync(self._file.fileno())
            return self._file.tell()

    def flush(self) -> None:
        with disk_errors(self.path):
            self._file.flush()

    def close(self) -> None:
        with disk_errors(self.path):
            self._file.close()


REDRAW_SECONDS = 10.0  # drawing the curves takes half a second, which a short run may not have for each validation


class LogState(NamedTuple):
    """Where a checkpoint left the log; `sha256` None for checkpoints of earlier versions."""

    length: int = 0
    sha256: str | None = None


class Journal:
    def __init__(self, folder: RunFolder, learning: Learning, is_first: bool, log: LogState) -> None:
        self._folder, self._learning = folder, learning
        self._is_first = is_first
        self._drawn_at: float | None = None
        if not is_first:
            return
        self._log = Log(folder.log, log.length, log.sha256)
        with disk_errors(folder.predictions):
            folder.predictions.mkdir(exist_ok=True)

    def log(self, record: dict[str, Any]) -> None:
        if self._is_first:
            self._log.write(record)

    def validation(self, record: dict[str, Any], references: dict[str, dict[str, float]], *, is_last: bool) -> None:
        """Logged at once; drawn at the first and the last, and in between if the curves are some seconds old."""
        if not self._is_first:
            return
        self._log.write(record)
        self._log.flush()
        if is_last or self._drawn_at is None or time.monotonic() - self._drawn_at >= REDRAW_SECONDS:
            draw_curves(read_log(self._folder.log), references, self._learning, self._folder.curves)
            self._drawn_at = time.monotonic()

    def picture(self, model: WorldModel, batches: FixedBatches, step: int) -> tuple[Path, bytes]:
        """A PNG, if the world draws any, and a GIF."""
        path: Path = self._folder.predictions / picture_name(step)
        return path, draw_predictions(model, batches, path)

    def timing(self, record: dict[str, Any]) -> None:
        if self._is_first:
            add_timing(self._folder.timing, record)

    def sync(self) -> LogState:
        return LogState(self._log.sync(), self._log.sha256)

    def close(self) -> None:
        if self._is_first:
            self._log.close()
