"""References from above: the exact filter, which knows the physics and sees a model's crops, and the exact simulator
from states that are known up to noise.

The filter is told: the radius, the box and what stands still in it, the range of the speeds, and (unless `counts` lists
several numbers, which are then equally likely) how many balls there are. It is not told where they are.

What it has found is kept in the folder STORE.ceilings beside the store. A file's name is a digest of all that the
filter is told and sees and of its settings, so that nothing in it is ever out of date."""

# T steps, H steps of the horizon, S side of the arena in pixels, n balls, B sequences

from __future__ import annotations

import hashlib
import io
import json
import warnings
import zipfile
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from s2rm_data.core.check import above, at_least, between, check_fields
from s2rm_data.core.errors import S2RMError, S2RMWarning, UsageError
from s2rm_data.core.progress import Progress
from s2rm_data.core.seeding import generator
from s2rm_data.core.write import make_folder, write_whole
from s2rm_data.evaluation.blocks import SEED, Piece, pieces
from s2rm_data.generators.bballs.evaluation.ball_filter import run_filter
from s2rm_data.generators.bballs.learning.ball_crops import REACH, crops_of_one, cut_pixels
from s2rm_data.generators.bballs.learning.ball_learning import BallCounts, seen_pixels
from s2rm_data.generators.bballs.making.ball_config import AnyConfig, BallsConfig, config_of
from s2rm_data.generators.bballs.making.ball_render import draw_packed, standing_pixels
from s2rm_data.generators.bballs.making.ball_simulate import move_on
from s2rm_data.generators.bballs.making.ball_start import start
from s2rm_data.store import Group

_VERSION = 1  # of the algorithm: files of another one are not read
_LARGEST_PX = 64  # a row of the arena is one word
_SLACK = 0.02  # of the energy, where velocities are drawn as one vector of known norm
NOISES = ((0.1, 0.05), (0.3, 0.1), (0.5, 0.2), (1.0, 0.5))  # px and px/frame, of each coordinate
NOISY = {f"noisy_{x:g}_{v:g}": f"simulator, ± {x:g} px, {v:g} px/frame" for x, v in NOISES}


@dataclass(frozen=True, kw_only=True)
class FilterConfig:
    """`particles` of each of `populations`, for each number of balls in `counts` (None: the true one alone). `window`:
    frames before the present one whose pixels count. `moves` of each ball and particle at each stage of taking in a
    frame, and `rounds` more while nothing explains what is seen. `sharpness`: nats for a pixel that is drawn wrong,
    once the balls are found."""

    counts: tuple[Annotated[int, between(1, 16)], ...] | None = None
    particles: Annotated[int, at_least(4)] = 200
    populations: Annotated[int, at_least(1)] = 1
    window: Annotated[int, at_least(1)] = 20
    moves: Annotated[int, at_least(1)] = 10
    rounds: Annotated[int, at_least(0)] = 2
    sharpness: Annotated[float, above(0)] = 4.0
    seed: Annotated[int, at_least(0)] = 0

    def __post_init__(self) -> None:
        check_fields(self)
        if self.counts is not None and not self.counts:
            raise UsageError("counts is empty; list the numbers of balls that are possible, or give None")

    @classmethod
    def suited(cls, balls: int, views: float) -> FilterConfig:
        """What was found to do for so many balls and views of each frame: with few views, wrong guesses must stay easy
        to leave; many balls take a search that looks at less and longer."""
        if views < 8:
            return cls(window=15, moves=15, sharpness=1.0)
        return cls() if balls <= 3 else cls(window=12 if balls == 4 else 7, moves=15, rounds=4)


@dataclass(frozen=True, kw_only=True)
class Filtered:
    """Of one sequence: the level (of 255) of each pixel of frame t + 1 given the views of 0..t (T, S, S); the same of
    the frames after a prompt (H, S, S), given those of the prompt; and where it had lost the balls (T,) bool."""

    made: NDArray[np.uint8]
    rolled: NDArray[np.uint8]
    lost: NDArray[np.bool_]


def can_filter(config: AnyConfig) -> bool:
    """A plain world whose rows fit into a word."""
    return isinstance(config, BallsConfig) and config.size <= _LARGEST_PX


