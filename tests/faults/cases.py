"""One case: a command in a fresh sandbox, one fault, and what must hold afterwards."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from faults import shim
from faults.shim import Call, Shim

DOCUMENTED = {0, 1, 2, 3, 4, 5, 6, 7}
FAULTY = {0, 6}  # what a disk that fails may lead to: it did not matter, what it holds cannot be read, or that
Tree = dict[str, object]


class Finding(Exception):  # noqa: N818
    """An invariant does not hold; the message says which."""


@dataclass(frozen=True)
class Command:
    """`program` and `words` are run in a sandbox that is a copy of a template; `kind` says what must hold in `out`:

    store   what is committed is there byte for byte, every group as before or as the command leaves it
    files   each file is the old one or the new one
    folder  all of it is the old one or the new one
    run     the run that was there is there, or the new one is complete
    """

    name: str
    program: str
    words: tuple[str, ...]
    template: str
    kind: str
    out: str
    again: tuple[str, ...] = ()  # to finish it, if not the same words
    done: frozenset[int] = frozenset({0})  # how the same words end when everything is done
    unlike: str = r"$^"  # names that differ each time
    stride: int = 1  # every so many calls
    lanes: tuple[int, ...] = (0,)
    also: frozenset[int] = frozenset()  # other statuses with which it may tell of a fault


@dataclass(frozen=True)
class Fault:
    """What happens to call `at`: one of KINDS."""

    at: int
    name: str
    lane: int = 0

    def __str__(self) -> str:
        return f"{self.name}@{self.at}" + (f"/{self.lane}" if self.lane else "")


# Name -> (classes of calls, what happens, error, classes that go on failing).
SPACE = shim.WRITES | shim.SYNCS
KINDS = {
    "eio": (shim.ALL, shim.FAIL, errno.EIO, 0),
    "eio-on": (shim.ALL & ~shim.CLOSES, shim.FAIL, errno.EIO, shim.ALL & ~shim.CLOSES),
    "enospc": (SPACE, shim.FAIL, errno.ENOSPC, 0),
    "enospc-on": (SPACE, shim.FAIL, errno.ENOSPC, SPACE),
    "short": (shim.READS | shim.WRITES, shim.SHORT, 0, 0),
    "torn": (shim.WRITES, shim.TORN, 0, 0),
    "kill": (shim.WRITES | shim.REMOVES | shim.SYNCS, shim.KILL, 0, 0),
}
KILLS = ("torn", "kill")


def faults_of(trace: Sequence[Call], lane: int, stride: int = 1) -> Iterator[Fault]:
    """Every fault that can meet the calls of a trace; half a call means something for bytes alone."""
    for number, call in enumerate(trace, 1):
        for name, (classes, *_) in KINDS.items():
            moves = call.op in ("read", "write")
            if call.kind & classes and (moves or name not in ("short", "torn")) and (number % stride == 0):
                yield Fault(number, name, lane)


# -- commands in this process


@dataclass
class Ended:
    status: int
    said: str


class Clock:
    """Time that passes by sleeping alone, so that the same command makes the same calls every time."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def counter(self) -> float:
        self.now += 1e-7
        return self.now

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        before = {name: getattr(time, name) for name in ("time", "monotonic", "perf_counter", "sleep", "time_ns")}
        time.time = time.monotonic = self.time  # type: ignore[assignment]
        time.perf_counter, time.sleep = self.counter, self.sleep  # type: ignore[assignment]
        time.time_ns = lambda: int(self.now * 1e9)  # type: ignore[assignment]
        try:
            yield
        finally:
            for name, function in before.items():
                setattr(time, name, function)


def run_here(program: str, words: Sequence[str]) -> Ended:
    """A command as its program runs it, but for signals and streams."""
    from s2rm_data.cli import run as running

    main = {"data": "data:data", "train": "train:train", "eval": "eval:evaluate", "reproduce": "reproduce:reproduce"}
    module, _, name = main[program].partition(":")
    command = getattr(__import__(f"s2rm_data.cli.{module}", fromlist=[name]), name)
    said = io.StringIO()
    sys.argv = [f"s2rm-{program}", *words]
    status: object = 0
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said), warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, *where: said.write(f"s2rm-{program}: {message}\n")
        try:
            running.run(command, f"s2rm-{program}")
        except SystemExit as leaving:
            status = leaving.code or 0
    return Ended(int(status) if isinstance(status, int) else 1, said.getvalue())


def prepare_process() -> None:
    """What programs do to their process, and this one must not."""
    from s2rm_data.cli import run as running

    running.begin_program = lambda name: None
    running._open_streams = lambda: None
    running._print_warnings = lambda name: None


