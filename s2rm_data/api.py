"""What the commands do, as functions: the public names of the package (`import s2rm_data as s2`); see docs/api.md."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from s2rm_data.core.addresses import StorePath, store_path
from s2rm_data.core.amounts import size_nbytes
from s2rm_data.core.errors import UsageError
from s2rm_data.core.registry import WORLDS, plugins_loaded
from s2rm_data.store import Group, Store

if TYPE_CHECKING:
    from s2rm_data.evaluation.evaluate import Evaluation
    from s2rm_data.learning.dataset import WindowDataset
    from s2rm_data.making.parts import Merged
    from s2rm_data.making.run import Outcome, Plan, ShardSize
    from s2rm_data.making.world import Making, World
    from s2rm_data.models.world_model import WorldModel
    from s2rm_data.store import ShardCache
    from s2rm_data.store.parts import Part
    from s2rm_data.store.zarr_store import CheckedStore
    from s2rm_data.training.listener import Listener
    from s2rm_data.training.resolve import TrainingRequest

PathLike = str | os.PathLike[str]
CACHE_SIZE = "50GB"


def generate(
    world: str, out: PathLike | StorePath = "data.zarr", *, seed: int = 0, workers: int | None = None,
    shard_size: int | None = None, overwrite: bool = False, part: str | None = None, dask: str | None = None,
    quiet: bool = False, **options: Any,
) -> Outcome:  # fmt: skip
    """Make data of a world and add them to the store at `out`; as the command `s2rm-data WORLD`, to the same bytes.

    `options` are the world's own, spelled as on the command line with underscores: `balls="1-6"`, `train=400`,
    `scenario=["3s5z", "2s3z"]`. What is there already is not made again, so that an interrupted call is resumed by
    calling it again. `part="3/20"` makes the third of twenty parts, which `merge` puts together; `dask` is the address
    of a cluster that makes all of them. Returns what was made."""
    from s2rm_data.display.progress import progress_for
    from s2rm_data.making.parts import generate_part
    from s2rm_data.making.run import generate as make

    how: dict[str, Any] = {"seed": seed, "workers": workers, "shard_size": shard_size}
    asked = _Asked.of(world, out, part=part, dask=dask, overwrite=overwrite, quiet=quiet, **how, **options)
    with asked.making.open() as splits, progress_for("generating", asked.world.unit, quiet=quiet) as shown:
        shared: dict[str, Any] = {"workers": asked.workers, "progress": shown}
        if dask is not None:
            from s2rm_data.making.cluster import Job, generate_on_dask

            job = Job(asked.world.name, asked.options, str(asked.path.absolute()), asked.shard_size, plugins_loaded())
            return generate_on_dask(job, dask, **shared)
        if asked.part is not None:
            return generate_part(splits, asked.path, asked.part, shard_size=asked.shard_size, **shared)
        return make(splits, asked.path, shard_size=asked.shard_size, overwrite=overwrite, **shared)


def plan(world: str, out: PathLike | StorePath = "data.zarr", *, overwrite: bool = False, **options: Any) -> list[Plan]:
    """What `generate` would make of the same arguments, split by split, and about how large it is; writes nothing.

    >>> sum(split.nbytes for split in s2.plan("bballs", balls="1-6"))  # doctest: +SKIP
    """
    from s2rm_data.making.run import plan_splits

    asked = _Asked.of(world, out, overwrite=overwrite, **options)
    with asked.making.open() as splits:
        return plan_splits(splits, asked.path, shard_size=asked.shard_size, overwrite=overwrite, part=asked.part)


class _Asked(NamedTuple):
    """What is to be made, checked; what the world has to say of it was said."""

    world: World
    options: Mapping[str, Any]
    making: Making
    path: StorePath
    workers: int
    shard_size: ShardSize
    part: Part | None

    @classmethod
    def of(
        cls, name: str, out: PathLike | StorePath, /, *, part: str | None = None, dask: str | None = None,
        workers: int | None = None, shard_size: int | None = None, overwrite: bool = False, quiet: bool = False,
        **options: Any,
    ) -> _Asked:  # fmt: skip
        from s2rm_data.display.progress import say
        from s2rm_data.making.run import ShardSize, worker_count

        world = WORLDS.load(name)
        making = world.prepare(options)
        size = ShardSize(asked=shard_size, usual=making.shard_size)
        one = _part(part, dask, overwrite=overwrite)
        made = cls(world, options, making, store_path(out), worker_count(workers), size, one)
        for note in () if quiet else making.notes:
            say(note)
        return made


def _part(part: str | None, dask: str | None, *, overwrite: bool) -> Part | None:
    from s2rm_data.store.parts import Part

    if part is not None and dask is not None:
        raise UsageError("--part and --dask exclude each other: Dask makes all parts, and merges them")
    if overwrite and (dask is not None or part is not None):
        other = "--part" if dask is None else "--dask"
        raise UsageError(f"--overwrite does not go with {other}: parts are made beside what is there; use a new --out")
    return None if part is None else Part.parse(part)


def get(
    name: str, out: PathLike | StorePath = "data.zarr", *,
    workers: int | None = None, seal: bool = False, quiet: bool = False,
) -> Store:  # fmt: skip
    """Make a named data set, or that of a recipe in a TOML file, and compare it with its digests; as `s2rm-data get`.

    `seal` writes the digests of what is made into the recipe instead.

    >>> s2.get("paper-bballs").groups  # doctest: +SKIP
    """
    from s2rm_data.display.progress import progress_for
    from s2rm_data.making.recipe import Recipe

    recipe = Recipe.of(name)
    with progress_for("generating", WORLDS.load(recipe.world).unit, quiet=quiet) as shown:
        made = recipe.make(store_path(out), workers=workers, progress=shown)
    store = Store(store_path(out))
    (recipe.seal if seal else recipe.check)(store, made)
    return store


def merge(path: PathLike | StorePath, *, verify: bool = False, quiet: bool = False) -> Merged:
    """Commit the parts that were made in a store with `generate(..., part="I/N")`; as the command `s2rm-data merge`.

    >>> s2.merge("data.zarr").parts  # doctest: +SKIP
    20
    """
    from s2rm_data.display.progress import progress_for
    from s2rm_data.making.parts import merge as merge_parts

    with progress_for("checking", "bytes", quiet=quiet) as progress:
        return merge_parts(store_path(path), verify=verify, progress=progress)


def open(path: PathLike | StorePath, *, cache: PathLike | None = None, cache_size: str | None = None) -> Store:
    """Open a store for reading: a folder, or the address of a bucket such as `s3://mine/data.zarr`.

    With `cache`, a folder, what is read is fetched in whole shards and kept there, decoded, up to `cache_size`
    (50GB); training on such a store holds no sequences in memory."""
    return Store(path, cache=shard_cache(cache, cache_size))


def shard_cache(folder: PathLike | None, size: str | None) -> ShardCache | None:
    from s2rm_data.store import ShardCache

    if folder is None:
        if size is not None:
            raise UsageError(f"--cache-size {size} says how large a cache may be; say with --cache where it is")
        return None
    return ShardCache(Path(folder), size_nbytes(size or CACHE_SIZE))


def zarr_store(path: PathLike) -> CheckedStore:
    """A store for zarr-python and xarray that reads through the manifest: what is missing or changed is an error.

    >>> xarray.open_zarr(s2.zarr_store("data.zarr"), group="bballs/train", chunks=None)  # doctest: +SKIP
    >>> zarr.open_group(s2.zarr_store("s3://mine/data.zarr"), mode="r")  # doctest: +SKIP
    """
    from s2rm_data.store.zarr_store import CheckedStore

    return CheckedStore(path)


def dataset(
    groups: Group | Sequence[Group], *, window: int | None = None, seed: int = 0, next_views: bool = False,
    limit: int | None = None, **options: Any,
) -> WindowDataset:  # fmt: skip
    """Sequences of one or several groups as a torch Dataset for a plain `DataLoader`.

    An item is a dictionary of tensors, so that `Batch(**items)` of a collated dictionary is what models take: views
    (T, V, C, H, W), their positions and masks, the positions and masks of T x Q queries, and the targets there.
    `window` is T; None takes whole sequences, from their first frame. Windows begin anywhere, and item i is a function
    of (seed, epoch, i) alone: call `set_epoch(n)` at the beginning of each epoch to get other windows.
    `limit` takes only the first sequences of each group. Options are the world's: views and queries for the balls."""
    from s2rm_data.learning.dataset import WindowDataset

    chosen = [groups] if isinstance(groups, Group) else list(groups)
    if not chosen:
        raise UsageError("no group given; take one of a store, as in s2.open('data.zarr')['bballs/train']")
    return WindowDataset(chosen, window=window, seed=seed, next_views=next_views, limit=limit, **options)


