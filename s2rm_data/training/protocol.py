"""Whole commands: one run, or the paper's protocol of several seeds and the fine-tuning of the best of them.

runs/NAME/                  one run; with several seeds, the fine-tuning of the best
runs/NAME/seeds/<seed>/     the runs it was chosen from
runs/NAME/protocol.json     how many there are to be; in the end which failed and which was the best"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch

from s2rm_data.core.check import from_json, to_json
from s2rm_data.core.errors import ConflictError, DamagedStoreError, S2RMError, UsageError
from s2rm_data.core.registry import CODECS, MODELS, PRESETS, WORLDS, plugins_used
from s2rm_data.core.signals import EndsWhenStuck
from s2rm_data.learning import TrainingBatches
from s2rm_data.models import config_for
from s2rm_data.store import Store
from s2rm_data.training.config import MACHINE_FIELDS, TrainConfig
from s2rm_data.training.cost import check_memory
from s2rm_data.training.data import RunData
from s2rm_data.training.folder import REPLACED, RunFolder, read_run
from s2rm_data.training.listener import Listener
from s2rm_data.training.machine import environment, products, set_up
from s2rm_data.training.processes import Processes
from s2rm_data.training.schedule import BUDGET, DivergedError, budget_of, check_longer, earlier_configs, replace_budget
from s2rm_data.training.trainer import Trainer

MOST_RUNS = 1000  # seeds of one command


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What the user asked for. `given` are the config fields that were named, which a resumed run must agree with.
    `groups` are those of the store that were chosen, None for all of the world's; a resumed run has its own."""

    out: Path
    runs: int = 1
    resume: bool = False
    overwrite: bool = False
    given: frozenset[str] = frozenset()
    groups: tuple[str, ...] | None = None


def saved_run(folder: RunFolder) -> tuple[TrainConfig, dict[str, Any]]:
    """Config of the run in a folder, and all that was saved beside it."""
    saved = read_run(folder.path)
    try:
        _ = saved["store"]["path"], saved["store"]["groups"]
        return from_json(TrainConfig, saved["config"]), saved
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"{folder.config} is not the config of a run of s2rm-train ({error!r})") from None


def check_agreement(config: TrainConfig, saved: TrainConfig, given: frozenset[str], where: Path) -> None:
    """Fields that were named must be as they were saved; those of the machine may change."""
    asked = {**to_json(config), **config.model_fields}
    before = {**to_json(saved), **saved.model_fields}
    for name in sorted(given - set(MACHINE_FIELDS)):
        if asked.get(name) != before.get(name):
            raise ConflictError(
                f"{where} was started with {name} = {before.get(name)!r}, not {asked.get(name)!r}; resume it without "
                "naming that option, or start another run with another --out"
            )


def first_folder(out: Path) -> RunFolder:
    """Where the config of a command is found again: in its first seed's run, or in its only one."""
    seeds = out / "seeds"
    found = [p for p in seeds.iterdir() if p.name.isdigit() and RunFolder(p).holds_run] if seeds.is_dir() else []
    numbers = sorted(int(p.name) for p in found)
    return RunFolder(seeds / str(numbers[0])) if numbers else RunFolder(out)


def saved_runs(out: Path) -> int:
    """How many seeds the command in a folder was to train."""
    folder = RunFolder(out)
    if not folder.protocol.exists():
        return 1
    protocol = folder.read_json(folder.protocol)
    runs = protocol.get("runs") if isinstance(protocol, dict) else None
    if type(runs) is not int or not 1 <= runs <= MOST_RUNS:
        raise DamagedStoreError(f"{folder.protocol} is damaged: it does not say how many runs there are to be")
    return runs


class Held(NamedTuple):
    """The run that a folder already holds; `earlier` are its configs under earlier budgets."""

    folder: RunFolder
    config: TrainConfig
    document: dict[str, Any]
    earlier: list[TrainConfig]

    @classmethod
    def of(cls, folder: RunFolder) -> Held:
        config, document = saved_run(folder)
        return cls(folder, config, document, earlier_configs(config, document, folder))


