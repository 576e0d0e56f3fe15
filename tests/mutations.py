"""Fifty and some mistakes that somebody could make: does a test notice each?

    python tests/mutations.py --seed 24            # ten of them, drawn
    python tests/mutations.py --only store/reader  # those of the files so named
    python tests/mutations.py --list

Each is made in a copy of the checkout, where the tests run that mirror the changed file, and then, if those pass, the
rest of `make test`. A mistake that no test notices is a claim that nobody makes. The list is kept up to date: a text
that is not found exactly once is refused before anything is run.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "s2rm_data"


class Mutation(NamedTuple):
    file: str  # below the package
    text: str
    instead: str
    breaks: str


MUTATIONS = [
    # core
    Mutation(
        "core/write.py", "        os.fsync(file.fileno())\n", "", "a crash leaves an empty file under the new name"
    ),
    Mutation(
        "core/write.py",
        "if os.path.lexists(old) and not os.path.lexists(path):",
        "if os.path.lexists(old) and os.path.lexists(path):",
        "a folder that was being replaced is not put back",
    ),
    Mutation(
        "core/write.py",
        "    if not stat.S_ISREG(kind):",
        "    if False:",
        "a link that has the temporary name of a file is removed",
    ),
    Mutation(
        "core/machine.py", "return max(1, cores // processes)", "return max(1, cores)", "processes share no cores"
    ),
    Mutation("core/machine.py", "int(quota) / int(period)", "int(period) / int(quota)", "quota upside down"),
    Mutation("core/philox.py", "for _ in range(10):", "for _ in range(9):", "nine rounds of Philox for ten"),
    Mutation(
        "core/amounts.py",
        "return int(float(match[1]) * _UNITS[match[2].lower()])",
        "return int(float(match[1]))",
        "50GB are fifty bytes",
    ),
    # store
    Mutation(
        "store/manifest.py",
        "intact = json_bytes(document) == data and _is_sealed(data, document) and type(version) is int",
        "intact = json_bytes(document) == data and type(version) is int",
        "the seal is not looked at",
    ),
    Mutation(
        "store/codec.py",
        "if len(data) < 4 or _crc(data[:-4]) != data[-4:]:",
        "if len(data) < 4:",
        "the checksum of a chunk is not looked at",
    ),
    Mutation(
        "store/writer.py", "    place.sync(objects)\n", "", "the names of shards are not on the disk when committed"
    ),
    Mutation(
        "store/reader.py",
        "if index is None or stamp != opened.stamp:",
        "if index is None:",
        "a shard that was replaced after the first read is not checked again",
    ),
    Mutation(
        "store/reader.py",
        "out[rows] = values[positions[rows] - chunk * layout.chunk]",
        "out[rows] = values[positions[rows] - chunk * layout.chunk - 1]",
        "a row is read as its neighbour",
    ),
    Mutation(
        "store/cache.py",
        "if os.read(descriptor, 5) == digest.digest() and sums",
        "if sums",
        "a damaged file of the cache is believed",
    ),
    Mutation(
        "store/cache.py",
        " or google_crc32c.value(place) != sums[row]",
        "",
        "what has changed in a cache since it was checked is believed",
    ),
    Mutation(
        "store/intent.py",
        "if name not in manifest.objects}",
        "}",
        "what an intent lists is removed although it was committed",
    ),
    Mutation(
        "training/folder.py", "        self._rename(MOVING, REPLACED)\n", "", "a run that was replaced is not found"
    ),
    # making
    Mutation(
        "making/run.py",
        "if builder.added != stop - start:",
        "if builder.added > stop - start:",
        "a source that makes too few sequences is not noticed",
    ),
    Mutation(
        "making/repair.py",
        "if Entry.of(data) != self._manifest.objects[name]:",
        "if False:",
        "what was made anew is not compared with what was committed",
    ),
    Mutation(
        "making/run.py",
        "for index in split.missing",
        "for index in range(split.spec.shards)",
        "what is there is made again",
    ),
    Mutation(
        "making/parts.py",
        "return all(name in self.made.objects or name in self.manifest.objects for name in names)",
        "return any(name in self.made.objects or name in self.manifest.objects for name in names)",
        "half a shard counts as made",
    ),
    # starcraft
    Mutation(
        "starcraft/engine/combat.py",
        "max(MIN_DAMAGE_PER_HIT, raw - on_shield - armour)",
        "max(MIN_DAMAGE_PER_HIT, raw - on_shield + armour)",
        "armour hurts",
    ),
    Mutation(
        "starcraft/engine/motion.py",
        "return cell // SIZE + 0.5 - _HALF, cell % SIZE + 0.5 - _HALF",
        "return cell % SIZE + 0.5 - _HALF, cell // SIZE + 0.5 - _HALF",
        "x and y of a waypoint are swapped",
    ),
    Mutation(
        "starcraft/polar.py",
        "return (low + half) % (2 * half) if below else low",
        "return low",
        "what is south of an agent is seen in the north",
    ),
    Mutation(
        "starcraft/polar.py",
        "return codes.HEALS if unit_type == _MEDIVAC else codes.ATTACKS",
        "return codes.ATTACKS",
        "healing is stored as an attack",
    ),
    Mutation(
        "starcraft/rules.py",
        "mask[Action.NORTH] = _can_walk(pathing, x + origin, y + half + origin)",
        "mask[Action.NORTH] = _can_walk(pathing, x + origin, y - half + origin)",
        "the mask lets agents walk north where they could walk south",
    ),
    Mutation(
        "starcraft/rules.py",
        "return attack_at + (max(agents, enemies) if heals else enemies)",
        "return attack_at + enemies",
        "masks have too few columns for a healer's targets",
    ),
    # generators
    Mutation(
        "generators/bballs/making/ball_contacts.py",
        "discriminant = speed * speed + 2.0 * acceleration * gap",
        "discriminant = speed * speed - 2.0 * acceleration * gap",
        "gravity has the wrong sign at walls",
    ),
    Mutation(
        "generators/bballs/making/ball_start.py",
        "dx, dy, reach = x - position[k, 0], y - position[k, 1], r + radius[k]",
        "dx, dy, reach = x - position[k, 0], y - position[k, 1], r",
        "balls start inside each other",
    ),
    Mutation(
        "generators/bballs/learning/ball_crops.py",
        "shift = np.uint32(13 - (left & 7))",
        "shift = np.uint32(12 - (left & 7))",
        "crops are a pixel off",
    ),
    Mutation(
        "generators/bballs/learning/ball_batches.py",
        "< self.views - drop_count(fraction, self.views))",
        "<= self.views - drop_count(fraction, self.views))",
        "a view too many stays when views are dropped",
    ),
    Mutation(
        "generators/bballs/evaluation/ball_rollouts.py",
        "asked = position[:, prompt + step]",
        "asked = position[:, prompt + step - 1]",
        "a roll-out sees the next frame at the last frame's places",
    ),
    # learning
    Mutation("learning/metrics.py", "(2 * tp + fp + fn) if", "(2 * tp + fp + fp) if", "F1 counts no misses"),
    Mutation(
        "learning/metrics.py",
        "return torch.where(mask, per_query, 0.0).sum() / mask.sum().clamp(min=1)",
        "return per_query.sum() / mask.sum().clamp(min=1)",
        "queries that do not exist count in the loss",
    ),
    Mutation(
        "learning/windows.py",
        "return slice(self.rank * rows // self.count, (self.rank + 1) * rows // self.count)",
        "return slice(0, rows // self.count)",
        "every process trains on the first one's share",
    ),
    Mutation(
        "learning/windows.py",
        'generator(self.seed, "loading/order", epoch)',
        'generator(self.seed, "loading/order", 0)',
        "every epoch has the same order",
    ),
    # models
    Mutation(
        "models/attention.py",
        "absent = torch.where(mask, 0.0, ABSENT_LOGIT)",
        "absent = torch.where(mask, ABSENT_LOGIT, 0.0)",
        "the mask of views is upside down",
    ),
    Mutation(
        "models/attention.py",
        "        e = torch.where(mask.unsqueeze(-1), e, 0.0)\n",
        "",
        "what stands in absent views gets into the sum",
    ),
    Mutation(
        "models/attention.py",
        "query, key = asked.chunk(2, -1)",
        "key, query = asked.chunk(2, -1)",
        "queries and keys of the cells are swapped",
    ),
    Mutation(
        "models/modules.py",
        "of_bias = by_module.sum((1, 2))",
        "of_bias = by_module.mean((1, 2))",
        "gradients of biases are too small",
    ),
    Mutation(
        "models/zoo/s2gru.py",
        "h_bar.clamp(-self.hidden_limit, self.hidden_limit)",
        "h_bar",
        "states explode",
    ),
    # training
    Mutation(
        "training/schedule.py",
        "if self.bad + 1 >= config.plateau_patience:",
        "if self.bad + 1 > config.plateau_patience:",
        "the plateau is waited for one validation too long",
    ),
    Mutation(
        "training/schedule.py",
        "fall = 0.5 * (1 + math.cos(",
        "fall = 0.5 * (1 - math.cos(",
        "the rate grows where it should fall",
    ),
    Mutation(
        "training/checkpoint.py",
        'if header.get("sha256") != digest(tensors, header.get("record", "")):',
        "if False:",
        "a damaged checkpoint is resumed from",
    ),
    Mutation(
        "training/stepper.py",
        "whole = self.processes.total(loss * share) / self.processes.count",
        "whole = loss * share",
        "the log of several processes holds the first one's loss",
    ),
    Mutation(
        "training/data.py",
        'self.validation_groups = chosen_of(store, config.task, "val", chosen)',
        'self.validation_groups = chosen_of(store, config.task, "train", chosen)',
        "validated on what was trained on",
    ),
    # evaluation
    Mutation("evaluation/tables.py", "t.ppf(0.975,", "t.ppf(0.95,", "intervals of 90% are called 95%"),
    Mutation(
        "evaluation/tables.py", "won += cell.mean > max(known)", "won += cell.mean > min(known)", "a lost column is won"
    ),
    Mutation(
        "evaluation/enclaves.py", "covered = self.maps > 0", "covered = self.maps >= 0", "every place is everybody's"
    ),
    # inspection
    Mutation(
        "inspection/scene.py",
        "if low >= -(2**15) and high < 2**15:",
        "if low >= -(2**15) and high < 2**16:",
        "large numbers wrap around on their way to the viewer",
    ),
    Mutation(
        "inspection/viewer/server.py",
        'if host.rpartition(":")[0] not in NAMES and host not in NAMES:',
        "if False:",
        "other sites can read the store through a name of their own",
    ),
    Mutation(
        "inspection/export/webdataset.py",
        "sequence = group[number]",
        "sequence = group[0]",
        "every exported sequence is the first",
    ),
    # api and cli
    Mutation(
        "api.py",
        "if overwrite and (dask is not None or part is not None):",
        "if False:",
        "a part overwrites what others have made",
    ),
    Mutation("cli/run.py", "sys.exit(status)", "sys.exit(0)", "a command that fails says that all is well"),
    Mutation(
        "cli/inspect.py", "    if report.problems:\n", "    if False:\n", "verify tells of damage and calls it well"
    ),
]


def misplaced(package: Path = PACKAGE) -> list[str]:
    """Mutations whose text is not in their file exactly once."""
    found = []
    for mutation in MUTATIONS:
        path = package / mutation.file
        count = path.read_text(encoding="utf-8").count(mutation.text) if path.exists() else 0
        if count != 1:
            found.append(f"{mutation.file}: {count} times, not once: {mutation.text.strip()}")
    return found


def mirrors(file: str, tests: Path) -> list[str]:
    """The test files of a module: those named like it in the folder named like its, or else all of that folder."""
    where = Path(file)
    folder = tests / where.parent
    named = [path for path in folder.glob("test_*.py") if where.stem.strip("_").rpartition("_")[2] in path.stem]
    while not (named or list(folder.glob("test_*.py"))):
        folder = folder.parent
    return [str(path) for path in sorted(named)] or [str(folder)]


class Trial:
    """A copy of the checkout, with its compiled code, in which one text stands for another."""

    def __init__(self, folder: Path, mutation: Mutation) -> None:
        self.folder, self.mutation = folder, mutation
        shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(".git", ".venv", "build", "demo"))
        path = folder / "s2rm_data" / mutation.file
        path.write_text(path.read_text(encoding="utf-8").replace(mutation.text, mutation.instead), encoding="utf-8")

    def noticed_by(self, *, rest: bool) -> str:
        """The first test that fails, or nothing."""
        near = mirrors(self.mutation.file, self.folder / "tests")
        return self._failed(near) or (self._failed(["--numprocesses", "2", "--dist", "worksteal"]) if rest else "")

    def _failed(self, words: list[str]) -> str:
        environment = {**os.environ, "PYTHONPATH": str(self.folder)}  # before the checkout that is installed
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "not whole", "-p", "no:cacheprovider", *words]
        done = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)
        lines = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
        if done.returncode and not lines:
            lines = [f"pytest ended with status {done.returncode}: {done.stdout[-500:]} {done.stderr[-500:]}"]
        return lines[0].partition(" - ")[0] if lines else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=24)
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--only", help="those of files whose name holds this")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--near", action="store_true", help="run only the tests that mirror the file")
    words = parser.parse_args()
    if wrong := misplaced():
        sys.exit("this list is out of date:\n" + "\n".join(wrong))
    chosen = [m for m in MUTATIONS if words.only in m.file] if words.only else MUTATIONS
    if not (words.only or words.list):
        chosen = random.Random(words.seed).sample(MUTATIONS, words.count)
    unnoticed = 0
    for number, mutation in enumerate(chosen, 1):
        print(f"{number:3} {mutation.file}: {mutation.breaks}", flush=True)
        if words.list:
            continue
        with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
            found = Trial(Path(folder) / "checkout", mutation).noticed_by(rest=not words.near)
        print(f"      {found or 'NOBODY NOTICES'}", flush=True)
        unnoticed += not found
    if unnoticed:
        sys.exit(f"{unnoticed} of {len(chosen)} mistakes went unnoticed")


if __name__ == "__main__":
    main()
