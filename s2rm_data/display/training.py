"""What a run looks like while it trains: live on a terminal, plain lines elsewhere; both on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from s2rm_data.core.amounts import duration
from s2rm_data.core.progress import Progress
from s2rm_data.training.listener import Listener, Pace, Validated

LINE_SECONDS = 10.0  # between two plain lines


def scores_line(
    scores: Mapping[str, float], references: Mapping[str, Mapping[str, float]], titles: Mapping[str, str]
) -> str:
    """`F1 0.731 (last seen 0.516, copy previous 0.666, centre only 0.392), ...`."""
    parts = []
    for key in (key for key in titles if key in scores):
        beside = ", ".join(f"{ref.replace('_', ' ')} {found[key]:.3f}" for ref, found in references.items())
        parts.append(f"{titles[key]} {scores[key]:.3f}" + (f" ({beside})" if beside else ""))
    return ", ".join(parts)


class Lines(Listener):
    def __init__(self) -> None:
        self._said, self._told_references = 0.0, False

    def say(self, text: str) -> None:
        print(f"s2rm-train: {text}", file=sys.stderr)

    def start(self, name: str, step: int, total: int) -> None:
        self.say(f"{name}: {'resuming' if step else 'training'} from step {step:,} to {total:,}")

    def pace(self, pace: Pace) -> None:
        if time.monotonic() - self._said >= LINE_SECONDS:
            self._said = time.monotonic()
            self.say(
                f"step {pace.step:,} of {pace.total:,}, loss {pace.loss:.4f}, {pace.steps_per_second:.2f} steps/s, "
                f"{100 * pace.waiting_share:.1f}% waiting for data, {duration(pace.seconds_left)} left"
            )

    def validated(self, result: Validated) -> None:
        references = {} if self._told_references else result.references
        self._told_references = True
        best = ", the best so far" if result.is_best else ""
        scores = scores_line(result.scores, references, result.titles)
        self.say(f"validation at step {result.step:,}: loss {result.loss:.4f}{best}; {scores}")

    def scoring(self, sequences: int) -> Progress:
        return Scoring(sequences, self._say_scored)

    def _say_scored(self, done: int, total: int, seconds_left: float) -> None:
        if time.monotonic() - self._said >= LINE_SECONDS:
            self._said = time.monotonic()
            self.say(f"scoring the best weights, {done:,} of {total:,} sequences, {duration(seconds_left)} left")


class Scoring(Progress):
    """How far the scoring has come, told to a function of done, total and the seconds left."""

    def __init__(self, total: int, tell: Callable[[int, int, float], None]) -> None:
        self._total, self._done, self._tell, self._begun = total, 0, tell, time.monotonic()

    def advance(self, amount: int) -> None:
        self._done += amount
        per_sequence = (time.monotonic() - self._begun) / self._done
        self._tell(self._done, self._total, (self._total - self._done) * per_sequence)


class Live(Lines):
    """A bar with loss, rate, speed and time left, and a table of the last validations; honours NO_COLOR."""

    def __init__(self) -> None:
        super().__init__()
        from rich.console import Console
        from rich.live import Live as RichLive

        self._console = Console(stderr=True)
        self._live = RichLive(console=self._console, refresh_per_second=4, transient=False)
        self._pace: Pace | None = None
        self._results: list[Validated] = []
        self._name, self._updated = "", 0.0
        self._scored: tuple[int, int, float] | None = None

    def say(self, text: str) -> None:
        self._console.print(f"s2rm-train: {text}", highlight=False)

    def start(self, name: str, step: int, total: int) -> None:
        super().start(name, step, total)
        self._name, self._results, self._scored = name, [], None
        self._live.start()

    def pace(self, pace: Pace) -> None:
        self._pace = pace
        if time.monotonic() - self._updated > 0.2:
            self._updated = time.monotonic()
            self._live.update(self._picture())

    def validated(self, result: Validated) -> None:
        self._results = [*self._results[-7:], result]
        self._live.update(self._picture())

    def _say_scored(self, done: int, total: int, seconds_left: float) -> None:
        self._scored = done, total, seconds_left
        self._live.update(self._picture())

    def finish(self, summary: dict[str, Any]) -> None:
        self._live.stop()

    def stop(self) -> None:
        self._live.stop()

    def _picture(self) -> Any:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table

        parts: list[Any] = []
        if self._results:
            titles = self._results[-1].titles
            keys = [key for key in titles if key in self._results[-1].scores]
            table = Table(title=self._name, title_justify="left", caption="*: the best so far", caption_justify="left")
            for heading in ("validation", "loss", *(titles[key] for key in keys)):
                table.add_column(heading, justify="right")
            for name, found in self._results[-1].references.items():
                table.add_row(name.replace("_", " "), "", *(f"{found[key]:.3f}" for key in keys), style="dim")
            for result in self._results:
                loss = f"{result.loss:.4f}{'*' if result.is_best else ' '}"
                table.add_row(f"step {result.step:,}", loss, *(f"{result.scores[key]:.3f}" for key in keys))
            parts.append(table)
        words, bar = [""], Table.grid()
        if self._scored:
            done, total, seconds_left = self._scored
            words = ["scoring the best weights", f"{duration(seconds_left)} left", f"{done:,}/{total:,} sequences"]
            bar.add_row(ProgressBar(total=total, completed=done, width=60))
        elif self._pace:
            p = self._pace
            words = [f"step {p.step:,}/{p.total:,}", f"{duration(p.seconds_left)} left", f"loss {p.loss:.4f}"]
            words += [f"{p.steps_per_second:.2f} steps/s", f"waiting {100 * p.waiting_share:.1f}%", f"rate {p.lr:.2g}"]
            bar.add_row(ProgressBar(total=p.total, completed=p.step, width=60))
        while len(words) > 1 and len("  ".join(words)) > self._console.width:  # one line: the first ones that fit
            words.pop()
        return Group(*parts, bar, "  ".join(words))


def listener_for(*, quiet: bool) -> Listener:
    return Listener() if quiet else Live() if sys.stderr.isatty() else Lines()