class Session:
    """One process's part in a command: machine set up once, then one or several runs."""

    def __init__(self, listener: Listener | None = None) -> None:
        self.processes = Processes()
        self.listener = (listener or Listener()) if self.processes.is_first else Listener()

    def train(self, config: TrainConfig, store: Store, options: RunOptions) -> dict[str, Any]:
        device = torch.device(config.device)
        set_up(device, config.threads)
        self.listener.say(f"float32 products: {products()}")
        with contextlib.nullcontext() if self.processes.count == 1 else EndsWhenStuck():
            self.processes.connect(device)
            try:
                one = options.runs == 1
                return self._one(config, store, options, longer=True) if one else self._several(config, store, options)
            finally:
                self.processes.disconnect()

    def _one(
        self, config: TrainConfig, store: Store, options: RunOptions, *,
        initial: Path | None = None, longer: bool = False,
    ) -> dict[str, Any]:  # fmt: skip
        """One run; with `longer`, a budget that was named may be larger than the one in the folder."""
        folder = RunFolder(options.out)
        try:
            self._raise_together(lambda: folder.open(resume=options.resume, overwrite=options.overwrite))
            self._check_shared(folder)
            held = Held.of(folder) if folder.holds_run and not options.overwrite else None
            self.processes.wait()  # until all have looked: the first one may be going to write
            wanted = self._agreed(config, held, options, longer=longer)
            if held and budget_of(wanted) == budget_of(held.config) and folder.is_complete:
                self.listener.say(f"{folder.path} is complete already")
                return dict(folder.read_json(folder.summary))
            self.listener.say(f"reading the sequences of {store.path}")  # of 20,000, some seconds
            # groups that have come into the store since the run was started are left out
            data = RunData(store, wanted, tuple(held.document["store"]["groups"]) if held else options.groups)
            if held is None and wanted.shuffle_shards is None:
                wanted = data.config = dataclasses.replace(wanted, shuffle_shards=data.shuffle_shards())
            check_memory(wanted, data, self.processes)
            if held:
                data.check_identity(held.document["store"])
                self._lengthen(held, wanted, data)
            how: dict[str, Any] = {"listener": self.listener, "initial": initial}
            trainer = Trainer(wanted, data, folder, self.processes, **how, earlier=held.earlier if held else [])
            if not held:
                self._introduce(wanted, data, folder, overwrite=options.overwrite)
            summary = trainer.run()
            if self.processes.is_first:
                folder.forget_replaced()
            return summary
        except BaseException:
            if self.processes.is_first and folder.is_open:
                folder.restore()
            raise
        finally:
            folder.close()

    def _check_shared(self, folder: RunFolder) -> None:
        """All processes read what the first one writes: on several machines the folder must be shared by them."""
        self.processes.wait()
        missing = torch.tensor(int(not folder.path.is_dir()))
        if int(self.processes.total(missing)):
            raise UsageError(
                f"{folder.path} is not visible to every process; with several machines, --out and --store must be on a "
                "file system that all of them share"
            )

    def _agreed(self, config: TrainConfig, held: Held | None, options: RunOptions, *, longer: bool) -> TrainConfig:
        """The config as the folder has it, if it has one, on this machine's terms."""
        if held is None:
            return config
        saved, budget = held.config, frozenset(BUDGET if longer else ())
        check_agreement(config, saved, options.given - budget, held.folder.path)
        moved = torch.device(saved.device).type != torch.device(config.device).type
        fields = MACHINE_FIELDS if moved else [name for name in MACHINE_FIELDS if name in {*options.given, "device"}]
        wanted = dataclasses.replace(saved, **{name: getattr(config, name) for name in fields})
        return dataclasses.replace(wanted, **budget_of(config)) if options.given & budget else wanted

    def _lengthen(self, held: Held, wanted: TrainConfig, data: RunData) -> None:
        """Write the new budget down, if there is one."""
        if budget_of(wanted) == budget_of(held.config):
            return
        batches = TrainingBatches(data.train, batch_size=wanted.batch_size, seed=wanted.seed)
        check_longer(held.config, wanted, batches.steps_per_epoch, held.folder)
        self.processes.wait()  # until everybody has read the old one
        if self.processes.is_first:
            replace_budget(held.folder, held.document, held.config, wanted)
        before, after = (config.total_steps(batches.steps_per_epoch) for config in (held.config, wanted))
        rate = "; the rate follows the cosine of the new budget" if wanted.schedule == "cosine" else ""
        self.listener.say(f"budget raised from {before:,} to {after:,} steps{rate}")
        held.earlier.append(held.config)
        self.processes.wait()

    def _introduce(self, config: TrainConfig, data: RunData, folder: RunFolder, *, overwrite: bool) -> None:
        """Write down what the run is; all that can be checked before has been."""
        if self.processes.is_first:
            if overwrite:
                self._set_aside(folder)
            codec = config_for(config.model, config.task, **config.model_fields).codec
            used = ((MODELS, config.model), (WORLDS, config.task), (CODECS, codec), (PRESETS, config.preset))
            made_of = environment(torch.device(config.device)) | {"processes": self.processes.count}
            if plugins := plugins_used(*used):
                made_of["plugins"] = plugins
            document = {"config": to_json(config), "store": data.identity(), "model_fields": data.model_fields(config)}
            folder.begin(document)
            folder.write_json(folder.environment, made_of)
        self.processes.wait()

    def _set_aside(self, folder: RunFolder) -> None:
        if folder.holds_run or folder.protocol.exists():
            self.listener.say(f"the run that is there is kept in {folder.path / REPLACED} until this one is complete")
        folder.set_aside()

    def _several(self, config: TrainConfig, store: Store, options: RunOptions) -> dict[str, Any]:
        """Several seeds, then the best of them again. A seed that diverges is replaced by the next one."""
        self._raise_together(lambda: self._begin_protocol(options))
        self.processes.wait()
        try:
            return self._seeds(config, store, dataclasses.replace(options, runs=1, resume=True, overwrite=False))
        except BaseException:
            if self.processes.is_first and options.overwrite:
                with contextlib.suppress(S2RMError), RunFolder(options.out).locked() as folder:
                    folder.restore()
            raise

    def _seeds(self, config: TrainConfig, store: Store, options: RunOptions) -> dict[str, Any]:
        # All folders of one command agree in every field but those that the protocol itself sets.
        given = frozenset({*to_json(config), *config.model_fields}) - {"seed"}
        done: dict[int, dict[str, Any]] = {}
        failed: dict[int, str] = {}
        seed, runs = config.seed, saved_runs(options.out)
        while len(done) < runs:
            if len(failed) > runs:
                raise DivergedError(f"{len(failed)} of {len(failed) + len(done)} seeds diverged: {failed[seed - 1]}")
            out = options.out / "seeds" / str(seed)
            self.listener.say(f"seed {seed}, {len(done) + 1} of {runs}")
            try:
                own = dataclasses.replace(options, out=out, given=given)
                done[seed] = self._one(dataclasses.replace(config, seed=seed), store, own)
            except DivergedError as error:
                self.listener.say(f"seed {seed} failed: {error}")
                failed[seed] = str(error)
            seed += 1
        best = min(done, key=lambda s: done[s]["best_validation_loss"])
        self.listener.say(f"seed {best} has the lowest validation loss; it is fine-tuned")
        tuned = dataclasses.replace(config, seed=best, lr=config.fine_tuning_lr or config.lr)
        own = dataclasses.replace(options, given=given | {"seed"})
        summary = self._one(tuned, store, own, initial=options.out / "seeds" / str(best) / "best.safetensors")
        if self.processes.is_first:
            losses = {str(s): found["best_validation_loss"] for s, found in done.items()}
            outcome = {"runs": runs, "best_seed": best, "validation_loss": losses, "failed": failed}
            RunFolder(options.out).write_json(RunFolder(options.out).protocol, outcome)
        return {**summary, "best_seed": best}

    def _begin_protocol(self, options: RunOptions) -> None:
        """Clear the folder or refuse it, and write down how many runs there are to be."""
        folder = RunFolder(options.out)
        if folder.protocol.exists() and not options.overwrite:
            if not options.resume and first_folder(options.out).holds_run:
                raise ConflictError(
                    f"{options.out} already holds runs; add --resume to continue them, --overwrite to start them "
                    "again, or give --out another name"
                )
            if saved_runs(options.out) != options.runs:
                raise ConflictError(
                    f"{options.out} was started with --runs {saved_runs(options.out)}, not {options.runs}; "
                    "resume it without --runs, or start another one with another --out"
                )
        try:
            folder.open(resume=options.resume, overwrite=options.overwrite)
            if options.overwrite:
                self._set_aside(folder)
            if not folder.protocol.exists():
                if folder.holds_run:
                    raise ConflictError(f"{options.out} holds a single run; give --out another name, or --overwrite")
                folder.begin(None)
                folder.write_json(folder.protocol, {"runs": options.runs})
        finally:
            folder.close()

    def _raise_together(self, work: Callable[[], None]) -> None:
        """The first process does it; if that fails, all of them do."""
        error: S2RMError | None = None
        if self.processes.is_first:
            try:
                work()
            except S2RMError as caught:
                error = caught
        if int(self.processes.total(torch.tensor(int(error is not None)))):
            raise error or S2RMError("the first process could not open the run folder")
