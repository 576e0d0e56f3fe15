"""Named data sets: a recipe in a TOML file (world, options, seed) and the digests of what it makes.

    s2rm-data get paper-bballs        one that comes with a world, as generators/W/recipes/NAME.toml
    s2rm-data get my.toml             one's own
    s2rm-data get my.toml --seal      write the digests of what it makes into the file

Whoever makes it again has the same data, or is told what differs."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import zstandard

import s2rm_data
from s2rm_data.core.addresses import StorePath
from s2rm_data.core.check import Misfit, expect, table
from s2rm_data.core.errors import ConflictError, UsageError, did_you_mean
from s2rm_data.core.progress import Progress
from s2rm_data.core.read import read_regular
from s2rm_data.core.registry import WORLDS
from s2rm_data.core.write import write_whole
from s2rm_data.making.run import Outcome, ShardSize, generate, worker_count
from s2rm_data.store import Store

MOST_BYTES = 1 << 20
SEAL = "\n# Written by `s2rm-data get FILE --seal`.\n"
_FIELDS = ("title", "world", "seed", "options", "made_by", "digests")


def recipes() -> dict[str, Path]:
    """Those that come with the package's worlds, by name."""
    found = (Path(__file__).parents[1] / "generators").glob("*/recipes/*.toml")
    return {path.stem: path for path in sorted(found)}


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """`made_by`: versions that decide bytes, as they were when `digests` (of content, by group) were written."""

    path: Path
    world: str
    seed: int = 0
    title: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    made_by: Mapping[str, Any] = field(default_factory=dict)
    digests: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, name: str) -> Recipe:
        """A recipe by its name, or in a file."""
        path = Path(name) if name.endswith(".toml") else recipes().get(name)
        if path is None:
            then = f"there are {', '.join(recipes())}; a recipe of your own is a file that ends in .toml"
            raise UsageError(f"no data set {name!r}{did_you_mean(name, recipes(), then)}")
        try:
            document = tomllib.loads(read_regular(path, MOST_BYTES).decode())
            given = table("the recipe", document, len(_FIELDS), _FIELDS.__contains__)
            expect(type(given.get("seed", 0)) is int, "its seed must be a whole number")
            expect(isinstance(given.get("world"), str), 'it must name a world, as in world = "bballs"')
            for part in ("options", "made_by", "digests"):
                expect(isinstance(given.get(part, {}), dict), f"its {part} must be a table, as in [{part}]")
            expect("seed" not in given.get("options", {}), "its seed is no option: write it above [options]")
            expect(all(isinstance(d, str) for d in given.get("digests", {}).values()), "its digests must be text")
        except OSError as error:
            raise UsageError(f"{path} cannot be read: {error.strerror}") from None
        except Misfit as problem:
            raise UsageError(f"{path} is no recipe: {problem}") from None
        except (ValueError, RecursionError) as error:
            raise UsageError(f"{path} is not a TOML file: {error}") from None
        return cls(path=path, **given)

    def make(self, out: StorePath, *, workers: int | None = None, progress: Progress | None = None) -> Outcome:
        """What is missing of it, in the store at `out`."""
        making = WORLDS.load(self.world).prepare({**self.options, "seed": self.seed})
        size = ShardSize(usual=making.shard_size)
        with making.open() as splits:
            return generate(splits, out, workers=worker_count(workers), shard_size=size, progress=progress)

    def check(self, store: Store, made: Outcome) -> None:
        if not self.digests:
            return
        found = {path: store[path].content_digest() for path in made.groups}
        names = sorted(found.keys() | self.digests.keys())
        if wrong := [path for path in names if found.get(path) != self.digests.get(path)]:
            here_there = (f"{path}: {_short(found, path)} here, {_short(self.digests, path)} there" for path in wrong)
            differ = f"{len(wrong)} of {len(names)} groups differ ({'; '.join(here_there)})"
            now = self._versions(store, made)
            changed = ((name, now.get(name), was) for name, was in self.made_by.items() if was != now.get(name))
            why = ", ".join(f"{name} is {here} here, {there} there" for name, here, there in changed)
            why = why or "the versions that decide bytes are the same"
            raise ConflictError(f"{store.path} is not the data set of {self.path.name}: {differ}; {why}")

    def _versions(self, store: Store, made: Outcome) -> dict[str, Any]:
        settings = store[made.groups[0]].settings if made.groups else {}
        return {
            "generator_version": settings.get("generator_version"),
            "zstd": ".".join(map(str, zstandard.ZSTD_VERSION)),
            "package": s2rm_data.__version__,
        }

    def seal(self, store: Store, made: Outcome) -> None:
        """Write the digests of what was made into the file, in place of those that it has."""
        kept = read_regular(self.path, MOST_BYTES).decode().replace("\r\n", "\n").partition(SEAL)[0].rstrip("\n")
        if own := {"made_by", "digests"} & tomllib.loads(kept).keys():
            raise UsageError(f"{self.path} has a table [{min(own)}] of its own; remove it, and seal the file again")
        lines = ["[made_by]", *(f"{name} = {json.dumps(value)}" for name, value in self._versions(store, made).items())]
        lines += ["", "[digests]"]
        lines += [f"{json.dumps(path)} = {json.dumps(store[path].content_digest())}" for path in sorted(made.groups)]
        write_whole(self.path, [f"{kept}\n{SEAL}{chr(10).join(lines)}\n".encode()])


def _short(digests: Mapping[str, str], path: str) -> str:
    return f"{digests[path][:12]}..." if path in digests else "missing"