@dataclass(frozen=True, kw_only=True)
class TrainedRun:
    """A complete run: its folder, and its summary (scores on held-out data beside those of references)."""

    path: Path
    summary: Mapping[str, Any] = field(repr=False)

    def load_model(self) -> WorldModel:
        """The model with its best weights, on the CPU."""
        return load_model(self.path / "best.safetensors")

    def __fspath__(self) -> str:
        return str(self.path)


def train(
    store: PathLike | StorePath | Store | None = None, *, world: str | None = None, model: str | None = None,
    preset: str | None = None, device: str | None = None, out: PathLike | None = None, runs: int | None = None,
    resume: bool = False, overwrite: bool = False, cache: PathLike | None = None, cache_size: str | None = None,
    log: Sequence[str] = (), quiet: bool = False, **fields: Any,
) -> TrainedRun:  # fmt: skip
    """Train a model on a store; as the command `s2rm-train`, to the same log.

    `world` chooses among those in the store (`--task`). `fields` are any of the run's or the model's config, such as
    `steps=1000`, `seed=3`, `lr=1e-3`, `hidden_size=64`, or options by which a world chooses groups, such as
    `scenario="3s5z"`. `resume=True` resumes the run in `out`, longer if `steps` or `epochs` say so. `log` names
    services to tell the run to: "wandb", "mlflow". `cache` is a folder as for `open`."""
    from s2rm_data.display.training import listener_for
    from s2rm_data.training.data import training_option_names
    from s2rm_data.training.resolve import Overrides, TrainingRequest

    options = {name: fields.pop(name) for name in training_option_names() if name in fields}
    overrides = Overrides(task=world, model=model, preset=preset, device=device, fields=fields, options=options)
    how: dict[str, Any] = {"runs": runs, "resume": resume, "overwrite": overwrite, "log": tuple(log)}
    folder, through = None if out is None else Path(out), shard_cache(cache, cache_size)
    request = TrainingRequest(store=store, overrides=overrides, out=folder, cache=through, **how)
    return train_request(request, listener_for(quiet=quiet))


