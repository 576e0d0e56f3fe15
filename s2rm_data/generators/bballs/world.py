"""The world of bouncing balls, as the stages see it. Cheap to import."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from s2rm_data.core.check import integer, named, number, whole
from s2rm_data.core.errors import UsageError
from s2rm_data.making.world import Making, Option, Parser, World, span, whole_numbers

if TYPE_CHECKING:
    from s2rm_data.core.schema import SplitSource
    from s2rm_data.evaluation.world_evaluation import WorldEvaluation
    from s2rm_data.inspection.world_inspection import Inspection
    from s2rm_data.learning.world_learning import Learning


def _radius(given: Any) -> float | tuple[float, float]:
    """`4.5` as a number, `3-6` as a pair."""
    try:
        return number(given)
    except UsageError:
        low, high = span(given)
        return low if low == high else (low, high)


def _gravity(given: Any) -> tuple[float, float]:
    """`0.2`, downwards, or `x,y`, as a pair (x, y)."""
    if len(parts := _numbers(given)) not in (1, 2):
        raise UsageError("it must be one number, downwards, or two as x,y, in px/frame²")
    return (0.0, parts[0]) if len(parts) == 1 else (parts[0], parts[1])


def _mass(given: Any) -> str | tuple[float, float]:
    """`equal`, `area`, or a number or range as a pair."""
    if given in ("equal", "area"):
        return str(given)
    try:
        return span(given)
    except UsageError:
        raise UsageError("it must be equal, area, or a range of masses such as 1-4") from None


def _lists(counts: Sequence[int], form: str) -> Parser:
    """`none`, or lists of as many numbers as one of `counts`, separated by semicolons."""

    def parse(given: Any) -> tuple[tuple[float, ...], ...]:
        parts = [] if given == "none" else given.split(";") if isinstance(given, str) else list(given)
        values = tuple(_numbers(part) for part in parts)
        if any(len(value) not in counts for value in values):
            raise UsageError(f"it must be {form}, several separated by ';', or none")
        return values

    return parse


def _fixed(given: Any) -> int | tuple[tuple[float, ...], ...]:
    """A whole number of balls at random places, or the places of balls as lists."""
    try:
        return integer(given)
    except UsageError:
        return _lists((2, 3), "a number of fixed balls, or x,y or x,y,radius of a fixed ball")(given)


def _numbers(given: Any) -> tuple[float, ...]:
    parts = given.split(",") if isinstance(given, str) else given if isinstance(given, Sequence) else [given]
    return tuple(number(part) for part in parts)


_OWN, _RENDERS = "NUMBER[-NUMBER]", ("binary", "grey", "colour")
# fmt: off
OPTIONS = (
    Option(name="balls", parse=whole_numbers, metavar="NUMBERS", default="1-6",
           help="Numbers of balls of the test sets: 3, 1-6 or 1,3-5."),
    Option(name="train_balls", parse=whole(1), shown="3 if among --balls, else the smallest",
           help="Number of balls in training and validation."),
    Option(name="train", parse=whole(0), default=20_000, help="Training sequences."),
    Option(name="val", parse=whole(0), default=1_000, help="Validation sequences."),
    Option(name="test", parse=whole(0), default=1_000, help="Test sequences for each number of balls."),
    Option(name="frames", parse=integer, default=100, help="Frames per sequence."),
    Option(name="size", parse=integer, default=48, help="Side of the square arena in pixels."),
    Option(name="preset", default="kvae", choices=lambda: ("kvae", "sutskever"),
           help="Named physics: kvae or sutskever."),
    Option(name="radius", parse=_radius, metavar=_OWN, shown="the preset's",
           help="Ball radius in pixels, or a range from which each ball draws its own: 3-6."),
    Option(name="speed", parse=span, metavar=_OWN, shown="the preset's",
           help="Speed of a ball in pixels per frame: 2, or a range 2-4."),
    Option(name="gravity", parse=_gravity, metavar="[X,]Y", shown="none",
           help="Gravity in pixels per frame², downwards, or as x,y."),
    Option(name="mass", parse=_mass, metavar="equal|area|NUMBER-NUMBER", shown="by area",
           help="Masses: all equal, by area, or a range from which each ball draws its own."),
    Option(name="fixed", parse=_fixed, metavar="N|X,Y[,R];...", shown="one in the centre",
           help="Fixed balls: how many, at random places that --seed decides, or where, in pixels; or none."),
    Option(name="walls", parse=_lists((4,), "x0,y0,x1,y1 of an inner wall"), metavar="X0,Y0,X1,Y1;...", shown="none",
           help="Inner walls in pixels."),
    Option(name="render", parse=named(*_RENDERS), metavar="|".join(_RENDERS), shown="binary", choices=lambda: _RENDERS,
           help="Frames of one bit per pixel, or smooth in grey or colour; models train on binary frames."),
)
FILTER_SEQUENCES = Option(
    name="filter_sequences", parse=whole(0), shown="a tenth of --rollout-sequences",
    help="First sequences of each test group that the exact filter is asked for, too; 0: none.",
)
# fmt: on


class Balls(World):
    name = "bballs"
    title = "Bouncing balls"
    options = OPTIONS
    evaluation_options = (FILTER_SEQUENCES,)
    help = """Generate bouncing-ball videos: balls in a closed box with a fixed ball in its centre.

    The defaults make the paper's data set: 20,000 training and 1,000 validation sequences with 3 balls, and 1,000
    test sequences for each of 1 to 6 balls, 100 frames of 48x48 pixels each. A run that was interrupted resumes where
    it stopped when the same command is given again.

    \b
    Examples:
      s2rm-data bballs                               # the whole data set, to data.zarr
      s2rm-data bballs --balls 3 --train 100 --val 10 --test 10 -o small.zarr
      s2rm-data bballs --balls 1-6 --dry-run         # how much would that be?
      s2rm-data bballs --balls 7,8 --train 0 --val 0 # add two test sets
      s2rm-data bballs --gravity 0.1 --radius 3-6 --walls "4,30,20,36" -o falling.zarr
    """

    def plan(self, **options: Any) -> Making:
        from s2rm_data.generators.bballs.making.ball_source import plan

        return Making(splits=plan(**options))

    def split_from(self, settings: dict[str, Any], count: int) -> SplitSource:
        from s2rm_data.generators.bballs.making.ball_source import split_from_settings

        return split_from_settings(settings, count)

    def learning(self) -> Learning:
        from s2rm_data.generators.bballs.learning.ball_learning import LEARNING

        return LEARNING

    def inspection(self) -> Inspection:
        from s2rm_data.generators.bballs.inspection.ball_inspection import BallInspection

        return BallInspection()

    def evaluation(self) -> WorldEvaluation:
        from s2rm_data.generators.bballs.evaluation.ball_evaluation import BallEvaluation

        return BallEvaluation(self)


WORLD = Balls()
