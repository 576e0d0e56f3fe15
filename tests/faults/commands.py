"""The commands that write, and what lies in the sandbox before each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from faults.cases import Command

if TYPE_CHECKING:
    from faults.cases import Bench

BALLS = ("bballs", "--balls", "2", "--train", "4", "--val", "2", "--test", "0", "--frames", "4", "-j", "1", "-q")
OTHERS = ("bballs", "--balls", "3", "--train", "0", "--val", "0", "--test", "1", *BALLS[9:])
BATTLES = ("sc2", "--scenario", "3m", "--train", "2", "--val", "1", "--steps", "3", "-j", "1", "-q")
SMALL = ("--shard-size", "2", "-o", "S")
SMALLER = ("--shard-size", "1", "-o", "S")
FIELDS = (
    "window=3", "views=2", "queries=2", "width=1", "held_out_sequences=1", "hidden_size=4", "gate_units=2",
    "encoding_size=4", "threads=1", "checkpoint_seconds=1000",
)  # fmt: skip
TRAINING = (
    "--store", "S", "--task", "bballs", "--preset", "smoke", "--steps", "1", "--batch-size", "2",
    "--device", "cpu", "-q",
    *(word for field in FIELDS for word in ("--set", field)),
)  # fmt: skip
RUN = ("--out", "run")
# Seconds, memory and names of files with the time in them.
TAGGED = r"\.[0-9a-f]{16}\.partial$"  # what one of several writers has left; `merge` removes it
OF_RUNS = r"(timing\.jsonl|environment\.json|events\.out\.[^/]*)$"
OF_LONGER = rf"{OF_RUNS}|/run\.json$"  # the mark of a run may name the config before as well
EVALUATION = ("--run", "run", "--store", "S", "--quick", "-q", "--sequences", "1", "--dropped-sequences", "1",
              "--rollout-sequences", "1", "--threads", "1", "--device", "cpu", "--out", "evaluation")  # fmt: skip
OF_EVALUATIONS = r"(figures/enclaves_[^/]*|report\.html)$"  # one picture, and the page with it and the date
CARD = ("card", "S", "-o", "card", "--date", "2020-02-02", "-q")
PAGE = ("view", "S", "--export", "pages/page.html", "--group", "bballs/val", "--numbers", "0")
FORMATS = {"npz": "files", "hdf5": "files", "parquet": "files", "gif": "folder", "webdataset": "folder"}
GONE = frozenset({0, 2})


def _export(form: str) -> tuple[str, ...]:
    return ("export", "S", "bballs/val", "-f", form, "-o", "exports", "-q")


def _data(name: str, words: tuple[str, ...], template: str, **more: object) -> Command:
    return Command(name, "data", words, template, "store", "S", **more)  # type: ignore[arg-type]


def _exports() -> list[Command]:
    found = []
    for form, kind in FORMATS.items():
        out = "exports/bballs-val" if kind == "folder" else "exports"
        stride = 8 if form == "hdf5" else 1  # a process of its own writes HDF5
        words = (*_export(form), "--overwrite")
        found.append(Command(f"export {form}", "data", words, "balls", kind, out, stride=stride))
        found.append(Command(f"export {form}, overwrite", "data", words, f"exported {form}", kind, out, stride=stride))
    return found


def _training() -> list[Command]:
    train = (*TRAINING, *RUN)
    resumed, again = (*train, "--resume"), (*train, "--overwrite")
    sweep = (*TRAINING, "--set", "lr=1e-3,2e-3", "--out", "sweep")
    return [
        Command("train", "train", train, "balls", "run", "run", resumed, unlike=OF_RUNS),
        Command("train, overwrite", "train", (*again, "--seed", "1"), "run", "run", "run", unlike=OF_RUNS),
        Command("train, cache", "train", (*train, "--cache", "cache"), "balls", "run", "run",
                (*resumed, "--cache", "cache"), unlike=rf"{OF_RUNS}|{TAGGED}", lanes=(1, 2), stride=3),
        Command("train, several", "train", (*train, "--runs", "2"), "balls", "run", "run", (*resumed, "--runs", "2"),
                unlike=OF_RUNS, stride=12),
        Command("train, longer", "train", (*resumed, "--steps", "2"), "run", "other", "run", unlike=OF_LONGER,
                stride=3),
        Command("train --export", "train", ("--out", "run", "--export", "small", "-q"), "run", "folder", "small",
                done=frozenset({0, 5})),
        Command("sweep", "train", sweep, "balls", "run", "sweep", (*sweep, "--resume"), unlike=OF_RUNS, stride=8),
    ]  # fmt: skip


COMMANDS = {
    command.name: command
    for command in (
        _data("bballs", (*BALLS, *SMALL), "others"),
        _data("bballs, new store", (*BALLS, *SMALL), "nothing"),
        _data("bballs, overwrite", (*BALLS, *SMALL, "--seed", "1", "--overwrite"), "both"),
        _data("bballs, part", (*BALLS, *SMALL, "--part", "1/2"), "others", unlike=TAGGED),
        _data("sc2", (*BATTLES, *SMALLER), "balls"),
        _data("sc2, overwrite", (*BATTLES, *SMALLER, "--seed", "1", "--overwrite"), "battles"),
        _data("merge", ("merge", "S", "-q"), "parts", done=GONE),
        _data("repair", ("repair", "S", "bballs/train", "-q"), "damaged"),
        _data("rename", ("rename", "S", "bballs/train", "bballs/other", "-q"), "both", done=GONE),
        _data("remove", ("remove", "S", "bballs/train", "--yes", "-q"), "both", done=GONE),
        *_exports(),
        Command("preview", "data", ("preview", "S", "bballs/val", "-o", "previews"), "balls", "files", "previews"),
        Command("preview, again", "data", ("preview", "S", "bballs/val", "-n", "1", "-o", "previews"), "previews",
                "files", "previews"),
        Command("stats", "data", ("stats", "S", "bballs/val", "-o", "stats", "-q"), "balls", "files", "stats"),
        Command("card", "data", (*CARD, "--overwrite"), "balls", "files", "card", stride=2),
        Command("card, overwrite", "data", (*CARD, "--title", "Another", "--overwrite"), "card", "files", "card",
                stride=2),
        Command("page", "data", (*PAGE, "--overwrite"), "balls", "files", "pages"),
        Command("page, overwrite", "data", (*PAGE, "--numbers", "1", "--overwrite"), "page", "files", "pages"),
        *_training(),
        Command("eval", "eval", (*EVALUATION, "--overwrite"), "run and test", "folder", "evaluation",
                stride=4, unlike=OF_EVALUATIONS),
        Command("eval, overwrite", "eval", (*EVALUATION, "--overwrite", "--sequences", "2"), "evaluation",
                "folder", "evaluation", stride=4, unlike=OF_EVALUATIONS),
        Command("reproduce", "reproduce", ("--size", "smoke", "--out", "R", "-j", "1", "-y"), "nothing", "other", "R",
                unlike=rf"{OF_RUNS}|{OF_EVALUATIONS}|reproduce\.log$", stride=40, also=frozenset({1})),
    )
}  # fmt: skip


def make(bench: Bench, template: str) -> None:
    """Fill the empty sandbox."""

    def data(*words: str) -> None:
        _succeed(bench, "data", words)

    if template == "nothing":
        return
    if template in ("balls", "page"):
        (bench.sandbox / "pages").mkdir()
    if template == "battles":
        data(*BATTLES, *SMALLER)
        return
    if template in ("others", "both", "damaged", "parts"):
        data(*OTHERS, *SMALL)
    if template == "parts":
        for part in ("1/2", "2/2"):
            data(*BALLS, *SMALL, "--part", part)
    elif template != "others":
        data(*BALLS, *SMALL)
    if template == "damaged":
        for name in ("frames/c.0.0.0.0", "zarr.json", "position/zarr.json"):
            path = bench.sandbox / "S/bballs/train" / name
            if path.exists():
                path.unlink()
    elif template.startswith("exported "):
        data(*_export(template.removeprefix("exported ")), "-n", "1")
    elif template == "previews":
        data("preview", "S", "bballs/val", "-o", "previews")
    elif template == "card":
        data(*CARD)
    elif template == "page":
        data(*PAGE)
    elif template in ("run", "run and test", "evaluation"):
        _succeed(bench, "train", (*TRAINING, *RUN))
        if template != "run":
            data(
                *BALLS[:1],
                "--balls",
                "3",
                "--train",
                "0",
                "--val",
                "0",
                "--test",
                "2",
                "--frames",
                "4",
                "-j",
                "1",
                "-q",
                *SMALL,
            )
        if template == "evaluation":
            _succeed(bench, "eval", EVALUATION)


def _succeed(bench: Bench, program: str, words: tuple[str, ...]) -> None:
    ended = bench.run(program, words)
    if ended.status:
        raise AssertionError(f"{words} ends with {ended.status}: {ended.said}")