def filter_views(
    frames: NDArray[Any],
    seen: NDArray[np.bool_],
    config: BallsConfig,
    settings: FilterConfig,
    *,
    number: int = 0,
    prompt: int = 0,
    horizon: int = 0,
) -> Filtered:
    """Of one sequence: frames (T, S, S) of 0 and 1 are looked at only where `seen` (T, S, S) is true. The result
    depends on the settings' seed and the sequence's number alone."""
    if not can_filter(config):
        raise UsageError(f"the filter knows plain worlds of at most {_LARGEST_PX} px, not this: {config}")
    if frames.shape != seen.shape or frames.shape[1:] != (config.size,) * 2 or not 0 <= prompt <= len(frames):
        raise UsageError(
            f"frames {frames.shape}, seen {seen.shape} and a prompt of {prompt} do not belong together; the first two "
            f"are (steps, {config.size}, {config.size}), and the prompt has at most as many steps"
        )
    if config.speed_px_per_frame is None and {*(settings.counts or ())} - {config.balls}:
        raise UsageError(
            f"counts are {settings.counts}; in preset {config.preset!r} the balls together have one speed, which only "
            f"the true number, {config.balls}, can share"
        )
    random = generator(settings.seed, "evaluation/filter", number)
    counts = np.array(settings.counts or (config.balls,)).repeat(settings.populations)
    first = np.zeros((2, len(counts), settings.particles, counts.max(), 2))
    for j, balls in enumerate(counts.tolist()):
        seeds = random.integers(0, 2**63, settings.particles, dtype=np.uint64)
        first[:, j, :, :balls] = start(seeds, replace(config, balls=balls))[:2]
    size, found = config.size, np.zeros((len(frames), 2 * len(counts)))
    made, rolled = np.zeros((len(frames), size, size)), np.zeros((horizon, size, size))
    still = _words(np.unpackbits(standing_pixels(config), axis=-1, count=size))
    world = (float(size), float(config.radius_px), tuple(map(tuple, config.discs.tolist())), still)
    shown, key, speeds = _words(seen), random.integers(0, 2**63, dtype=np.uint64), _speeds(config)
    on, effort = _words(frames) & shown, (settings.window, settings.moves, settings.rounds, float(settings.sharpness))
    run_filter(on, shown, *first, counts, speeds, world, effort, key, prompt, made, rolled, found)
    levels = [np.rint(255 * np.clip(p, 0, 1)).astype(np.uint8) for p in (made, rolled)]
    lost, share = np.split(found, 2, axis=1)
    return Filtered(made=levels[0], rolled=levels[1], lost=(share * lost).sum(1) > 0.5)


def _words(pictures: NDArray[Any]) -> NDArray[np.uint64]:
    """(..., S, S) of 0 and 1 -> (..., S): pixel j is bit j."""
    return (pictures.astype(np.uint64) << np.arange(pictures.shape[-1], dtype=np.uint64)).sum(-1, dtype=np.uint64)


def _speeds(config: BallsConfig) -> tuple[float, float, float, float]:
    """Least and most speed of a ball at the start; least and most energy per ball (twice, at unit mass)."""
    if config.speed_px_per_frame is not None:
        low, high = config.speed_px_per_frame
        return low, high, low * low, high * high
    assert config.system_speed_px_per_frame is not None
    energy = config.system_speed_px_per_frame**2 / config.balls
    return 0.0, np.inf, (1 - _SLACK) * energy, (1 + _SLACK) * energy


class _Job(NamedTuple):
    frames: NDArray[np.uint8]
    seen: NDArray[np.bool_]
    number: int
    path: Path | None  # where its result is kept, beside a store in a folder; a store in a bucket has no place for it


