"""The same for stores in a bucket: the n-th request of a command meets a fault."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from buckets import ENVIRONMENT

from faults.cases import FAULTY, Clock, Command, Ended, Fault, Finding, below, check_store, run_killed, same
from faults.commands import BALLS, GONE, OTHERS
from faults.server import KINDS, Bucket, serve

URL = "s3://bench/S"
SMALL = ("--shard-size", "2", "-o", URL)
FOREIGN = {
    "S/notes.txt": b"mine",
    "S/bballs/train/labels.csv": b"mine",
    "S/bballs/mine/thesis.txt": b"mine",
    "T/x": b"x",
}
PROBES = r"(^|/)_probe-[0-9a-f]+$"  # a writer tries the bucket out with these; a kill may leave one
# What a server may do that lies, or has no credentials any more: the command says so, or it did not matter.
STATUSES = {*FAULTY, 3, 5}


def _data(name: str, words: tuple[str, ...], template: str, **more: Any) -> Command:
    return Command(f"{name}, bucket", "data", words, template, "store", "S", unlike=PROBES, **more)


BUCKET_COMMANDS = {
    command.name: command
    for command in (
        _data("bballs", (*BALLS, *SMALL), "others"),
        _data("bballs, new store", (*BALLS, *SMALL), "nothing"),
        _data("bballs, overwrite", (*BALLS, *SMALL, "--seed", "1", "--overwrite"), "both"),
        _data("bballs, part", (*BALLS, *SMALL, "--part", "1/2"), "others"),
        _data("merge", ("merge", URL, "-q"), "parts", done=GONE),
        _data("repair", ("repair", URL, "bballs/train", "-q"), "damaged"),
        _data("rename", ("rename", URL, "bballs/train", "bballs/other", "-q"), "both", done=GONE),
        _data("remove", ("remove", URL, "bballs/train", "--yes", "-q"), "both", done=GONE),
    )
}


@dataclass
class BucketReference:
    before: dict[str, bytes]
    after: dict[str, bytes]
    requests: list[str]


@dataclass
class BucketBench:
    """A server in this process; each command runs in a forked one, whose client library has threads of its own."""

    folder: Path
    bucket: Bucket = field(default_factory=Bucket)
    _templates: dict[str, dict[str, bytes]] = field(default_factory=dict)
    _known: dict[str, BucketReference] = field(default_factory=dict)

    def __post_init__(self) -> None:
        from s2rm_data.store.places import _credentials, bucket

        _credentials.RETRIES = {
            "max_retries": 2,
            "retry_timeout": timedelta(seconds=5),
            "backoff": {"init_backoff": timedelta(milliseconds=1), "max_backoff": timedelta(milliseconds=2), "base": 2},
        }
        bucket.TRIES = 3
        self.folder.mkdir(parents=True, exist_ok=True)
        os.environ.update({**ENVIRONMENT, "AWS_ENDPOINT_URL": serve(self.bucket)})

    def run(self, words: Sequence[str]) -> Ended:
        os.chdir(self.folder)

        def began(child: int) -> None:
            self.bucket.client = child

        with Clock().installed():
            return run_killed("data", words, began)

    def fill(self, template: str) -> None:
        if template not in self._templates:
            self.bucket.arm()
            self.bucket.objects = {}
            self._make(template)
            self._templates[template] = {**self.bucket.objects, **(FOREIGN if self.bucket.objects else {"T/x": b"x"})}
        self.bucket.objects = dict(self._templates[template])

    def _make(self, template: str) -> None:
        if template == "nothing":
            return
        self._succeed((*OTHERS, *SMALL))
        if template == "parts":
            for part in ("1/2", "2/2"):
                self._succeed((*BALLS, *SMALL, "--part", part))
        elif template != "others":
            self._succeed((*BALLS, *SMALL))
        if template == "damaged":
            for name in ("frames/c.0.0.0.0", "zarr.json", "position/zarr.json"):
                self.bucket.objects.pop(f"S/bballs/train/{name}", None)

    def _succeed(self, words: tuple[str, ...]) -> None:
        ended = self.run(words)
        if ended.status:
            raise AssertionError(f"{words} ends with {ended.status}: {ended.said}")

    def reference(self, command: Command) -> BucketReference:
        if command.name not in self._known:
            found = []
            for _ in range(2):
                self.fill(command.template)
                before = dict(self.bucket.objects)
                self.bucket.arm()
                self._succeed(command.words)
                found.append(BucketReference(before, dict(self.bucket.objects), list(self.bucket.requests)))
            same({**found[0].after}, {**found[1].after}, "done twice", PROBES)
            if [_plain(r) for r in found[0].requests] != [_plain(r) for r in found[1].requests]:
                raise Finding("its requests are not the same each time")
            self._known[command.name] = found[1]
        return self._known[command.name]

    def faults(self, command: Command) -> list[Fault]:
        """A lie is one where something is to be kept, and an empty list where something is listed."""
        requests = enumerate(self.reference(command).requests, 1)
        return [
            Fault(number, kind)
            for number, request in requests
            for kind in KINDS
            if (kind != "false-200" or request.startswith("PUT")) and (kind != "empty-list" or "list-type" in request)
        ]

    def case(self, command: Command, fault: Fault) -> str:
        reference = self.reference(command)
        self.fill(command.template)
        self.bucket.arm(fault.at, fault.name)
        ended = self.run(command.words)
        if not self.bucket.hit:
            return "not met"
        self.bucket.arm()
        request, after = reference.requests[fault.at - 1], dict(self.bucket.objects)
        self._check_ending(fault, ended, request)
        planted = {name: data for name, data in FOREIGN.items() if name in reference.before}
        same({name: after.get(name) for name in planted}, dict(planted), "foreign")
        trees = [below(dict(tree), "S") for tree in (reference.before, after, reference.after)]
        check_store(*trees)
        if ended.status == 0:
            same(dict(after), dict(reference.after), f"status 0 after {fault.name} at {request}", PROBES)
            return "done"
        again = self.run(command.words)
        if again.status and again.status not in command.done:
            raise Finding(f"after {fault.name} at {request} ({ended.said.strip()[-300:]}): {again.status} {again.said}")
        same(dict(self.bucket.objects), dict(reference.after), f"finished after {fault.name} at {request}", PROBES)
        return "killed" if ended.status == -signal.SIGKILL else str(ended.status)

    def _check_ending(self, fault: Fault, ended: Ended, request: str) -> None:
        if ended.status == -signal.SIGKILL and fault.name.startswith("kill"):
            return
        where = f"after {fault.name} at {request}: {ended.said[-700:]}"
        if ended.status not in STATUSES or (fault.name in ("error", "delay") and ended.status):
            raise Finding(f"status {ended.status} {where}")
        if "Traceback" in ended.said or (ended.status and not ended.said.startswith("s2rm-data: ")):
            raise Finding(f"no message {where}")


def _plain(request: str) -> str:
    return re.sub(r"_probe-[0-9a-f]+|_intent[^ ]*", "PROBE", request)
