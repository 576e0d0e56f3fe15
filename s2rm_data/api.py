"""What the commands do, as functions: the public names of the package (`import s2rm_data as s2`)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from s2rm_data.addresses import store_path
from s2rm_data.errors import UsageError
from s2rm_data.registry import WORLDS
from s2rm_data.store import Group, Store

if TYPE_CHECKING:
    from s2rm_data.evaluation.evaluate import Evaluation
    from s2rm_data.loading.dataset import WindowDataset
    from s2rm_data.making import Merged, Outcome
    from s2rm_data.models.world_model import WorldModel
    from s2rm_data.store.zarr_store import CheckedStore

PathLike = str | os.PathLike[str]


def generate(
    world: str,
    out: PathLike = "data.zarr",
    *,
    seed: int = 0,
    workers: int | None = None,
    shard_size: int | None = None,
    overwrite: bool = False,
    part: str | None = None,
    quiet: bool = False,
    **options: Any,
) -> Outcome:
    """Make data of a world and add them to the store at `out`; as the command `s2rm-data WORLD`, to the same bytes.

    `options` are the world's own, spelled as on the command line with underscores: `balls="1-6"`, `train=400`,
    `scenario=["3s5z", "2s3z"]`. What is there already is not made again, so that an interrupted call is resumed by
    calling it again. `part="3/20"` makes the third of twenty parts, which `merge` puts together. Returns what was made.

    >>> import s2rm_data as s2
    >>> s2.generate("bballs", out="data.zarr", balls=3, train=100, val=10, test=10)  # doctest: +SKIP
    """
    from s2rm_data.cli.options import worker_count
    from s2rm_data.cli.progress import progress_for
    from s2rm_data.making import ShardSize, generate_part
    from s2rm_data.making import generate as make
    from s2rm_data.store.layout import DEFAULT_SHARD_SIZE
    from s2rm_data.store.parts import Part

    chosen = WORLDS.load(world)
    making = chosen.prepare({**options, "seed": seed})
    size = ShardSize(asked=shard_size, usual=making.shard_size or DEFAULT_SHARD_SIZE)
    if part is not None and overwrite:
        raise UsageError("overwrite does not go with part: parts are made beside what is committed; use a new store")
    with making.open() as splits, progress_for("generating", chosen.unit, quiet=quiet) as progress:
        shared: dict[str, Any] = {"workers": worker_count(workers), "shard_size": size, "progress": progress}
        if part is not None:
            return generate_part(splits, store_path(out), Part.parse(part), **shared)
        return make(splits, store_path(out), overwrite=overwrite, **shared)


def merge(path: PathLike, *, verify: bool = False, quiet: bool = False) -> Merged:
    """Commit the parts that were made in a store with `generate(..., part="I/N")`; as the command `s2rm-data merge`.

    >>> s2.merge("data.zarr").parts  # doctest: +SKIP
    20
    """
    from s2rm_data.cli.progress import progress_for
    from s2rm_data.making import merge as merge_parts

    with progress_for("checking", "bytes", quiet=quiet) as progress:
        return merge_parts(store_path(path), verify=verify, progress=progress)


def open(path: PathLike, *, cache: PathLike | None = None, cache_size: str = "50GB") -> Store:
    """Open a store for reading: a folder, or the address of a bucket such as `s3://mine/data.zarr`.

    With `cache`, a folder, what is read is fetched in whole shards and kept there, decoded, up to `cache_size`;
    training on such a store holds no sequences in memory.

    >>> store = s2.open("data.zarr")  # doctest: +SKIP
    >>> store["bballs/train"]["frames"][7].shape  # doctest: +SKIP
    (100, 48, 48)
    """
    from s2rm_data.cli.options import shard_cache

    return Store(path, cache=None if cache is None else shard_cache(Path(cache), cache_size))


def zarr_store(path: PathLike) -> CheckedStore:
    """A store for zarr-python and xarray that reads through the manifest: what is missing or changed is an error.

    >>> xarray.open_zarr(s2.zarr_store("data.zarr"), group="bballs/train", chunks=None)  # doctest: +SKIP
    >>> zarr.open_group(s2.zarr_store("s3://mine/data.zarr"), mode="r")  # doctest: +SKIP
    """
    from s2rm_data.store.zarr_store import CheckedStore

    return CheckedStore(path)


def dataset(
    groups: Group | Sequence[Group],
    *,
    window: int | None = None,
    seed: int = 0,
    next_views: bool = False,
    limit: int | None = None,
    **options: Any,
) -> WindowDataset:
    """Sequences of one or several groups as a torch Dataset for a plain `DataLoader`.

    An item is a dictionary of tensors, so that `Batch(**items)` of a collated dictionary is what models take: views
    (T, V, C, H, W), their positions and masks, the positions and masks of T x Q queries, and the targets there.
    `window` is T; None takes whole sequences, from their first frame. Windows begin anywhere, and item i is a function
    of (seed, epoch, i) alone: call `set_epoch(n)` at the beginning of each epoch to get other windows.
    `limit` takes only the first sequences of each group. Options are the world's: views and queries for the balls.

    >>> data = s2.dataset(store["bballs/train"], window=20)  # doctest: +SKIP
    >>> loader = torch.utils.data.DataLoader(data, batch_size=16, shuffle=True, num_workers=2)  # doctest: +SKIP
    """
    from s2rm_data.loading.dataset import WindowDataset

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
    store: PathLike | Store | None = None,
    *,
    world: str | None = None,
    model: str | None = None,
    preset: str | None = None,
    device: str | None = None,
    out: PathLike | None = None,
    runs: int | None = None,
    resume: bool = False,
    overwrite: bool = False,
    log: Sequence[str] = (),
    quiet: bool = False,
    **fields: Any,
) -> TrainedRun:
    """Train a model on a store; as the command `s2rm-train`, to the same log.

    `world` chooses among those in the store (`--task`). `fields` are any of the run's or the model's config, such as
    `steps=1000`, `seed=3`, `lr=1e-3`, `hidden_size=64`, or options by which a world chooses groups, such as
    `scenario="3s5z"`. `resume=True` resumes the run in `out`, longer if `steps` or `epochs` say so. `log` names
    services to tell the run to: "wandb", "mlflow".

    >>> run = s2.train("data.zarr", model="s2gru", preset="smoke", out="runs/first")  # doctest: +SKIP
    >>> run.summary["held_out"]["val"]["f1"]  # doctest: +SKIP
    """
    from s2rm_data.cli.train_display import listener_for
    from s2rm_data.training.data import training_option_names
    from s2rm_data.training.protocol import Session
    from s2rm_data.training.resolve import Overrides, resolve_run
    from s2rm_data.training.trackers import check_trackers, tracked

    check_trackers(log)
    options = {name: fields.pop(name) for name in training_option_names() if name in fields}
    overrides = Overrides(task=world, model=model, preset=preset, device=device, fields=fields, options=options)
    listener = listener_for(quiet=quiet)
    session = Session(listener)
    run = resolve_run(
        store,
        overrides,
        out=None if out is None else Path(out),
        runs=runs,
        resume=resume,
        overwrite=overwrite,
        say=session.listener.say,
    )
    if session.processes.is_first:
        session.listener = tracked(listener, log, run.options.out, vars(run.config))
    try:
        summary = session.train(run.config, run.store, run.options)
    finally:
        session.listener.stop()
    return TrainedRun(path=run.options.out, summary=summary)


def load_model(path: PathLike) -> WorldModel:
    """The model in a `.safetensors` file of a run, or the best one of a run folder; on the CPU, ready to predict.

    >>> model = s2.load_model("runs/first/best.safetensors")  # doctest: +SKIP
    >>> prediction = model(batch)  # doctest: +SKIP
    """
    from s2rm_data.models.weights import load_model as load

    path = Path(path)
    return load(path / "best.safetensors" if path.is_dir() else path).eval()


def build_model(name: str, world: str, **fields: Any) -> WorldModel:
    """A new model with random weights (from torch's global generator) and the paper's sizes for the world.

    >>> model = s2.build_model("s2gru", world="bballs", hidden_size=64)  # doctest: +SKIP
    """
    from s2rm_data.models import build

    return build(name, world, **fields)


def evaluate(
    runs: Iterable[Any] | Mapping[str, Any],
    store: PathLike | Store,
    *,
    world: str | None = None,
    quick: bool = False,
    out: PathLike | None = None,
    overwrite: bool = False,
    device: str | None = None,
    quiet: bool = False,
    **options: Any,
) -> Evaluation:
    """Score runs, and models of your own, as the command `s2rm-eval` does, beside references that need no model.

    `runs` are run folders, what `train` returned, or any callable that maps a `Batch` to predictions: the world's named
    tuple, or one tensor (B, T, Q, channels, H, W) of logits. Give callables by name, as in `{"my GRU": model}`, and
    name their `world` where the store has several. `quick` looks at few sequences. With `out`, the folder with tables,
    figures and report.html is written, too. `options` are those of the command, such as `sequences=100`.

    >>> s2.evaluate(["runs/first"], "data.zarr", quick=True).tables["one_step"]  # doctest: +SKIP
    >>> s2.evaluate({"my GRU": model}, store, world="bballs").tables["one_step"]  # doctest: +SKIP
    """
    from s2rm_data.cli.progress import progress_for
    from s2rm_data.evaluation.artefacts import check_folder, write_artefacts
    from s2rm_data.evaluation.evaluate import EvalConfig
    from s2rm_data.evaluation.evaluate import evaluate as score
    from s2rm_data.models.device import choose_device

    opened = store if isinstance(store, Store) else Store(store)
    if out is not None:
        check_folder(Path(out), overwrite=overwrite)
    with progress_for("evaluating", "sequences", quiet=quiet) as progress:
        made = score(
            _entrants(runs, opened, world),
            opened,
            EvalConfig.of(quick=quick, **options),
            device=choose_device(device),
            progress=progress,
        )
    if out is not None:
        write_artefacts(made, Path(out))
    return made


def _entrants(runs: Iterable[Any] | Mapping[str, Any], store: Store, world: str | None) -> list[Any]:
    """Callables become models with a name and a world; all else is left to evaluation."""
    from s2rm_data.evaluation.entrants import OwnModel

    if isinstance(runs, str | os.PathLike):
        runs = [runs]
    named = runs.items() if isinstance(runs, Mapping) else ((type(run).__name__, run) for run in runs)
    return [
        OwnModel(name=name, world=world or _only_world(store), predict=run)
        if callable(run) and not isinstance(run, OwnModel)
        else run
        for name, run in named
    ]


def _only_world(store: Store) -> str:
    there = sorted({path.partition("/")[0] for path in store.groups})
    if len(there) != 1:
        raise UsageError(f"{store.path} has data of {', '.join(there) or 'no world'}; say with world= what to score on")
    return there[0]