def filtered(
    group: Group,
    limit: int,
    fraction: float,
    spans: tuple[int, int],
    progress: Progress,
    settings: FilterConfig | None = None,
) -> list[Filtered]:
    """Of the first `limit` sequences without a fraction of their views; `spans` are (prompt, horizon). Advances the
    progress by sequences. What is not known yet is found in as many threads as torch has."""
    config, store, jobs, chosen = config_of(group.settings), group.store.path, [], settings
    assert isinstance(config, BallsConfig)
    for piece in pieces(group, limit=limit, device=torch.device("cpu"), batch_size=1):
        mask = piece.dropped(fraction).view_mask
        chosen = chosen or FilterConfig.suited(config.balls, float(mask.float().sum(-1).mean()))
        seen = seen_pixels(piece.batch.view_position, mask, config.size, REACH)[0].numpy()
        frames = piece.source.whole_frames(piece.request)[0, :-1].numpy()  # type: ignore[attr-defined]
        facts = [_VERSION, SEED, group.settings["config"], asdict(chosen), piece.first, *spans]
        told, shown = json.dumps(facts, sort_keys=True), _words(seen)
        digest = hashlib.sha256(told.encode() + shown.tobytes() + (_words(frames) & shown).tobytes()).hexdigest()
        folder = store.with_name(f"{store.name}.ceilings") if isinstance(store, Path) else None
        jobs.append(_Job(frames, seen, piece.first, folder and folder / f"{digest[:40]}.npz"))

    def result(job: _Job) -> Filtered:
        if (known := _read(job)) is None:
            assert chosen is not None
            place = {"number": job.number, "prompt": spans[0], "horizon": spans[1]}
            known = filter_views(job.frames, job.seen, config, chosen, **place)
            _keep(job, known)
        progress.advance(1)
        return known

    with ThreadPoolExecutor(torch.get_num_threads()) as threads:
        return list(threads.map(result, jobs))


def _read(job: _Job) -> Filtered | None:
    """What is kept, if it is there and whole."""
    try:
        content = io.BytesIO((job.path or Path()).read_bytes())  # of a damaged file, numpy would leave it open
        with np.load(content, allow_pickle=False) as kept:
            found = Filtered(made=kept["made"], rolled=kept["rolled"], lost=kept["lost"])
    except (OSError, ValueError, KeyError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error):
        return None
    return found if found.made.shape == job.frames.shape and found.made.dtype == np.uint8 else None


def _keep(job: _Job, found: Filtered) -> None:
    if job.path is None:
        return
    content = io.BytesIO()
    np.savez_compressed(content, **asdict(found))
    try:
        make_folder(job.path.parent)
        write_whole(job.path, [content.getvalue()])
    except S2RMError as error:
        warnings.warn(f"what the exact filter has found is not kept: {error}", S2RMWarning, stacklevel=2)


def estimated_seconds(balls: int, views: float, steps: int) -> float:
    """CPU-seconds of one sequence on one thread of a busy AMD Zen 5 core, as measured; within a factor of two."""
    return 0.003 * steps * balls**2 * max(1.0, 10 / views)


def filter_counts(group: Group, found: Sequence[Filtered]) -> BallCounts:
    """Of predictions one step ahead, where the models are asked."""
    total, looked_at = BallCounts.zero(), pieces(group, limit=len(found), device=torch.device("cpu"), batch_size=1)
    for piece, one in zip(looked_at, found, strict=True):
        batch, where = piece.batch, piece.batch.query_position
        assert batch.targets is not None
        fixed = crops_of_one(piece.source.fixed_ball, where)  # type: ignore[attr-defined]
        drawn = cut_pixels(torch.from_numpy(one.made > 127)[None], where)
        total = total.plus(BallCounts.of(drawn, batch.targets.crop.squeeze(-3), fixed))
    return total


def noisy_roll_outs(group: Group, piece: Piece, prompt: int, horizon: int) -> dict[str, Tensor]:
    """By noise (B, H, S, S) bool: the exact simulator from the true state of the prompt's last frame, with noise."""
    config, rows = config_of(group.settings), slice(piece.first, piece.first + len(piece.requests))
    x, v = (group[name][rows][:, prompt - 1].astype(np.float64) for name in ("position", "velocity"))
    radius = group["radius"][rows]
    random = [generator(SEED, "evaluation/noise", number) for number in range(rows.start, rows.stop)]
    dx, dv = np.stack([one.standard_normal((2, *x.shape[1:])) for one in random], 1)
    made = {}
    for name, (px, speed) in zip(NOISY, NOISES, strict=True):
        places = np.clip(x + px * dx, radius[..., None], config.size - radius[..., None])
        moved, _ = move_on(places, v + speed * dv, radius, np.ones_like(radius), replace(config, frames=horizon + 1))
        frames = draw_packed(moved[:, 1:], radius, standing_pixels(config))
        made[name] = torch.from_numpy(np.unpackbits(frames, axis=-1, count=config.size).astype(np.bool_))
    return made
