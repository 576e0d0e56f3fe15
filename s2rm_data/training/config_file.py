"""Training commands in a file: `s2rm-train --config FILE.toml`, and `--save-config` to write one.

    store = "data.zarr"
    model = "s2gru"
    preset = "laptop"
    steps = 4000
    hidden_size = 64                # any config field of the run or of the model

    [sweep]
    lr = [1e-3, 3e-3]
    seed = [0, 1, 2]

What is named on the command line goes before what the file says."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from s2rm_data.core.addresses import Url
from s2rm_data.core.check import to_json
from s2rm_data.core.errors import UsageError
from s2rm_data.core.read import read_regular
from s2rm_data.core.write import write_whole
from s2rm_data.training.config import MACHINE_FIELDS, TrainConfig

MOST_BYTES = 1 << 20
OPTIONS = ("store", "task", "model", "preset", "device", "out", "runs", "log")  # of the command, as spelled there
NOTHING = "null"  # TOML has no value for None


@dataclass(frozen=True, kw_only=True)
class Command:
    """What a user asked for: `options` of the command, config `fields` by name, and the values of a `sweep`."""

    options: dict[str, Any] = field(default_factory=dict)
    fields: dict[str, Any] = field(default_factory=dict)
    sweep: dict[str, list[Any]] = field(default_factory=dict)

    def over(self, other: Command) -> Command:
        """Both; where they differ, this one. A field that either sweeps or sets replaces the other's."""
        named = {*self.fields, *self.sweep}
        budget = {"steps", "epochs"} if named & {"steps", "epochs"} else set()
        hidden = named | budget
        kept = {name: value for name, value in other.fields.items() if name not in hidden}
        swept = {name: values for name, values in other.sweep.items() if name not in hidden}
        return Command(options=other.options | self.options, fields=kept | self.fields, sweep={**swept, **self.sweep})


def read_command(path: Path) -> Command:
    try:
        document = tomllib.loads(read_regular(path, MOST_BYTES).decode())
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not a TOML file: {error}") from None
    sweep = document.pop("sweep", {})
    if not isinstance(sweep, dict) or not all(isinstance(values, list) and values for values in sweep.values()):
        raise UsageError(f"[sweep] of {path} must give a list of values for each field, as in lr = [1e-3, 3e-3]")
    values = {name: None if value == NOTHING else value for name, value in document.items()}
    options = {name: values.pop(name) for name in OPTIONS if name in values}
    for name, value in options.items():
        kind = "whole number" if name == "runs" else "text"
        right = type(value) is int if name == "runs" else isinstance(value, str | list if name == "log" else str)
        if not right:
            raise UsageError(f"{name} in {path} is {value!r}; it must be a {kind}")
    if isinstance(options.get("log"), str):
        options["log"] = [options["log"]]
    return Command(options=options, fields=values, sweep=sweep)


def write_command(path: Path, config: TrainConfig, preset: TrainConfig, command: Command) -> None:
    """A file that gives `config` again: the names of task, model and preset, and what differs from the preset's.
    What belongs to the machine is kept only where the user named it."""
    own, usual = ({**to_json(c), **to_json(c)["model_fields"]} for c in (config, preset))
    skipped = {"task", "model", "preset", "model_fields", *MACHINE_FIELDS} - command.fields.keys()
    differing = {name: value for name, value in own.items() if name not in skipped and value != usual.get(name)}
    if differing.get("steps", 0) is None:
        del differing["steps"]
        differing["epochs"] = config.epochs
    named = {**command.options, "task": config.task, "model": config.model, "preset": config.preset}
    lines = [f"{name} = {_toml(value)}" for name, value in {**named, **differing}.items()]
    if command.sweep:
        lines += ["", "[sweep]", *(f"{name} = {_toml(values)}" for name, values in command.sweep.items())]
    text = "\n".join(lines) + "\n"
    try:
        tomllib.loads(text)
    except ValueError as error:
        raise UsageError(
            f"this command cannot be saved as TOML ({error}); a name in it may not be text (UTF-8), which it must be"
        ) from None
    write_whole(path, [text.encode()])


def _toml(value: Any) -> str:
    """JSON, which for texts, numbers, truth values and lists of them is TOML."""
    return json.dumps(NOTHING if value is None else str(value) if isinstance(value, Path | Url) else value)