def run_killed(program: str, words: Sequence[str], began: Callable[[int], None] = lambda child: None) -> Ended:
    """The same in a forked process, which may be killed on its way."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            ended = run_here(program, words)
            os.write(writer, ended.said.encode()[:60_000])
            os._exit(ended.status)
        except BaseException as error:  # noqa: BLE001
            os.write(writer, f"Traceback: {error!r}".encode())
            os._exit(99)
    os.close(writer)
    began(child)
    with open(reader, "rb") as file:  # noqa: PTH123
        said = file.read().decode(errors="replace")
    return Ended(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said)


def run_started(program: str, words: Sequence[str]) -> Ended:
    """The same as users start it."""
    module = "s2rm_data" if program == "data" else f"s2rm_data.cli.{program}"
    done = subprocess.run([sys.executable, "-P", "-m", module, *words], capture_output=True, text=True)
    return Ended(done.returncode, done.stderr)


# -- trees


def tree_of(folder: Path) -> Tree:
    """Names below a folder: bytes of files, targets of links, None of folders that are empty."""
    found: Tree = {}
    for inner, folders, files in os.walk(folder):
        prefix = os.path.relpath(inner, folder)
        start = "" if prefix == "." else f"{prefix}/"
        for name in (*folders, *files):
            path = f"{inner}/{name}"
            if os.path.islink(path):  # noqa: PTH114
                found[start + name] = ("link", os.readlink(path))  # noqa: PTH115
            elif name in files:
                with open(path, "rb") as file:  # noqa: PTH123
                    found[start + name] = file.read()
        if not folders and not files:
            found[start.rstrip("/")] = None
    return found


def below(tree: Tree, folder: str) -> Tree:
    return {name.removeprefix(f"{folder}/"): it for name, it in tree.items() if name.startswith(f"{folder}/")}


def same(found: Tree, wanted: Tree, what: str, unlike: str = r"$^") -> None:
    for name in sorted(found.keys() | wanted.keys()):
        if re.search(unlike, name):
            continue
        if found.get(name, ...) != wanted.get(name, ...):
            state = "is missing" if name not in found else "is left over" if name not in wanted else "differs"
            raise Finding(f"{what}: {name} {state}")


# -- what must hold after a fault, before anything is finished


def check_store(before: Tree, after: Tree, wanted: Tree) -> None:
    """Whatever the root names is there; whatever it named before it names still, unless the command takes it away."""
    objects, old, new = (_objects(tree) for tree in (after, before, wanted))
    for name, entry in old.items():
        if objects.get(name) != entry and not (name in new and objects.get(name) == new[name]) and name in new:
            raise Finding(f"{name} was committed, and the root does not name it any more")
        if name not in objects and name in new and new[name] == entry:
            raise Finding(f"{name} was committed, and the root has lost it")
    moving = _moving(after)
    for name, (nbytes, digest) in objects.items():
        data = after.get(name)
        if name.startswith(moving):
            continue
        if not isinstance(data, bytes) or len(data) != nbytes or hashlib.sha256(data).hexdigest() != digest:
            if before.get(name) == data and name in old and old[name] == (nbytes, digest):
                continue  # as damaged as it was
            raise Finding(f"{name} is committed, and is not there as it was")


def _objects(tree: Tree) -> dict[str, tuple[int, str]]:
    root = tree.get("zarr.json")
    if not isinstance(root, bytes):
        return {}
    manifest = json.loads(root)["attributes"]["manifest"]
    return {name: (entry["bytes"], entry["sha256"]) for name, entry in manifest["objects"].items()}


def _moving(tree: Tree) -> tuple[str, ...]:
    """Beginnings of names that are being exchanged, as the intent says, which the next writer finishes."""
    intent = tree.get("_intent.json")
    if not isinstance(intent, bytes):
        return ()
    pairs = json.loads(intent)["replace"].items()
    return tuple(f"{name}/" for pair in pairs for name in pair)


def check_files(before: Tree, after: Tree, wanted: Tree) -> None:
    for name, data in before.items():
        if after.get(name, ...) not in (data, wanted.get(name, ...)):
            raise Finding(f"{name} is neither the old one nor the new one")
    for name in after.keys() - before.keys():
        if name in wanted and after[name] != wanted[name]:
            raise Finding(f"{name} is there and not whole")


def check_folder(before: Tree, after: Tree, wanted: Tree, beside: Tree) -> None:
    if after not in (before, wanted) and not (not after and beside in (before, wanted)):
        names = [name for name in {*after, *wanted} if after.get(name, ...) != wanted.get(name, ...)]
        raise Finding(f"the folder is neither the old one nor the new one: {', '.join(sorted(names)[:3])}")


def check_run(before: Tree, after: Tree, wanted: Tree) -> None:
    """The old run lies in one of its three places until the new one is complete."""
    if after.get("summary.json") == wanted.get("summary.json") and after.get("summary.json") != before.get(
        "summary.json"
    ):
        return
    for name, data in before.items():
        if all(after.get(place + name, ...) != data for place in ("", "replaced/", "replaced.partial/")):
            if name in wanted and after.get(name, ...) == wanted[name]:
                continue
            raise Finding(f"{name} of the run that was there is lost")


def check_trace(calls: Sequence[Call], folder: str) -> None:
    """Every rename comes after the sync of what it names, and every new name is synced before the command ends."""
    dirty: set[str] = set()
    names: dict[str, str] = {}  # folder -> a name in it that is not on the disk
    for call in calls:
        if ".rows" in call.path:  # of a cache: compared whenever they are read, and not synced
            continue
        if call.op in ("write", "truncate"):
            dirty.add(call.path)
        elif call.op == "fsync":
            dirty.discard(call.path)
            names.pop(call.path, None)
        elif call.op == "unlink":
            dirty.discard(call.path)
        elif call.op in ("rename", "exchange"):
            unsynced = [path for path in dirty if path == call.path or path.startswith(f"{call.path}/")]
            if unsynced:
                raise Finding(f"{call.path} is renamed before {unsynced[0]} is on the disk")
            names[os.path.dirname(call.other)] = call.other  # noqa: PTH120
            commits = os.path.basename(call.other) in ("zarr.json", "state.safetensors", "summary.json")  # noqa: PTH119
            lost = [name for name in names if name != os.path.dirname(call.other)]  # noqa: PTH120
            if commits and os.path.dirname(call.other) == folder and lost:  # noqa: PTH120
                raise Finding(f"{call.other} commits before the name {names[lost[0]]} is on the disk")
    names.pop(os.path.dirname(folder), None)  # of the sandbox itself, which is not traced  # noqa: PTH120
    if names:
        raise Finding(f"the name {next(iter(names.values()))} is never made durable")


# -- cases


@dataclass
class Bench:
    """A sandbox, templates to fill it from, and what undisturbed commands leave there."""

    work: Path
    make: Callable[[Bench, str], None]
    shim: Shim = field(init=False)
    starts: bool = False  # commands as processes of their own, from their imports on
    sentinels: dict[str, Tree] = field(default_factory=dict)
    _known: dict[str, Reference] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.sandbox = self.work / "sandbox"
        self.sandbox.mkdir(parents=True, exist_ok=True)
        self.shim = Shim(self.sandbox)

    def fill(self, template: str) -> None:
        """The sandbox as a template has it; foreign files and links are planted in every folder of it."""
        source = self.work / "templates" / template
        if not source.exists():
            self.empty()
            self.make(self, template)
            planted = plant(self.sandbox)
            shutil.copytree(self.sandbox, source, symlinks=True)
            (self.work / "templates" / f"{template}.json").write_text(json.dumps(sorted(planted)))
        self.empty()
        shutil.copytree(source, self.sandbox, symlinks=True, dirs_exist_ok=True)

    def planted(self, template: str) -> Tree:
        if template not in self.sentinels:
            names = json.loads((self.work / "templates" / f"{template}.json").read_text())
            tree = tree_of(self.work / "templates" / template)
            self.sentinels[template] = {name: tree[name] for name in names}
        return self.sentinels[template]

    def empty(self) -> None:
        for path in self.sandbox.iterdir():
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()

    def run(self, program: str, words: Sequence[str], *, killed: bool = False) -> Ended:
        os.chdir(self.sandbox)
        if self.starts:
            return run_started(program, words)
        with Clock().installed():
            return (run_killed if killed else run_here)(program, words)

    def reference(self, command: Command) -> Reference:
        """What an undisturbed command leaves, and the calls that it makes, the same each time."""
        if command.name not in self._known:
            self._known[command.name] = self._measured(command)
        return self._known[command.name]

    def _measured(self, command: Command) -> Reference:
        found: list[Reference] = []
        for _ in range(3):  # the first may have to import and to compile
            self.fill(command.template)
            before = tree_of(self.sandbox)
            with self.shim.traced() as calls:
                ended = self.run(command.program, command.words)
            if ended.status:
                raise Finding(f"undisturbed, it ends with {ended.status}: {ended.said[-1500:]}")
            after = tree_of(self.sandbox)
            found.append(Reference(before, after, calls))
        same(found[1].after, found[2].after, "done twice", command.unlike)
        check_trace(found[2].calls, str(self.sandbox / command.out))
        lanes = {lane: [call for call in found[2].calls if not lane or call.lane == lane] for lane in command.lanes}
        for lane in command.lanes:
            one, other = (
                [_untagged(call) for call in (*calls, Call("end", 0, 0, "", "")) if not lane or call.lane in (0, lane)]
                for calls in (found[1].calls, found[2].calls)
            )
            for number, (first, second) in enumerate(zip(one, other, strict=False), 1):
                if first != second:
                    raise Finding(f"its calls are not the same each time: number {number} is {first}, then {second}")
        found[2].lanes = lanes
        return found[2]

    def faults(self, command: Command) -> list[Fault]:
        lanes = self.reference(command).lanes
        return [fault for lane in command.lanes for fault in faults_of(lanes[lane], lane, command.stride)]

    def case(self, command: Command, fault: Fault) -> str:
        """How the command ended; raises a `Finding` where an invariant does not hold."""
        starts, self.starts = self.starts, False
        reference = self.reference(command)
        self.fill(command.template)
        self.starts = starts
        _, kind, number, goes_on = KINDS[fault.name]
        killed = fault.name in KILLS
        descriptors = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
        with self.shim.armed(fault.at, kind, number, sticky=goes_on, lane=fault.lane):
            ended = self.run(command.program, command.words, killed=killed)
        if not self.shim.hit:
            return "not met"
        call = reference.lanes[fault.lane][fault.at - 1]
        try:
            return self._checked(command, fault, ended, open_files=0 if killed else descriptors)
        except Finding as finding:
            raise Finding(f"{call.op} {call.path}, status {ended.status}: {finding}") from None

    def _checked(self, command: Command, fault: Fault, ended: Ended, *, open_files: int) -> str:
        reference, after, planted = self.reference(command), tree_of(self.sandbox), self.planted(command.template)
        _check_ending(command, fault, ended)
        if open_files and len(os.listdir("/proc/self/fd")) > open_files:  # noqa: PTH208
            raise Finding("files stay open")
        same({name: after.get(name) for name in planted}, planted, "of somebody else")
        same(below(after, "outside"), below(reference.before, "outside"), "beside it")
        _check_intact(command, reference, after)
        if ended.status == 0:
            same(after, reference.after, "done", command.unlike)
            return "done"
        again = self.run(command.program, command.again or command.words)
        if again.status and again.status not in command.done:
            raise Finding(
                f"after {ended.said.strip()[-300:]!r}, it cannot be finished: {again.status} {again.said[-600:]}"
            )
        same(tree_of(self.sandbox), reference.after, "finished", command.unlike)
        return "killed" if ended.status == -signal.SIGKILL else str(ended.status)


def _untagged(call: Call) -> tuple[str, str, str]:
    """Without what is random in temporary names."""
    return call.op, *(re.sub(r"[0-9a-f]{16}|events\.out\..*", "TAG", path) for path in (call.path, call.other))


@dataclass
class Reference:
    before: Tree
    after: Tree
    calls: list[Call]
    lanes: dict[int, list[Call]] = field(default_factory=dict)


def plant(folder: Path) -> list[str]:
    """Files and links of somebody else in every folder of a store or a run, and beside them; their names."""
    outside = folder / "outside"
    (outside / "inner").mkdir(parents=True)
    (outside / "precious.txt").write_text("precious")
    (outside / "inner" / "more.txt").write_text("more")
    planted = ["outside/precious.txt", "outside/inner/more.txt"]
    for inner, folders, _ in list(os.walk(folder)):
        where = Path(inner)
        inside = where.relative_to(folder).parts
        listed = any((above / "files.json").exists() for above in (where, *where.parents))
        if "outside" in inside or listed or where == folder:
            folders[:] = [] if "outside" in inside else folders
            continue
        (where / "mine.txt").write_text(f"of {inside}")
        link = where / ("away" if len(planted) % 4 else "victim")
        link.symlink_to(outside if link.name == "away" else outside / "precious.txt")
        planted += [str((where / name).relative_to(folder)) for name in ("mine.txt", link.name)]
    return planted


def _check_ending(command: Command, fault: Fault, ended: Ended) -> None:
    if ended.status == -signal.SIGKILL and fault.name in KILLS:
        return
    if fault.name == "short" and ended.status:
        raise Finding(f"half of it is an error: {ended.said[-500:]}")
    if ended.status not in FAULTY | command.also:
        raise Finding(f"not a status for this: {ended.said[-700:]}")
    *_, last = ended.said.strip().splitlines() or [""]
    names = last.startswith(f"s2rm-{command.program}: ") and ("cannot" in last or "/" in last)
    if "Traceback" in ended.said or (ended.status and not names):
        raise Finding(f"no message: {ended.said[-700:]}")


def _check_intact(command: Command, reference: Reference, after: Tree) -> None:
    trees = [
        {name: data for name, data in below(tree, command.out).items() if not re.search(command.unlike, name)}
        for tree in (reference.before, after, reference.after)
    ]
    if command.kind == "store":
        check_store(*trees)
    elif command.kind == "files":
        check_files(*trees)
    elif command.kind == "run":
        check_run(*trees)
    elif command.kind == "folder":
        check_folder(*trees, below(after, f"{command.out}.old.partial"))
