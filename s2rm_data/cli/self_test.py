"""`s2rm-train --self-test`: what works here, line by line, and a verdict."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from s2rm_data.errors import S2RMError
from s2rm_data.registry import WORLDS

if TYPE_CHECKING:
    from s2rm_data.store import Store

SIZES = {"train": 8, "val": 2, "test": 0}  # of the store that is made, as far as the world has these options


def run_self_test(options: dict[str, Any]) -> None:
    """On the store given, or on a small one of the world's; fails if a check does."""
    from s2rm_data.store import Store
    from s2rm_data.training.self_test import FAILED, SKIPPED, as_json, bench_for, self_test

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        task = options["task"] or WORLDS.names()[0]
        store = Store(options["store"]) if options["store"] else _made(task, folder)
        chosen = options["task"] if options["store"] else task
        checks = []
        for check in self_test(bench_for(store, folder, chosen, options["model"], options["device"])):
            checks.append(check)
            if not options["as_json"] and not options["quiet"]:
                click.echo(f"{check.verdict:<8}{check.name:<18}{check.detail}")
    if options["as_json"]:
        click.echo(as_json(checks))
    failed = [check.name for check in checks if check.verdict == FAILED]
    skipped = [check.name for check in checks if check.verdict == SKIPPED]
    if failed:
        raise S2RMError(f"self-test: {', '.join(failed)} failed; see docs/gpu.md")
    if not options["quiet"] and not options["as_json"]:
        rest = f"; not checked here: {', '.join(skipped)}" if skipped else ""
        click.echo(f"verdict: {len(checks) - len(skipped)} of {len(checks)} checks hold, none failed{rest}")


def _made(task: str, folder: Path) -> Store:
    from s2rm_data.making import generate
    from s2rm_data.store import Store

    world = WORLDS.load(task)
    known = {option.name for option in world.options}
    making = world.prepare({name: value for name, value in SIZES.items() if name in known})
    with making.open() as splits:
        generate(list(splits), folder / "data.zarr")
    return Store(folder / "data.zarr")