def train_request(request: TrainingRequest, listener: Listener) -> TrainedRun:
    """Train the run that is meant, and tell the listener and the loggers named of it."""
    from s2rm_data.training.listener import logged
    from s2rm_data.training.protocol import Session

    session = Session(listener)
    run = request.resolve(session.listener.say)
    if session.processes.is_first:
        session.listener = logged(listener, request.log, run.options.out, vars(run.config))
    try:
        summary = session.train(run.config, run.store, run.options)
    finally:
        session.listener.stop()
    return TrainedRun(path=run.options.out, summary=summary)


def train_sweep(request: TrainingRequest, axes: Mapping[str, list[Any]], listener: Listener) -> list[dict[str, Any]]:
    """All points of a sweep one after the other, each with its summary; what cannot be trained is refused first."""
    from s2rm_data.training.sweep import Sweep, run_sweep

    if request.runs:
        raise UsageError("--runs chooses a seed by itself; leave it out, or give --seed 0-2 to train several")
    sweep, folder = Sweep(axes), request.out or Path("runs/sweep")
    requests = {n: request.at(point, folder / n) for n, point in zip(sweep.names, sweep.points, strict=True)}
    for one in requests.values():
        one.resolve(lambda text: None)

    def train_point(point: dict[str, Any], out: Path) -> Mapping[str, Any]:
        listener.say(f"run {sweep.points.index(point) + 1} of {len(sweep.points)}: {out.name}")
        return train_request(requests[out.name], listener).summary

    return run_sweep(sweep, folder, train_point, resume=request.resume)


def load_model(path: PathLike) -> WorldModel:
    """The model in a `.safetensors` file of a run, or the best one of a run folder; on the CPU, ready to predict.

    Runs that come with the package are known by name: `bballs-s2gru`, `sc2-s2gru`."""
    from s2rm_data.models.weights import load_model as load
    from s2rm_data.training.folder import no_run, run_folder

    found = run_folder(path)
    if not found.exists() and not found.suffix:
        raise no_run(found)
    return load(found / "best.safetensors" if found.is_dir() else found).eval()


def build_model(name: str, world: str, **fields: Any) -> WorldModel:
    """A new model with random weights (from torch's global generator) and the paper's sizes for the world."""
    from s2rm_data.models import build

    return build(name, world, **fields)


def evaluate(
    runs: Iterable[Any] | Mapping[str, Any], store: PathLike | StorePath | Store | None = None, *,
    world: str | None = None, quick: bool = False, out: PathLike | None = None, overwrite: bool = False,
    cache: PathLike | None = None, cache_size: str | None = None, device: str | None = None,
    threads: int | None = None, quiet: bool = False, **options: Any,
) -> Evaluation:  # fmt: skip
    """Score runs, and models of your own, as the command `s2rm-eval` does, beside references that need no model.

    `runs` are run folders, what `train` returned, or any callable that maps a `Batch` to predictions: the world's named
    tuple, or one tensor (B, T, Q, channels, H, W) of logits. Give callables by name, as in `{"my GRU": model}`, and
    name their `world` where the store has several. Without `store`, it is the one the runs were trained on. `quick`
    looks at few sequences. With `out`, the folder with tables, figures and report.html is written, too. `options` are
    those of the command, such as `sequences=100`."""
    import torch

    from s2rm_data.core.machine import available_threads
    from s2rm_data.display.progress import progress_for, say
    from s2rm_data.evaluation.candidates import as_runs
    from s2rm_data.evaluation.evaluate import EvalConfig, check_folder, write_artefacts
    from s2rm_data.evaluation.evaluate import evaluate as score
    from s2rm_data.evaluation.runs import store_of
    from s2rm_data.models.device import choose_device

    config, on = EvalConfig.of(quick=quick, **options), choose_device(device)
    torch.set_num_threads(threads or available_threads())
    if isinstance(runs, str | os.PathLike):
        runs = [runs]
    if store is None:
        runs = as_runs(runs, on)
        store = store_of(runs)
    opened = store if isinstance(store, Store) else Store(store, cache=shard_cache(cache, cache_size))
    candidates = _candidates(runs, opened, world)
    if out is not None:
        check_folder(Path(out), overwrite=overwrite)
    with progress_for("evaluating", "sequences", quiet=quiet) as shown:
        made = score(candidates, opened, config, device=on, progress=shown)
    if out is not None:
        if not quiet:
            say("drawing figures")
        write_artefacts(made, Path(out))
    return made


def _candidates(runs: Iterable[Any] | Mapping[str, Any], store: Store, world: str | None) -> list[Any]:
    """Callables become models with a name and a world; all else is left to evaluation."""
    from s2rm_data.evaluation.candidates import OwnModel

    there = sorted({path.partition("/")[0] for path in store.groups})
    found = []
    for name, run in runs.items() if isinstance(runs, Mapping) else ((type(run).__name__, run) for run in runs):
        if not callable(run) or isinstance(run, OwnModel):
            found.append(run)
        elif world or len(there) == 1:
            found.append(OwnModel(name=name, world=world or there[0], predict=run))
        else:
            worlds = ", ".join(there) or "no world"
            raise UsageError(f"{store.path} has data of {worlds}; say with world= what to score on")
    return found
